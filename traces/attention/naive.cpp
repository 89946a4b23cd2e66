// SPDX-License-Identifier: Apache-2.0
#include "traces/attention/naive.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "configs/error/error.h"
#include "traces/attention/operands.h"
#include "traces/record/checked.h"
#include "traces/simd/simd.h"

namespace kvsim::trace {
namespace {

/// Cells of a pool; their columns in the score matrix begin at `column`.
struct CellTile {
  KvPoolKind pool = KvPoolKind::main;
  CellRun cells;
  std::size_t column = 0;
};

class NaiveKernel {
 public:
  NaiveKernel(const AttentionShape& shape, const KvCache& cache, const AttentionTask& task,
              const AttentionValues& values, AccessSink& sink)
      : shape_(shape),
        cache_(cache),
        task_(task),
        values_(values),
        sink_(sink),
        operands_(shape, cache.shape(), task),
        group_(static_cast<std::size_t>(shape.heads / cache.shape().kv_heads)),
        head_dim_(static_cast<std::size_t>(cache.shape().head_dim)) {}

  void run() {
    double computed = 0;
    for (Head kv_head = task_.kv_heads.first; kv_head < task_.kv_heads.last; ++kv_head) {
      find_cells(kv_head);
      for (std::size_t i = 0; i < group_; ++i) {
        run_head(kv_head, static_cast<std::uint32_t>(kv_head.pos() * group_ + i));
      }
      computed += static_cast<double>(columns_ * task_.queries * group_);
    }
    const double operations = computed * simd_ops_per_score(cache_.shape());
    sink_.put(Compute{.operations = checked_operations(operations), .stream = task_.stream});
  }

 private:
  /// All that are or were in use, up to those of the last query.
  void find_cells(Head head) {
    const KvLane& lane = cache_.lane(task_.layer, head);
    tiles_.clear();
    columns_ = 0;
    for (const KvPoolKind pool : kKvPools) {
      const std::uint32_t end =
          lane.in_order() ? std::min(lane.end(pool), task_.first.value() + task_.queries) : lane.end(pool);
      const auto step = static_cast<std::uint32_t>(std::min<std::int64_t>(shape_.kv_tile, end));
      for (std::uint32_t first = 0; first < end; first += step) {
        tiles_.push_back({.pool = pool,
                          .cells = {.first = first, .count = std::min(step, end - first)},
                          .column = columns_ + first});
      }
      columns_ += end;
    }
  }

  void run_head(Head kv_head, std::uint32_t head) {
    if (cache_.has_payload()) {
      scores_.resize(task_.queries * columns_);
    }
    for_query_tiles([&](QueryTile queries) { score(kv_head, head, queries); });
    for_query_tiles([&](QueryTile queries) { weigh(kv_head, head, queries); });
    for_query_tiles([&](QueryTile queries) { output(kv_head, head, queries); });
  }

  template <class Do>
  void for_query_tiles(const Do& work) const {
    const auto step = static_cast<std::uint32_t>(std::min<std::int64_t>(shape_.query_tile, task_.queries));
    for (std::uint32_t first = 0; first < task_.queries; first += step) {
      work(QueryTile{.first = first, .count = std::min(step, task_.queries - first)});
    }
  }

  void score(Head kv_head, std::uint32_t head, QueryTile queries) {
    operands_.read_q({.first = head, .count = 1}, queries, sink_);
    if (cache_.has_payload()) {
      load_queries(head, queries);
    }
    for (const CellTile& tile : tiles_) {
      read(KvSide::k, kv_head, tile);
      operands_.access_scores(scores(head, queries, tile), Access::write, sink_);
      if (!cache_.has_payload()) {
        continue;
      }
      load(KvSide::k, kv_head, tile);
      part_.resize(queries.count * tile.cells.count);
      simd::products({.numbers = queries_, .columns = head_dim_}, {.numbers = numbers_, .columns = head_dim_},
                     part_);
      for (std::size_t q = 0; q < queries.count; ++q) {
        std::copy_n(part_.begin() + static_cast<std::ptrdiff_t>(q * tile.cells.count), tile.cells.count,
                    row(queries.first + q).subspan(tile.column).begin());
      }
    }
  }

  void weigh(Head kv_head, std::uint32_t head, QueryTile queries) {
    const ScoreRun all{.head = head, .queries = queries, .column = 0, .count = columns_, .columns = columns_};
    operands_.access_scores(all, Access::read, sink_);
    operands_.access_weights(all, Access::write, sink_);
    for (std::uint32_t q = queries.first; cache_.has_payload() && q < queries.first + queries.count; ++q) {
      const std::span<float> of_query = row(q);
      mask(kv_head, q, of_query);
      const float sum = simd::exponentials(of_query, simd::maximum(of_query));
      simd::scale(of_query, 1 / sum);
    }
  }

  void mask(Head kv_head, std::uint32_t query, std::span<float> of_query) const {
    const KvLane& lane = cache_.lane(task_.layer, kv_head);
    const Token position(task_.first.value() + query);
    for (const CellTile& tile : tiles_) {
      for (std::uint32_t i = 0; i < tile.cells.count; ++i) {
        const auto& resident = lane.at({.pool = tile.pool, .index = tile.cells.first + i});
        if (!resident || resident->token > position || !cache_.policy().sees(position, resident->token)) {
          of_query[tile.column + i] = -std::numeric_limits<float>::infinity();
        }
      }
    }
  }

  void output(Head kv_head, std::uint32_t head, QueryTile queries) {
    out_.assign(cache_.has_payload() ? queries.count * head_dim_ : 0, 0);
    for (const CellTile& tile : tiles_) {
      operands_.access_weights(scores(head, queries, tile), Access::read, sink_);
      read(KvSide::v, kv_head, tile);
      if (!cache_.has_payload()) {
        continue;
      }
      load(KvSide::v, kv_head, tile);
      part_.clear();
      for (std::size_t q = 0; q < queries.count; ++q) {
        const auto weights = row(queries.first + q).subspan(tile.column, tile.cells.count);
        part_.insert(part_.end(), weights.begin(), weights.end());
      }
      simd::add_products({.numbers = part_, .columns = tile.cells.count},
                         {.numbers = numbers_, .columns = head_dim_}, out_);
    }
    for (std::size_t q = 0; cache_.has_payload() && q < queries.count; ++q) {
      std::copy_n(out_.begin() + static_cast<std::ptrdiff_t>(q * head_dim_), head_dim_,
                  values_.out.subspan(offset(head, queries.first + q)).begin());
    }
    operands_.write_out({.first = head, .count = 1}, queries, sink_);
  }

  void load_queries(std::uint32_t head, QueryTile queries) {
    const float scale = 1.0F / std::sqrt(static_cast<float>(head_dim_));
    queries_.clear();
    for (std::size_t q = 0; q < queries.count; ++q) {
      for (const float x : values_.q.subspan(offset(head, queries.first + q), head_dim_)) {
        queries_.push_back(x * scale);
      }
    }
  }

  void read(KvSide side, Head kv_head, const CellTile& tile) const {
    cache_.pool(tile.pool).access_head({.layer = task_.layer, .side = side, .head = kv_head}, tile.cells,
                                       Access::read, task_.stream, sink_);
  }
  /// Cells without a token hold what was there before, or nothing: numbers that the mask takes out.
  void load(KvSide side, Head kv_head, const CellTile& tile) {
    numbers_.assign(tile.cells.count * head_dim_, 0);
    cache_.pool(tile.pool).load({.layer = task_.layer, .side = side, .head = kv_head}, tile.cells, numbers_);
  }

  [[nodiscard]] ScoreRun scores(std::uint32_t head, QueryTile queries, const CellTile& tile) const {
    return {.head = head,
            .queries = queries,
            .column = tile.column,
            .count = tile.cells.count,
            .columns = columns_};
  }
  std::span<float> row(std::size_t query) { return std::span(scores_).subspan(query * columns_, columns_); }
  [[nodiscard]] std::size_t offset(std::uint32_t head, std::size_t query) const {
    return (query * static_cast<std::size_t>(shape_.heads) + head) * head_dim_;
  }

  const AttentionShape& shape_;
  const KvCache& cache_;
  const AttentionTask& task_;
  const AttentionValues& values_;
  AccessSink& sink_;
  AttentionOperands operands_;
  std::size_t group_;  // query heads per KV head
  std::size_t head_dim_;
  std::vector<CellTile> tiles_;
  std::size_t columns_ = 0;     // of the score matrix
  std::vector<float> scores_;   // [query][column] of one head, then weights
  std::vector<float> queries_;  // [query][head_dim] of a tile
  std::vector<float> numbers_;  // of K or V, [cell][head_dim] of a tile
  std::vector<float> part_;     // of scores_ or weights, [query][cell] of a tile
  std::vector<float> out_;      // [query][head_dim] of a tile
};

}  // namespace

void attend_naively(const AttentionShape& shape, const KvCache& cache, const AttentionTask& task,
                    const AttentionValues& values, AccessSink& sink) {
  check(task.memory.has_value(), "naive attention's scores have a place");
  check(!cache.policy().ranks() && cache.shape().spec.topk == 0 && values.mass == nullptr,
        "policies that rank see scores in tiles");
  NaiveKernel(shape, cache, task, values, sink).run();
}

}  // namespace kvsim::trace
