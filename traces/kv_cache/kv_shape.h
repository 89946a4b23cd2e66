// SPDX-License-Identifier: Apache-2.0
// How large a KV cache is: every size follows from the shape by one formula.
#pragma once

#include <cstdint>

#include "configs/spec/kv_spec.h"
#include "configs/spec/run_spec.h"
#include "configs/units/quantity.h"

namespace kvsim::trace {

enum class KvSide : std::uint8_t { k, v };

/// Layout [layer][K, V], then by `layout`, then [head_dim].
struct KvShape {
  std::int64_t layers = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t capacity = 0;  ///< tokens of the context: a hard limit
  config::KvSpec spec{};      ///< formats, and which tokens stay
  std::int64_t batch = 1;     ///< tokens that come in together at most
  std::int64_t reserved = 0;  ///< cells that there are at least, up to the capacity, where fewer tokens stay
  std::int64_t latent = 0;    ///< not 0: V is not kept, it is the first so many numbers of K
  Bytes head_alignment{1};    ///< a head's vector is padded to a multiple of this; 64 B is a cache line
  config::KvLayout layout = config::KvLayout::token_major;
  bool v_transposed = false;  ///< V lies [head][number][token], whatever the layout of K
  std::int64_t block = 16;    ///< tokens of a page, if paged
  config::KvBlockOrder block_order = config::KvBlockOrder::in_order;
  std::uint64_t seed = 1;  ///< of the order of shuffled pages
};

/// `tokens` rounded up to a multiple of `padding` (llama-context.cpp: 256).
[[nodiscard]] std::int64_t padded_context(std::int64_t tokens, std::int64_t padding);

/// The functions below throw UserError if head_dim does not fill whole blocks of a format (llama.cpp refuses
/// it too) or if a size does not fit into 63 bits.

/// K or V of one head and token in a format, scales and padding included.
[[nodiscard]] Bytes head_bytes(const KvShape& shape, const config::KvFormat& format);
/// The same of one side: nothing of a V that is not kept.
[[nodiscard]] Bytes side_bytes(const KvShape& shape, KvSide side, const config::KvFormat& format);
/// K and V of one token in all layers, in the cache's own formats.
[[nodiscard]] Bytes bytes_per_token(const KvShape& shape);
/// Tokens that have room in the cache's own formats: the capacity or, if fewer stay, those and a batch; in
/// whole pages if paged.
[[nodiscard]] std::int64_t main_cells(const KvShape& shape);
/// The first tokens, which are kept in F16.
[[nodiscard]] std::int64_t first_in_f16(const KvShape& shape);
/// Tokens that wait in F16 until they are put into the cache's own format: the recent ones, and those whose
/// group for a range by channel is not full.
[[nodiscard]] std::int64_t recent_in_f16(const KvShape& shape);
/// Tokens of a group that share a range by channel; 1 without.
[[nodiscard]] std::int64_t group_tokens(const KvShape& shape);
/// Tokens that have room in F16.
[[nodiscard]] std::int64_t wide_cells(const KvShape& shape);
/// The smallest and largest of each channel of a page's keys in F16, of one head: what `topk` ranks pages by.
[[nodiscard]] Bytes page_bounds_bytes(const KvShape& shape);
/// Their room: 0 unless `first`, `recent` or a range by channel keeps some in F16.
[[nodiscard]] Bytes wide_bytes(const KvShape& shape);
/// The whole cache.
[[nodiscard]] Bytes total_bytes(const KvShape& shape);

}  // namespace kvsim::trace
