// SPDX-License-Identifier: Apache-2.0
// Accesses of attention beside K and V: queries, results, and score matrices where these are in memory.
#pragma once

#include "traces/attention/attention.h"

namespace kvsim::trace {

/// Queries [first, first + count) of a task.
struct QueryTile {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// Query heads side by side.
struct QueryHeads {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// Some columns of a head's score matrix, of some queries.
struct ScoreRun {
  std::uint32_t head = 0;
  QueryTile queries;
  std::size_t column = 0;
  std::size_t count = 0;
  std::size_t columns = 0;  ///< of the whole matrix
};

/// Emits nothing if the task has no memory: then somebody else accounts for it.
class AttentionOperands {
 public:
  AttentionOperands(const AttentionShape& shape, const KvShape& kv, const AttentionTask& task)
      : heads_(shape.heads), head_dim_(kv.head_dim), task_(task) {}

  void read_q(QueryHeads heads, QueryTile queries, AccessSink& sink) const {
    if (task_.memory) {
      sink.put(vectors(task_.memory->q, heads, queries, Access::read));
    }
  }
  void write_out(QueryHeads heads, QueryTile queries, AccessSink& sink) const {
    if (task_.memory) {
      sink.put(vectors(task_.memory->out, heads, queries, Access::write));
    }
  }
  void access_scores(const ScoreRun& run, Access access, AccessSink& sink) const {
    sink.put(matrix(task_.memory->scores, run, access));
  }
  void access_weights(const ScoreRun& run, Access access, AccessSink& sink) const {
    sink.put(matrix(task_.memory->weights, run, access));
  }

 private:
  /// Rows without gaps are one.
  [[nodiscard]] Extent rows(Address address, Bytes row, std::uint32_t count, Bytes stride) const {
    const bool whole = row == stride;
    return {.address = address,
            .row_bytes = whole ? row * std::int64_t{count} : row,
            .rows = whole || count == 1 ? 1 : count,
            .stride = whole        ? row * std::int64_t{count}
                      : count == 1 ? row
                                   : stride,
            .kind = Kind::scratch,
            .stream = task_.stream};
  }
  [[nodiscard]] Extent vectors(Address matrix, QueryHeads heads, QueryTile queries, Access access) const {
    const std::int64_t first = (queries.first * heads_ + heads.first) * head_dim_;
    Extent e = rows(matrix + static_cast<Address>((kAttentionNumber * first).count()),
                    kAttentionNumber * (heads.count * head_dim_), queries.count,
                    kAttentionNumber * (heads_ * head_dim_));
    e.access = access;
    return e;
  }
  [[nodiscard]] Extent matrix(Address base, const ScoreRun& run, Access access) const {
    const auto i64 = [](std::size_t n) { return static_cast<std::int64_t>(n); };
    const std::int64_t row = std::int64_t{run.head} * task_.queries + run.queries.first;
    Extent e = rows(
        base + static_cast<Address>((kAttentionNumber * (row * i64(run.columns) + i64(run.column))).count()),
        kAttentionNumber * i64(run.count), run.queries.count, kAttentionNumber * i64(run.columns));
    e.access = access;
    return e;
  }

  std::int64_t heads_;
  std::int64_t head_dim_;
  const AttentionTask& task_;
};

}  // namespace kvsim::trace
