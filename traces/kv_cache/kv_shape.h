// SPDX-License-Identifier: Apache-2.0
// How large a KV cache is: every size follows from the shape by one formula.
#pragma once

#include <cstdint>

#include "configs/spec/run_spec.h"
#include "configs/units/quantity.h"

namespace kvsim::trace {

/// Layout [layer][K, V], then by `layout`, then [head_dim].
struct KvShape {
  std::int64_t layers = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t capacity = 0;  ///< tokens
  config::TensorType type{};
  Bytes head_alignment{1};  ///< a head's vector is padded to a multiple of this; 64 B is a cache line
  config::KvLayout layout = config::KvLayout::token_major;
  std::int64_t block = 16;  ///< tokens of a page, if paged
  config::KvBlockOrder block_order = config::KvBlockOrder::in_order;
  std::uint64_t seed = 1;  ///< of the order of shuffled pages
};

/// `tokens` rounded up to a multiple of `padding` (llama-context.cpp: 256).
[[nodiscard]] std::int64_t padded_context(std::int64_t tokens, std::int64_t padding);

/// The sizes below throw UserError if head_dim does not fill whole blocks of the type (llama.cpp refuses it
/// too) or if a size does not fit into 63 bits.

/// K (or V) of one head and token, padding included.
[[nodiscard]] Bytes head_bytes(const KvShape& shape);
/// K (or V) of all heads of one token in one layer.
[[nodiscard]] Bytes row_bytes(const KvShape& shape);
/// K and V of one token in all layers.
[[nodiscard]] Bytes bytes_per_token(const KvShape& shape);
/// Tokens that there is room for: the capacity, in whole pages if paged.
[[nodiscard]] std::int64_t cells(const KvShape& shape);
/// The whole cache.
[[nodiscard]] Bytes total_bytes(const KvShape& shape);

}  // namespace kvsim::trace
