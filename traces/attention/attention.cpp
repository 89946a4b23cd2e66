// SPDX-License-Identifier: Apache-2.0
#include "traces/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "configs/error/error.h"
#include "traces/attention/online_softmax.h"
#include "traces/record/checked.h"

namespace kvsim::trace {
namespace {

/// Queries [first, first + count) of a task.
struct QueryTile {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

class Kernel {
 public:
  Kernel(const AttentionShape& shape, const KvCache& cache, const AttentionTask& task, AttentionValues values)
      : shape_(shape),
        cache_(cache),
        task_(task),
        values_(values),
        group_(static_cast<std::size_t>(shape.heads / cache.shape().kv_heads)),
        head_dim_(static_cast<std::size_t>(cache.shape().head_dim)),
        k_(head_dim_),
        v_(head_dim_) {}

  void run(AccessSink& sink) {
    const auto step = static_cast<std::uint32_t>(std::min<std::int64_t>(shape_.query_tile, task_.queries));
    for (Head head = task_.kv_heads.first; head < task_.kv_heads.last; ++head) {
      for (std::uint32_t first = 0; first < task_.queries; first += step) {
        run_tile(head, {.first = first, .count = std::min(step, task_.queries - first)}, sink);
      }
    }
    sink.put(Compute{.operations = operations(), .stream = task_.stream});
  }

 private:
  void run_tile(Head head, QueryTile queries, AccessSink& sink) {
    const std::uint32_t visible = task_.first.value() + queries.first + queries.count;
    const auto step = static_cast<std::uint32_t>(std::min<std::int64_t>(shape_.kv_tile, visible));
    start(head, queries);
    for (std::uint32_t first = 0; first < visible; first += step) {
      KvTile tile{.layer = task_.layer,
                  .side = KvSide::k,
                  .head = head,
                  .first = Token(first),
                  .tokens = std::min(step, visible - first),
                  .stream = task_.stream};
      cache_.access(tile, sink);
      tile.side = KvSide::v;
      cache_.access(tile, sink);
      accumulate(tile, queries);
    }
    finish(head, queries);
  }

  /// Loads the queries, scaled by 1/sqrt(head_dim), and forgets the results of the last ones.
  void start(Head head, QueryTile queries) {
    if (!cache_.has_payload()) {
      return;
    }
    const float scale = 1.0F / std::sqrt(static_cast<float>(head_dim_));
    queries_.clear();
    for (std::size_t q = 0; q < queries.count; ++q) {
      const auto rows = values_.q.subspan(offset(head, queries.first + q), group_ * head_dim_);
      std::transform(rows.begin(), rows.end(), std::back_inserter(queries_),
                     [scale](float x) { return x * scale; });
    }
    results_.assign(queries.count * group_, OnlineSoftmax(head_dim_));
  }

  void accumulate(const KvTile& tile, QueryTile queries) {
    if (!cache_.has_payload()) {
      return;
    }
    load(tile, KvSide::k, k_);
    load(tile, KvSide::v, v_);
    for (std::size_t q = 0; q < queries.count; ++q) {
      const std::uint64_t visible = task_.first.pos() + queries.first + q + 1;
      const std::uint64_t before = tile.first.value();
      const auto tokens = std::min<std::uint64_t>(tile.tokens, visible - std::min(before, visible));
      for (std::size_t i = q * group_; tokens > 0 && i < (q + 1) * group_; ++i) {
        results_[i].add(std::span(queries_).subspan(i * head_dim_, head_dim_), k_, v_, tokens);
      }
    }
  }

  void load(const KvTile& tile, KvSide side, FloatTile& numbers) const {
    numbers.clear();
    for (std::uint32_t i = 0; i < tile.tokens; ++i) {
      numbers.add(cache_.values(tile.layer, side, Token(tile.first.value() + i), tile.head));
    }
  }

  void finish(Head head, QueryTile queries) {
    if (!cache_.has_payload()) {
      return;
    }
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const std::size_t at = offset(head, queries.first + i / group_) + i % group_ * head_dim_;
      results_[i].write(values_.out.subspan(at, head_dim_));
    }
  }

  /// Of the first query head that reads `head`, in q and out.
  std::size_t offset(Head head, std::size_t query) const {
    return (query * static_cast<std::size_t>(shape_.heads) + head.pos() * group_) * head_dim_;
  }

  std::uint64_t operations() const {
    const KvShape& kv = cache_.shape();
    const double per_pair =
        2 * static_cast<double>(head_dim_) / 32 * kv.type.simd_ops_per_32 + kSoftmaxOpsPerScore;
    const auto heads = static_cast<double>((task_.kv_heads.last.pos() - task_.kv_heads.first.pos()) * group_);
    return checked_operations(static_cast<double>(visible_pairs(task_.first, task_.queries)) * heads *
                              per_pair);
  }

  const AttentionShape& shape_;
  const KvCache& cache_;
  const AttentionTask& task_;
  AttentionValues values_;
  std::size_t group_;  // query heads per KV head
  std::size_t head_dim_;
  std::vector<float> queries_;  // [query][head of the group][head_dim]
  std::vector<OnlineSoftmax> results_;
  FloatTile k_;
  FloatTile v_;
};

}  // namespace

std::uint64_t visible_pairs(Token first, std::uint32_t queries) {
  return std::uint64_t{first.value()} * queries + std::uint64_t{queries} * (std::uint64_t{queries} + 1) / 2;
}

void attend(const AttentionShape& shape, const KvCache& cache, const AttentionTask& task,
            AttentionValues values, AccessSink& sink) {
  const KvShape& kv = cache.shape();
  check(shape.kv_tile > 0 && shape.query_tile > 0, "tiles have a size");
  check(shape.heads > 0 && shape.heads % kv.kv_heads == 0, "query heads share KV heads evenly");
  check(task.queries > 0 && std::uint64_t{task.first.value()} + task.queries <= cache.depth(),
        "queries are of tokens in the cache");
  check(task.kv_heads.first < task.kv_heads.last && task.kv_heads.last.value() <= kv.kv_heads,
        "an attention task has heads of the cache");
  const auto numbers = static_cast<std::size_t>(task.queries * shape.heads * kv.head_dim);
  const std::size_t wanted = cache.has_payload() ? numbers : 0;
  check(values.q.size() == wanted && values.out.size() == wanted,
        "attention gets numbers if and only if the cache has a payload");
  Kernel(shape, cache, task, values).run(sink);
}

}  // namespace kvsim::trace
