// SPDX-License-Identifier: Apache-2.0
// Tiled attention with online softmax over the KV cache: emits its accesses, and computes when there is a
// payload.
#pragma once

#include <cstdint>
#include <span>

#include "configs/units/index.h"
#include "traces/kv_cache/kv_cache.h"
#include "traces/record/source.h"

namespace kvsim::trace {

struct AttentionShape {
  std::int64_t heads = 0;        ///< query heads; head h reads KV head h / (heads / KV heads)
  std::int64_t kv_tile = 128;    ///< cached tokens per tile
  std::int64_t query_tile = 64;  ///< queries that use a tile while it is near (ggml-cpu: GGML_FA_TILE_Q)
};

/// SIMD operations of softmax per score: four scores take 24, of which the exponential is about 17
/// (ggml_v_expf in ggml-cpu/vec.h) and the rest maximum, difference, sum and moving them.
inline constexpr double kSoftmaxOpsPerScore = 24.0 / 4;

/// KV heads [first, last).
struct HeadRange {
  Head first{};
  Head last{};
};

/// One thread's share: the queries at positions first, first + 1, ... and some KV heads with all query heads
/// that read them. A query sees the tokens up to its own.
struct AttentionTask {
  Layer layer{};
  Token first{};
  std::uint32_t queries = 0;
  HeadRange kv_heads{};
  Stream stream{};
};

/// Real numbers, [query][head][head_dim] over all query heads of the model; both empty without payload.
struct AttentionValues {
  std::span<const float> q{};
  std::span<float> out{};
};

/// (query, cached token) pairs that the causal mask lets through, for one query head.
[[nodiscard]] std::uint64_t visible_pairs(Token first, std::uint32_t queries);

/// For each KV head of the task and each query tile: K and V of every tile that one of its queries sees,
/// once. Then one Compute: per visible pair and query head two products of head_dim and a softmax.
/// Accumulates in FP32. Preconditions: the queries' tokens are in the cache; `values` has numbers if and only
/// if the cache has.
void attend(const AttentionShape& shape, const KvCache& cache, const AttentionTask& task,
            AttentionValues values, AccessSink& sink);

}  // namespace kvsim::trace
