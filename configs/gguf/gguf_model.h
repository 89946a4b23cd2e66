// SPDX-License-Identifier: Apache-2.0
// What a GGUF file says of the model in it: the geometry from its metadata, sizes and types from its tensor
// table.
#pragma once

#include <string>
#include <vector>

#include "configs/gguf/gguf_file.h"
#include "configs/spec/model_spec.h"
#include "configs/spec/tensors.h"

namespace kvsim::config {

/// The geometry. Throws UserError if kvsim cannot run this kind of model; tells what it can.
[[nodiscard]] LlmSpec llm_spec(const GgufFile& file);

/// The tensor table as a weight format: each tensor's type and place. Throws UserError if a tensor is of a
/// type that is not in the catalogue, which knows what a product with it costs.
[[nodiscard]] WeightFormat weight_format(const GgufFile& file);

/// The tensors that the model is computed from, in the graph's order, then those that no operator reads.
/// Throws UserError if the table does not fit the geometry.
[[nodiscard]] std::vector<TensorInfo> tensors(const GgufFile& file);

/// For provenance: the hash of the whole file up to 64 MiB; of a larger one, "header:" and the hash of all
/// before the tensor data (metadata and tensor table), since reading the rest may take minutes.
[[nodiscard]] std::string provenance_hash(const GgufFile& file);

/// Geometry, tensors by type and metadata in words.
[[nodiscard]] std::string describe(const GgufFile& file);

}  // namespace kvsim::config
