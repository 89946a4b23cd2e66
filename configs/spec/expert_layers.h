// SPDX-License-Identifier: Apache-2.0
// Where the experts of a mixture lie in the model file.
#pragma once

#include <cstdint>
#include <vector>

#include "configs/spec/tensors.h"
#include "configs/units/quantity.h"

namespace kvsim::config {

/// O_DIRECT moves whole blocks of the file into whole pages of memory (assumed: 4 KiB both).
inline constexpr Bytes kDirectBlock{4096};

/// A matrix of all experts of a layer, one behind the other.
struct ExpertTensor {
  Bytes offset;  ///< of the first one's part in the file
  Bytes each;    ///< of every one's

  bool operator==(const ExpertTensor&) const = default;
};
/// Matrices of a layer; none if it has no experts.
using ExpertLayer = std::vector<ExpertTensor>;

/// The tensor holds all experts of its layer (ffn_gate_exps, ffn_up_exps, ffn_down_exps).
[[nodiscard]] bool is_of_experts(const TensorInfo& tensor);
/// By layer. Precondition: the model has experts, and the tensors are its own.
[[nodiscard]] std::vector<ExpertLayer> expert_layers(const LlmSpec& model,
                                                     const std::vector<TensorInfo>& tensors);

/// In memory, an expert's part of each matrix takes whole pages, one behind the other.
[[nodiscard]] Bytes expert_bytes(const ExpertLayer& layer);
/// Where its part of matrix `tensor` begins.
[[nodiscard]] Bytes part_begin(const ExpertLayer& layer, std::size_t tensor);

}  // namespace kvsim::config
