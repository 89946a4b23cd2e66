// SPDX-License-Identifier: Apache-2.0
// Parts of a model file that a token uses one after the other, as an engine reads them that has no room for
// all.
#pragma once

#include <vector>

#include "configs/spec/tensors.h"

namespace kvsim::config {

struct FileRange {
  Bytes first;
  Bytes bytes;

  bool operator==(const FileRange&) const = default;
};

/// Runs of the file, in order; empty where all of it is in memory.
using WeightUnit = std::vector<FileRange>;

/// A unit for each layer, and one for the output matrix with its norm. The embedding, of which a token takes
/// a row, belongs to none unless it is the output matrix, too. Runs less than a block apart are one.
[[nodiscard]] std::vector<WeightUnit> weight_units(const LlmSpec& model,
                                                   const std::vector<TensorInfo>& tensors);
/// What is left of them without the first `bytes`.
[[nodiscard]] std::vector<WeightUnit> without_first(std::vector<WeightUnit> units, Bytes bytes);

[[nodiscard]] Bytes unit_bytes(const WeightUnit& unit);
/// The range in whole blocks of a direct read.
[[nodiscard]] FileRange in_blocks(const FileRange& range);
/// Bytes of all its runs, in whole blocks.
[[nodiscard]] Bytes read_bytes(const WeightUnit& unit);

}  // namespace kvsim::config
