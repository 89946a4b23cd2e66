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

/// What latent attention has besides. Q, its heads' parts with a position, and its absorbed parts lie side by
/// side, so that attention reads one row.
struct LatentActivations {
  Activation q_down;    ///< queries after their down-projection
  Activation q_rope;    ///< the parts of q with a position,
  Activation q_plain;   ///< and those without
  Activation absorbed;  ///< q_plain times the up-projection of K
  Activation queries;   ///< absorbed and q_rope
  Activation latent;    ///< the parts of k without a position,
  Activation k_rope;    ///< and that with one
  Activation values;    ///< what attention makes of the latents
};

/// What a mixture of experts has: of each token the numbers of all experts that it takes side by side. The
/// shared experts come when the others are done, and `out` when gate and up are, in their place.
struct ExpertActivations {
  Activation scores;  ///< of the router, one per expert; the shares are written over them
  Activation gate;
  Activation up;
  Activation activated;
  Activation out;
  Activation shared_gate;
  Activation shared_up;
  Activation shared_activated;
};

/// The activations of a Llama-family layer. Those of attention and those of the feed-forward network share a
/// place, since they are never needed together.
struct Activations {
  Activation residual;
  Activation normed;
  Activation q;  ///< with fused_qkv, q, k and v are parts of one row
  Activation k;  ///< latent attention: the whole latent vector
  Activation v;
  LatentActivations latent;  ///< if the model has it; it has no v
  Activation attended;
  Activation gate;  ///< with fused_qkv, gate and up are parts of one row
  Activation up;
  Activation activated;
  ExpertActivations experts;  ///< if the model has them
  Bytes bytes{};              ///< all of them
};

/// For up to `tokens` tokens computed together, from `base` on. Throws UserError if they do not fit into 63
/// bits.
[[nodiscard]] Activations place_activations(const config::LlmSpec& model, std::int64_t tokens, Address base);

}  // namespace kvsim::trace
