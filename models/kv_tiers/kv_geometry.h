// SPDX-License-Identifier: Apache-2.0
// Where a KV cache's rows lie in memory, and which blocks an operator touches.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "configs/units/quantity.h"
#include "models/cpu/segmenter.h"
#include "traces/record/record.h"

namespace kvsim::model {

/// [layer][K, V][cell][row]: a cell holds a token.
struct KvGeometry {
  trace::Address address = 0;
  std::int64_t layers = 1;
  std::int64_t cells = 1;  ///< of a layer
  Bytes k_row = {};
  Bytes v_row = {};        ///< 0: V is not kept
  std::int64_t block = 1;  ///< cells

  [[nodiscard]] std::int64_t blocks() const { return (cells + block - 1) / block; }
  [[nodiscard]] Bytes row() const { return k_row + v_row; }
  /// Of K and V of one layer.
  [[nodiscard]] Bytes block_bytes() const { return row() * block; }
  [[nodiscard]] Bytes bytes() const { return row() * cells * layers; }
};

/// The file's own number format, and what a core takes to put K and V of a cell in one layer into it or out
/// of it.
struct KvConversion {
  Bytes k_row = {};  ///< in the file
  Bytes v_row = {};
  Picoseconds encode = {};
  Picoseconds decode = {};
};

struct CellRange {
  std::int64_t first = 0;
  std::int64_t end = 0;

  bool operator==(const CellRange&) const = default;
};

/// What an operator does to a layer's cells.
struct KvTouch {
  std::int64_t layer = 0;
  std::vector<std::int64_t> read = {};  ///< blocks, each once, in order
  std::vector<CellRange> written = {};
};

/// Of extents beyond the cache nothing is told; none if no extent lies in it. Precondition: an operator
/// touches one layer.
[[nodiscard]] std::optional<KvTouch> touched(const KvGeometry& geometry, std::span<const ThreadWork> threads);

/// Takes reads of the blocks that `held` names out of a thread's extents; how many bytes that were.
Bytes take_out(const KvGeometry& geometry,
               const std::function<bool(std::int64_t layer, std::int64_t block)>& held, ThreadWork& thread);

}  // namespace kvsim::model
