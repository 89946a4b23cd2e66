// SPDX-License-Identifier: Apache-2.0
#include "traces/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <vector>

#include "configs/error/error.h"
#include "traces/attention/naive.h"
#include "traces/attention/operands.h"
#include "traces/attention/tile.h"
#include "traces/number/half.h"
#include "traces/record/checked.h"

namespace kvsim::trace {
namespace {

/// Cells of a tile that were looked at, with the scores of all rows: [row][cell].
struct SeenTile {
  KvPoolKind pool = KvPoolKind::main;
  CellRun cells;
  std::vector<float> scores;
};

class Kernel {
 public:
  Kernel(const AttentionShape& shape, KvCache& cache, const AttentionTask& task,
         const AttentionValues& values)
      : shape_(shape),
        cache_(cache),
        task_(task),
        values_(values),
        operands_(shape, cache.shape(), task),
        group_(static_cast<std::size_t>(shape.heads / cache.shape().kv_heads)),
        head_dim_(static_cast<std::size_t>(cache.shape().head_dim)),
        keeps_scores_(cache.policy().ranks() || values.mass != nullptr),
        results_(head_dim_) {}

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
    const auto group = static_cast<std::uint32_t>(group_);
    const QueryHeads heads{.first = head.value() * group, .count = group};
    operands_.read_q(heads, queries, sink);
    start(head, queries);
    for (const KvPoolKind pool : kKvPools) {
      const std::uint32_t end = cells_in_sight(head, pool, queries);
      if (pool == KvPoolKind::main && ranks_pages(end)) {
        for (const CellRun& run : chosen_pages(head, end, sink)) {
          run_cells(head, pool, queries, run, sink);
        }
      } else {
        run_cells(head, pool, queries, {.first = 0, .count = end}, sink);
      }
    }
    finish(head, queries);
    operands_.write_out(heads, queries, sink);
  }

  void run_cells(Head head, KvPoolKind pool, QueryTile queries, CellRun run, AccessSink& sink) {
    const auto step = static_cast<std::uint32_t>(std::min<std::int64_t>(shape_.kv_tile, run.count));
    for (std::uint32_t done = 0; done < run.count; done += step) {
      const CellRun tile{.first = run.first + done, .count = std::min(step, run.count - done)};
      for (const CellRun& cells : seen(head, pool, queries, tile)) {
        read(head, pool, cells, sink);
        accumulate(head, pool, queries, cells);
      }
    }
  }

  /// A single query reads the best pages only, if there are more (Quest); a prompt is read whole.
  bool ranks_pages(std::uint32_t cells) const {
    const std::int64_t topk = cache_.shape().spec.topk;
    return topk > 0 && task_.queries == 1 && cells > topk;
  }

  /// The pages with the highest bounds, and the last one, as runs of cells; reads all bounds.
  std::vector<CellRun> chosen_pages(Head head, std::uint32_t cells, AccessSink& sink) {
    constexpr auto kPage = static_cast<std::uint32_t>(config::kTopkPage);
    const std::uint32_t pages = (cells + kPage - 1) / kPage;
    cache_.read_bounds({.layer = task_.layer, .head = head}, pages, task_.stream, sink);
    const auto wanted = static_cast<std::uint32_t>(cache_.shape().spec.topk / kPage);
    std::vector<CellRun> runs;
    const auto add = [&](std::uint32_t page) {
      const std::uint32_t first = page * kPage;
      runs.push_back({.first = first, .count = std::min(kPage, cells - first)});
    };
    if (!cache_.has_payload() && values_.pages != nullptr) {
      std::ranges::for_each(
          values_.pages->choose(
              {.layer = task_.layer, .head = head, .query = task_.first, .pages = pages, .wanted = wanted}),
          add);
    } else {
      std::ranges::for_each(
          best_pages(cache_.has_payload() ? page_bounds(head, cells) : page_masses(head, cells), wanted),
          add);
    }
    return runs;
  }

  /// Upper bounds of the scores of a page's keys with the query, the highest over the query heads: each
  /// channel's product is largest with the channel's smallest or largest number, which are kept in F16.
  std::vector<float> page_bounds(Head head, std::uint32_t cells) {
    constexpr auto kPage = static_cast<std::uint32_t>(config::kTopkPage);
    std::vector<float> bounds;
    std::vector<float> low(head_dim_), high(head_dim_);
    for (std::uint32_t first = 0; first < cells; first += kPage) {
      const std::uint32_t count = std::min(kPage, cells - first);
      numbers_.resize(count * head_dim_);
      cache_.pool(KvPoolKind::main)
          .load({.layer = task_.layer, .side = KvSide::k, .head = head}, {.first = first, .count = count},
                numbers_);
      for (std::size_t d = 0; d < head_dim_; ++d) {
        low[d] = high[d] = numbers_[d];
        for (std::size_t i = 1; i < count; ++i) {
          low[d] = std::min(low[d], numbers_[i * head_dim_ + d]);
          high[d] = std::max(high[d], numbers_[i * head_dim_ + d]);
        }
        low[d] = to_float(to_half(low[d]));
        high[d] = to_float(to_half(high[d]));
      }
      float best = -std::numeric_limits<float>::infinity();
      for (std::size_t row = 0; row < group_; ++row) {
        float bound = 0;
        for (std::size_t d = 0; d < head_dim_; ++d) {
          const float q = queries_[row * head_dim_ + d];
          bound += std::max(q * low[d], q * high[d]);
        }
        best = std::max(best, bound);
      }
      bounds.push_back(best);
    }
    return bounds;
  }

  /// In place of bounds where nothing is computed: the mass of a page's tokens.
  std::vector<float> page_masses(Head head, std::uint32_t cells) const {
    const KvLane& lane = cache_.lane(task_.layer, head);
    std::vector<Token> tokens;
    for (std::uint32_t cell = 0; cell < cells; ++cell) {
      tokens.push_back(lane.at({.pool = KvPoolKind::main, .index = cell})->token);
    }
    std::vector<float> mass(cells);
    source().fill({.layer = task_.layer, .head = head, .query = task_.first}, tokens, mass);
    std::vector<float> by_page((cells + config::kTopkPage - 1) / config::kTopkPage);
    for (std::uint32_t cell = 0; cell < cells; ++cell) {
      by_page[cell / config::kTopkPage] += mass[cell];
    }
    return by_page;
  }

  /// In ascending order; of equal ones the later; the last one always.
  static std::vector<std::uint32_t> best_pages(const std::vector<float>& scores, std::int64_t count) {
    std::vector<std::uint32_t> pages(scores.size());
    std::iota(pages.begin(), pages.end(), 0U);
    const auto last = static_cast<std::uint32_t>(scores.size() - 1);
    std::sort(pages.begin(), pages.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tuple(a == last, scores[a], a) > std::tuple(b == last, scores[b], b);
    });
    pages.resize(static_cast<std::size_t>(count));
    std::sort(pages.begin(), pages.end());
    return pages;
  }

  const MassSource& source() const {
    static const SyntheticMass kSynthetic;
    return values_.source != nullptr ? *values_.source : kSynthetic;
  }

  /// Cells of the pool that have to be looked at.
  std::uint32_t cells_in_sight(Head head, KvPoolKind pool, QueryTile queries) const {
    const KvLane& lane = cache_.lane(task_.layer, head);
    return lane.in_order() ? std::min(lane.end(pool), position(queries.first + queries.count - 1).value() + 1)
                           : lane.end(pool);
  }

  Token position(std::uint32_t query) const { return Token(task_.first.value() + query); }

  bool sees(Token query, const std::optional<Resident>& resident) const {
    return resident && resident->token <= query && cache_.policy().sees(query, resident->token);
  }

  /// Whether one query sees every token that is kept: as many as it sees are. What it sees has not left.
  bool sees_all(const KvLane& lane, QueryTile queries) const {
    return queries.count == 1 && cache_.policy().seen_by(position(queries.first)) == lane.size();
  }

  /// The runs of `cells` that one of the queries sees: what has left a cell is not read again. Valid until
  /// the next call.
  const std::vector<CellRun>& seen(Head head, KvPoolKind pool, QueryTile queries, CellRun cells) {
    const KvLane& lane = cache_.lane(task_.layer, head);
    runs_.clear();
    if (lane.in_order() && !cache_.policy().budget()) {
      runs_.push_back(cells);
      return runs_;
    }
    if (sees_all(lane, queries)) {
      const std::uint32_t stop = cells.first + cells.count;
      for (const CellRun& run : lane.runs(pool)) {
        const std::uint32_t first = std::max(run.first, cells.first);
        const std::uint32_t end = std::min(run.first + run.count, stop);
        if (first < end) {
          runs_.push_back({.first = first, .count = end - first});
        }
      }
      return runs_;
    }
    // What a query of the tile sees, the first one sees or it is new: tokens come into sight once, and leave
    // it once.
    const Token oldest = position(queries.first), newest = position(queries.first + queries.count - 1);
    for (std::uint32_t cell = cells.first; cell < cells.first + cells.count; ++cell) {
      const auto& resident = lane.at({.pool = pool, .index = cell});
      const bool new_to_some = resident && resident->token > oldest && resident->token <= newest;
      if (!new_to_some && !sees(oldest, resident)) {
        continue;
      }
      if (!runs_.empty() && runs_.back().first + runs_.back().count == cell) {
        ++runs_.back().count;
      } else {
        runs_.push_back({.first = cell, .count = 1});
      }
    }
    return runs_;
  }

  void read(Head head, KvPoolKind pool, CellRun cells, AccessSink& sink) const {
    for (const KvSide side : {KvSide::k, KvSide::v}) {
      cache_.pool(pool).access_head({.layer = task_.layer, .side = side, .head = head}, cells, Access::read,
                                    task_.stream, sink);
    }
  }

  /// Loads the queries, scaled by 1/sqrt(head_dim), and forgets the results of the last ones.
  void start(Head head, QueryTile queries) {
    seen_.clear();
    if (!cache_.has_payload()) {
      return;
    }
    const float scale = 1.0F / std::sqrt(static_cast<float>(head_dim_));
    queries_.resize(queries.count * group_ * head_dim_);
    for (std::size_t q = 0; q < queries.count; ++q) {
      const auto rows = values_.q.subspan(offset(head, queries.first + q), group_ * head_dim_);
      std::transform(rows.begin(), rows.end(),
                     queries_.begin() + static_cast<std::ptrdiff_t>(q * rows.size()),
                     [scale](float x) { return x * scale; });
    }
    results_.start(queries.count * group_);
  }

  void accumulate(Head head, KvPoolKind pool, QueryTile queries, CellRun cells) {
    if (keeps_scores_) {
      seen_.push_back({.pool = pool, .cells = cells, .scores = {}});
    }
    if (!cache_.has_payload()) {
      return;
    }
    scores_.resize(queries.count * group_ * cells.count);
    with_numbers(KvSide::k, head, pool, cells, [&](const auto& k) {
      simd::products({.numbers = queries_, .columns = head_dim_}, k, scores_);
    });
    mask(head, pool, queries, cells);
    if (keeps_scores_) {
      seen_.back().scores = scores_;
    }
    with_numbers(KvSide::v, head, pool, cells, [&](const auto& v) { results_.add(scores_, v); });
  }

  /// Where few rows use them, numbers in F16 are worked on where they are; widening them first would cost
  /// more than it saves.
  template <class Use>
  void with_numbers(KvSide side, Head head, KvPoolKind pool, CellRun cells, const Use& use) {
    constexpr std::size_t kFewRows = 8;
    const KvPlace place{.layer = task_.layer, .side = side, .head = head};
    if (queries_.size() <= kFewRows * head_dim_) {
      if (const auto halves = cache_.pool(pool).in_place(place, cells)) {
        use(*halves);
        return;
      }
    }
    numbers_.resize(cells.count * head_dim_);
    cache_.pool(pool).load(place, cells, numbers_);
    use(simd::Rows{.numbers = numbers_, .columns = head_dim_});
  }

  /// Puts -infinity where a query does not see a cell.
  void mask(Head head, KvPoolKind pool, QueryTile queries, CellRun cells) {
    const KvLane& lane = cache_.lane(task_.layer, head);
    if (lane.in_order() && !cache_.policy().budget() &&
        cells.first + cells.count <= position(queries.first).value() + 1) {
      return;
    }
    for (std::uint32_t q = 0; q < queries.count; ++q) {
      for (std::uint32_t i = 0; i < cells.count; ++i) {
        if (sees(position(queries.first + q), lane.at({.pool = pool, .index = cells.first + i}))) {
          continue;
        }
        for (std::size_t row = q * group_; row < (q + 1) * group_; ++row) {
          scores_[row * cells.count + i] = -std::numeric_limits<float>::infinity();
        }
      }
    }
  }

  void finish(Head head, QueryTile queries) {
    if (cache_.has_payload()) {
      for (std::size_t row = 0; row < queries.count * group_; ++row) {
        const std::size_t at = offset(head, queries.first + row / group_) + row % group_ * head_dim_;
        results_.write(row, values_.out.subspan(at, head_dim_));
      }
    }
    for (std::uint32_t q = 0; keeps_scores_ && q < queries.count; ++q) {
      tell_mass(head, queries.first + q, q);
    }
  }

  /// Tells policy and listener what the query at `row` of its tile made of each cell that it sees.
  void tell_mass(Head head, std::uint32_t query, std::uint32_t row) {
    cells_.clear();
    tokens_.clear();
    mass_.clear();
    const KvLane& lane = cache_.lane(task_.layer, head);
    for (const SeenTile& tile : seen_) {
      for (std::uint32_t i = 0; i < tile.cells.count; ++i) {
        const KvCell cell{.pool = tile.pool, .index = tile.cells.first + i};
        if (sees(position(query), lane.at(cell))) {
          cells_.push_back(cell);
          tokens_.push_back(lane.at(cell)->token);
          mass_.push_back(cache_.has_payload() ? weight(tile, row, i) : 0);
        }
      }
    }
    const MassQuery of_query{.layer = task_.layer, .head = head, .query = position(query)};
    if (!cache_.has_payload()) {
      source().fill(of_query, tokens_, mass_);
    }
    for (std::size_t i = 0; cache_.policy().ranks() && i < cells_.size(); ++i) {
      cache_.credit(task_.layer, head, cells_[i], mass_[i]);
    }
    if (values_.mass != nullptr) {
      values_.mass->put(of_query, tokens_, mass_);
    }
  }

  float weight(const SeenTile& tile, std::size_t query, std::size_t cell) const {
    float sum = 0;
    for (std::size_t row = query * group_; row < (query + 1) * group_; ++row) {
      sum += results_.weight(row, tile.scores[row * tile.cells.count + cell]);
    }
    return sum;
  }

  /// Of the first query head that reads `head`, in q and out.
  std::size_t offset(Head head, std::size_t query) const {
    return (query * static_cast<std::size_t>(shape_.heads) + head.pos() * group_) * head_dim_;
  }

  /// Pairs of a query and a token that it sees, in one lane.
  std::uint64_t pairs(Head head) const {
    const KvLane& lane = cache_.lane(task_.layer, head);
    if (const std::uint32_t cells = lane.end(KvPoolKind::main); ranks_pages(cells)) {
      const auto topk = cache_.shape().spec.topk / config::kTopkPage * config::kTopkPage;
      const std::int64_t missing = (config::kTopkPage - cells % config::kTopkPage) % config::kTopkPage;
      return static_cast<std::uint64_t>(topk - missing) + lane.size(KvPoolKind::wide);
    }
    std::uint64_t count = 0;
    for (std::uint32_t q = 0; q < task_.queries; ++q) {
      if (const auto seen = cache_.policy().seen_by(position(q))) {
        count += static_cast<std::uint64_t>(*seen);
        continue;
      }
      for (const KvPoolKind pool : kKvPools) {
        for (std::uint32_t cell = 0; cell < lane.end(pool); ++cell) {
          count += sees(position(q), lane.at({.pool = pool, .index = cell})) ? 1 : 0;
        }
      }
    }
    return count;
  }

  std::uint64_t operations() const {
    double sum = 0;
    std::uint64_t of_head = 0;
    for (Head head = task_.kv_heads.first; head < task_.kv_heads.last; ++head) {
      const bool alike =
          head > task_.kv_heads.first && !cache_.policy().ranks();  // they keep the same tokens
      of_head = alike ? of_head : pairs(head);
      sum += static_cast<double>(of_head) * static_cast<double>(group_);
    }
    return checked_operations(sum * simd_ops_per_score(cache_.shape()));
  }

  const AttentionShape& shape_;
  KvCache& cache_;
  const AttentionTask& task_;
  const AttentionValues& values_;
  AttentionOperands operands_;
  std::size_t group_;  // query heads per KV head
  std::size_t head_dim_;
  bool keeps_scores_;
  OnlineSoftmax results_;
  std::vector<float> queries_;  // [query][head of the group][head_dim]
  std::vector<float> numbers_;  // of K or V, of the tile in hand: [cell][head_dim]
  std::vector<float> scores_;   // of the tile in hand: [query][head of the group][cell]
  std::vector<SeenTile> seen_;
  std::vector<CellRun> runs_;
  std::vector<KvCell> cells_;
  std::vector<Token> tokens_;
  std::vector<float> mass_;
};

}  // namespace

double simd_ops_per_32(const config::KvFormat& format) {
  using enum config::KvNumber;
  switch (format.number) {
    case f32:
      return 16;
    case f16:
    case bf16:
      return 8;
    case fp8_e4m3:
    case fp8_e5m2:
      return 10;
    case int8:
    case q8_0:
      return 5;
    case q5_1:
    case q5_0:
      return 12;
    case int4:
    case q4_1:
    case q4_0:
      return 8;
    case iq4_nl:
      return 14;
  }
  return 8;
}

double simd_ops_per_score(const KvShape& kv) {
  const auto keys = static_cast<double>(kv.head_dim);
  const bool latent = kv.latent > 0;  // the values are a part of the keys
  const double values = latent ? static_cast<double>(kv.latent) : keys;
  return keys / 32 * simd_ops_per_32(kv.spec.k) +
         values / 32 * simd_ops_per_32(latent ? kv.spec.k : kv.spec.v) + kSoftmaxOpsPerScore;
}

std::uint64_t visible_pairs(Token first, std::uint32_t queries) {
  return std::uint64_t{first.value()} * queries + std::uint64_t{queries} * (std::uint64_t{queries} + 1) / 2;
}

void attend(const AttentionShape& shape, KvCache& cache, const AttentionTask& task,
            const AttentionValues& values, AccessSink& sink) {
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
  if (shape.method == AttentionMethod::naive) {
    attend_naively(shape, cache, task, values, sink);
  } else {
    Kernel(shape, cache, task, values).run(sink);
  }
}

}  // namespace kvsim::trace
