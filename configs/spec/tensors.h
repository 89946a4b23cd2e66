// SPDX-License-Identifier: Apache-2.0
// The tensors of a quantised model file: what each is, in which type it is stored, and where it lies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/spec/model_spec.h"
#include "configs/units/index.h"
#include "configs/units/quantity.h"

namespace kvsim::config {

struct TensorInfo {
  std::string name;  ///< as in GGUF: "blk.0.attn_q.weight"
  TensorRole role = TensorRole::vector;
  std::optional<Layer> layer;  ///< none for the embedding, the output and what belongs to all layers
  std::int64_t rows = 1;       ///< results of the product; each row is contiguous
  std::int64_t columns = 1;    ///< weights per row
  TensorType type;             ///< as stored, fall-back applied
  Bytes bytes;                 ///< rows x columns, without padding
  Bytes offset;  ///< from the start of the tensor data; a multiple of kTensorAlignment or of the file's own

  bool operator==(const TensorInfo&) const = default;
};

/// GGUF's general.alignment: each tensor starts at a multiple of it (gguf-py/gguf/constants.py).
inline constexpr Bytes kTensorAlignment{32};

/// All tensors, in llama.cpp's order; with `format.stored` as the file has them, what no operator reads last.
/// Throws UserError if a row cannot be stored in the type that the format asks for, or if the file's tensors
/// are not those of the model. Preconditions: `model` is in the ranges of its schema, `format.types` is
/// complete.
[[nodiscard]] std::vector<TensorInfo> tensors(const LlmSpec& model, const WeightFormat& format);

/// Bytes of the tensor data, padding included: what is mapped or read from the file.
[[nodiscard]] Bytes weight_bytes(const std::vector<TensorInfo>& tensors);

/// Bytes of one row of `columns` weights. Precondition: `columns` is a multiple of the type's block.
[[nodiscard]] Bytes row_bytes(const TensorType& type, std::int64_t columns);

}  // namespace kvsim::config
