// SPDX-License-Identifier: Apache-2.0
// How much state a model keeps per sequence where its layers are not all alike: local and global attention,
// latent attention, recurrent layers. Sizes only.
#pragma once

#include <cstdint>
#include <span>

#include "configs/spec/kv_format.h"
#include "configs/units/quantity.h"

namespace kvsim::trace {

/// Layers that have as many cells each, and rows alike in them.
struct KvLayers {
  std::int64_t layers = 0;
  Bytes row{};  ///< of one layer's cell
  std::int64_t cells = 0;
};

/// The functions below throw UserError if a format does not divide what it shall hold, or if a size does not
/// fit into 63 bits.

[[nodiscard]] Bytes cache_bytes(std::span<const KvLayers> classes);

/// K and V of all heads (multi-head, grouped and multi-query attention).
struct HeadsRow {
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  config::KvFormat k{};
  config::KvFormat v{};
};
[[nodiscard]] Bytes row_bytes(const HeadsRow& row);

/// Multi-head latent attention keeps one vector for all heads, of which the values are a part: K alone
/// (llama.cpp since it has `is_mla`; DeepSeek: 512 + 64).
struct LatentRow {
  std::int64_t latent = 0;  ///< kv_lora_rank
  std::int64_t rope = 0;    ///< qk_rope_head_dim
  config::KvFormat format{};
};
[[nodiscard]] Bytes row_bytes(const LatentRow& row);
/// The latent part once more, transposed, in F16: what engines kept beside it for attention without
/// FlashAttention.
[[nodiscard]] Bytes transposed_row_bytes(const LatentRow& row);

/// Cells of a layer that sees the last `window` tokens (llama-kv-cache-iswa.cpp).
struct WindowCells {
  std::int64_t context = 0;  ///< cells of a layer that sees all
  std::int64_t window = 0;
  std::int64_t ubatch = 512;
  std::int64_t sequences = 1;  ///< that share the cells
  std::int64_t padding = 256;
};
[[nodiscard]] std::int64_t cells(const WindowCells& window);

/// Of every `period` layers the first `locals` are local (Gemma 2: 1 of 2, Gemma 3: 5 of 6).
struct Interleaving {
  std::int64_t layers = 0;
  std::int64_t period = 1;
  std::int64_t locals = 0;
};
/// Layers that see only their window. Precondition: 0 <= `locals` <= `period`, `period` > 0.
[[nodiscard]] std::int64_t local_layers(const Interleaving& pattern);

/// State-space layers (Mamba): what the convolution and the recurrence carry from token to token, in F32. Per
/// sequence, however long it is.
struct RecurrentState {
  std::int64_t layers = 0;
  std::int64_t inner = 0;  ///< ssm.inner_size
  std::int64_t state = 0;  ///< ssm.state_size
  std::int64_t conv = 0;   ///< ssm.conv_kernel
};
[[nodiscard]] Bytes state_bytes(const RecurrentState& state);

}  // namespace kvsim::trace
