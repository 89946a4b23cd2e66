// SPDX-License-Identifier: Apache-2.0
// Attention over the KV cache, in tiles with an online softmax or with the score matrix in memory: emits its
// accesses, and computes when there is a payload.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "configs/units/index.h"
#include "traces/attention/mass.h"
#include "traces/attention/method.h"
#include "traces/attention/page_source.h"
#include "traces/kv_cache/kv_cache.h"
#include "traces/record/source.h"

namespace kvsim::trace {

struct AttentionShape {
  std::int64_t heads = 0;        ///< query heads; head h reads KV head h / (heads / KV heads)
  std::int64_t kv_tile = 128;    ///< cells per tile
  std::int64_t query_tile = 64;  ///< queries that use a tile while it is near (ggml-cpu: GGML_FA_TILE_Q)
  AttentionMethod method = AttentionMethod::tiled;
};

/// SIMD operations of softmax per score: four scores take 24, of which the exponential is about 17
/// (ggml_v_expf in ggml-cpu/vec.h) and the rest maximum, difference, sum and moving them.
inline constexpr double kSoftmaxOpsPerScore = 24.0 / 4;

/// 128-bit SIMD operations of a dot product with 32 numbers in a format, dequantising included. Of GGML's
/// types and floats counted in ggml-cpu's NEON code, as for weights (configs/catalogue/tensor_types); the
/// others assumed to cost what the GGML type of their width does, FP8 a table look-up more.
[[nodiscard]] double simd_ops_per_32(const config::KvFormat& format);

/// Both products with one cached token and its softmax, for one query and query head.
[[nodiscard]] double simd_ops_per_score(const KvShape& kv);

/// Of Q, O, scores and weights in memory: FP32.
inline constexpr Bytes kAttentionNumber{4};

/// Where they lie: Q and O as [query][head][head_dim]; S and P, if naive, as [head][query][cell].
struct AttentionMemory {
  Address q = 0;
  Address out = 0;
  Address scores = 0;
  Address weights = 0;
};

/// KV heads [first, last).
struct HeadRange {
  Head first{};
  Head last{};
};

/// One thread's share: the queries at positions first, first + 1, ... and some KV heads with all query heads
/// that read them. A query sees the tokens up to its own, as far as the cache's policy lets it.
struct AttentionTask {
  Layer layer{};
  Token first{};
  std::uint32_t queries = 0;
  HeadRange kv_heads{};
  Stream stream{};
  std::optional<AttentionMemory> memory{};  ///< none: Q and O are accounted for elsewhere
};

/// Real numbers, [query][head][head_dim] over all query heads of the model; both empty without payload.
struct AttentionValues {
  std::span<const float> q{};
  std::span<float> out{};
  MassSink* mass = nullptr;            ///< hears of every query's weights, if wanted
  const MassSource* source = nullptr;  ///< gives the weights where none are computed; null: SyntheticMass
  PageSource* pages = nullptr;  ///< chooses pages where none are computed; null: those with most of `source`
};

/// (query, cached token) pairs that the causal mask lets through, for one query head.
[[nodiscard]] std::uint64_t visible_pairs(Token first, std::uint32_t queries);

/// Tiled: for each KV head of the task and each query tile Q, K and V of every tile of cells that one of its
/// queries sees, once, then O. Then one Compute: per visible pair and query head two products of head_dim and
/// a softmax. Naive: see naive.h. Accumulates in FP32, and tells the cache's policy what each token drew.
/// Preconditions: the queries' tokens are in the cache, one query only if the policy ranks; `values` has
/// numbers if and only if the cache has; if naive, `task.memory` is given and no policy ranks.
void attend(const AttentionShape& shape, KvCache& cache, const AttentionTask& task,
            const AttentionValues& values, AccessSink& sink);

}  // namespace kvsim::trace
