// SPDX-License-Identifier: Apache-2.0
// Where the numbers between operators lie: fixed places in the compute buffer, FP32, one row per token.
#pragma once

#include <cstdint>

#include "configs/spec/model_spec.h"
#include "configs/units/quantity.h"
#include "traces/record/record.h"

namespace kvsim::trace {

/// A row of `width` numbers per token, rows `stride` apart (0: one row, written for one token of a step).
struct Activation {
  Address address = 0;
  std::int64_t width = 0;
  Bytes stride{};
};

inline constexpr std::int64_t kActivationBytes = 4;  ///< FP32, as ggml computes

/// The activations of a Llama-family layer. Those of attention and those of the feed-forward network share a
/// place, since they are never needed together.
struct Activations {
  Activation residual;
  Activation normed;
  Activation q;  ///< with fused_qkv, q, k and v are parts of one row
  Activation k;
  Activation v;
  Activation attended;
  Activation gate;  ///< with fused_qkv, gate and up are parts of one row
  Activation up;
  Activation activated;
  Bytes bytes{};  ///< all of them
};

/// For up to `tokens` tokens computed together, from `base` on. Throws UserError if they do not fit into 63
/// bits.
[[nodiscard]] Activations place_activations(const config::LlmSpec& model, std::int64_t tokens, Address base);

}  // namespace kvsim::trace
