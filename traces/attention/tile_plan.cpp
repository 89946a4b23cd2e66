// SPDX-License-Identifier: Apache-2.0
#include "traces/attention/tile_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "configs/error/error.h"

namespace kvsim::trace {

namespace {

constexpr std::int64_t kMaxSteps = 4'000'000;
constexpr std::int64_t kMaxKeys = 128;
/// Accumulators and softmax's maximum and sum are FP32.
constexpr std::int64_t kAccumulator = 4;
constexpr Bytes kStatistics{8};
/// Each dimension, so that no product of those below overflows.
constexpr std::int64_t kMaxTokens = std::int64_t{1} << 20;
constexpr std::int64_t kMaxOther = 4096;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

void check_geometry(const TileGeometry& g, const TileOptions& o) {
  const auto within = [](const char* what, std::int64_t value, std::int64_t most) {
    if (value < 1 || value > most) {
      throw UserError(fmt::format("{}: {} is not from 1 to {}", what, value, most));
    }
  };
  within("heads", g.heads, kMaxOther);
  within("kv_heads", g.kv_heads, g.heads);
  within("head_dim", g.head_dim, kMaxOther);
  within("context", g.context, kMaxTokens);
  within("queries", g.queries, g.context);
  within("cores", o.cores, 64);
  if (g.heads % g.kv_heads != 0) {
    throw UserError(fmt::format("{} query heads do not divide into {} KV heads", g.heads, g.kv_heads));
  }
  if (o.resident_keys < 0 || o.resident_keys > g.context) {
    throw UserError(
        fmt::format("resident keys: {} is not from 0 to the context, {}", o.resident_keys, g.context));
  }
  if (o.resident_keys > 0 && o.method == AttentionMethod::naive) {
    throw UserError("resident keys: naive attention keeps none; ask for tiled");
  }
  if (o.shape) {
    within("tile queries", o.shape->queries, kMaxTokens);
    within("tile keys", o.shape->keys, kMaxTokens);
  }
}

/// Query heads that a tile's rows have.
std::int64_t group(const TileGeometry& g, AttentionMethod method) {
  return method == AttentionMethod::tiled ? g.heads / g.kv_heads : 1;
}

Bytes accumulator_row(const TileGeometry& g) {
  return Bytes(g.head_dim * kAccumulator) + kStatistics;
}

// Names of the buffers; resident key tiles follow.
enum : std::size_t {
  kQ0,
  kQ1,
  kAcc0,
  kAcc1,
  kScores0,
  kScores1,
  kOut,
  kKv0,
  kKv1,
  kStrip0,
  kStrip1,
  kResident
};

bool naive(const TileOptions& o) {
  return o.method == AttentionMethod::naive;
}

/// Sizes of all buffers but softmax's strips, which lie where the others do.
std::vector<Bytes> buffer_sizes(const TileGeometry& g, const TileOptions& o, const TileShape& shape,
                                bool spills) {
  const std::int64_t rows = shape.queries * group(g, o.method);
  const Bytes scores = g.score * (rows * shape.keys);
  const Bytes keys = g.kv_row * (naive(o) ? shape.keys : 2 * shape.keys);
  std::vector<Bytes> sizes(kResident);
  sizes[kQ0] = sizes[kQ1] = g.query_row * rows;
  sizes[kAcc0] = accumulator_row(g) * rows;
  sizes[kAcc1] = spills ? sizes[kAcc0] : Bytes();  // one comes while the other goes
  sizes[kScores0] = scores;
  sizes[kScores1] = naive(o) ? scores : Bytes();
  sizes[kOut] = g.query_row * rows;
  sizes[kKv0] = sizes[kKv1] = keys;
  sizes.resize(kResident + static_cast<std::size_t>(ceil_div(o.resident_keys, shape.keys)), keys);
  return sizes;
}

Bytes sum(const std::vector<Bytes>& sizes) {
  Bytes all;
  for (const Bytes size : sizes) {
    all += size;
  }
  return all;
}

/// The most queries that fit beside `keys`; 0: not one.
std::int64_t fitting_queries(const TileGeometry& g, const TileOptions& o, std::int64_t keys, bool spills) {
  const auto bytes = [&](std::int64_t queries) { return sum(buffer_sizes(g, o, {queries, keys}, spills)); };
  const Bytes none = bytes(0);
  return none > o.sram ? 0 : std::min((o.sram - none).count() / (bytes(1) - none).count(), g.queries);
}

// --- the walk
// ----------------------------------------------------------------------------------------------------

class Planner {
 public:
  Planner(const TileGeometry& g, const TileOptions& o, Address base, TilePlan& plan)
      : g_(g), o_(o), plan_(plan) {
    Bytes at(static_cast<std::int64_t>(base));
    const auto place = [&](Bytes bytes) { return std::exchange(at, at + bytes); };
    q_ = place(g.query_row * (g.heads * g.queries));
    k_ = place(g.kv_row * (g.kv_heads * g.context));
    v_ = place(g.kv_row * (g.kv_heads * g.context));
    out_ = place(g.query_row * (g.heads * g.queries));
    scores_ = place(naive(o) ? g.score * (g.heads * g.queries * g.context) : Bytes());
    weights_ = place(naive(o) ? g.score * (g.heads * g.queries * g.context) : Bytes());
    end_ = at;
    key_tiles_ = ceil_div(g.context, plan.shape.keys);
  }

  [[nodiscard]] Bytes end() const { return end_; }

  void tiled(std::int64_t core) {
    start(core);
    for (std::int64_t head = 0; head < g_.kv_heads; ++head) {
      std::fill(resident_.begin(), resident_.end(), false);
      for_tiles(core, [&](Run queries) { tiled_queries(head, queries); });
    }
  }

  void naive_heads(std::int64_t core) {
    start(core);
    for (std::int64_t head = 0; head < g_.heads; ++head) {
      for_tiles(core, [&](Run queries) { score_tiles(head, queries); });
      stored_ = last_step();
      for_tiles(core, [&](Run queries) { softmax_strips(head, queries); });
      stored_ = last_step();
      for_tiles(core, [&](Run queries) { output_tiles(head, queries); });
      stored_.reset();
    }
  }

 private:
  struct Run {
    std::int64_t first = 0;
    std::int64_t count = 0;
    [[nodiscard]] std::int64_t end() const { return first + count; }
  };

  void start(std::int64_t core) {
    steps_ = &plan_.cores[static_cast<std::size_t>(core)];
    resident_.assign(plan_.buffers.size() - kResident, false);
    turn_ = kv_turn_ = 0;
    stored_.reset();
  }

  template <class Do>
  void for_tiles(std::int64_t core, const Do& work) {
    for (std::int64_t i = core; i * plan_.shape.queries < g_.queries; i += o_.cores) {
      const std::int64_t first = i * plan_.shape.queries;
      work(Run{first, std::min(plan_.shape.queries, g_.queries - first)});
    }
  }

  [[nodiscard]] Run keys(std::int64_t tile) const {
    const std::int64_t first = tile * plan_.shape.keys;
    return {first, std::min(plan_.shape.keys, g_.context - first)};
  }
  /// Key tiles that one of the queries sees.
  [[nodiscard]] std::int64_t visible_tiles(Run queries) const {
    return ceil_div(g_.context - g_.queries + queries.end(), plan_.shape.keys);
  }
  [[nodiscard]] std::optional<std::size_t> last_step() const {
    return steps_->empty() ? std::nullopt : std::optional(steps_->size() - 1);
  }

  TileStep& step() {
    if (++all_steps_ > kMaxSteps) {
      throw UserError(
          fmt::format("more than {} steps of tiles; take fewer tokens or a larger tile", kMaxSteps));
    }
    steps_->emplace_back();
    steps_->back().after = stored_;
    return steps_->back();
  }

  /// `count` tokens' vectors of `heads` neighbouring heads.
  [[nodiscard]] Extent vectors(Bytes matrix, Bytes row, std::int64_t all_heads, std::int64_t head,
                               std::int64_t heads, Run tokens) const {
    return {.address = static_cast<Address>((matrix + row * (tokens.first * all_heads + head)).count()),
            .row_bytes = row * heads,
            .rows = static_cast<std::uint32_t>(tokens.count),
            .stride = row * all_heads};
  }
  [[nodiscard]] Extent query_vectors(Bytes matrix, std::int64_t head, Run queries) const {
    return vectors(matrix, g_.query_row, g_.heads, head, group(g_, o_.method), queries);
  }
  [[nodiscard]] Extent kv_vectors(Bytes matrix, std::int64_t head, Run tokens) const {
    Extent e = vectors(matrix, g_.kv_row, g_.kv_heads, head, 1, tokens);
    e.kind = Kind::kv;
    return e;
  }
  [[nodiscard]] Extent score_rows(Bytes matrix, std::int64_t head, Run queries, Run tokens) const {
    return {
        .address = static_cast<Address>(
            (matrix + g_.score * ((head * g_.queries + queries.first) * g_.context + tokens.first)).count()),
        .row_bytes = g_.score * tokens.count,
        .rows = static_cast<std::uint32_t>(queries.count),
        .stride = g_.score * g_.context,
        .kind = Kind::scratch};
  }

  void load(TileStep& s, const Extent& extent, std::size_t buffer) {
    s.loads.push_back({extent, buffer});
    s.uses.push_back(buffer);
    plan_.read += total_bytes(extent);
  }
  /// What arithmetic made, in a buffer of its own.
  void store_fresh(TileStep& s, const Extent& extent, std::size_t buffer) {
    store(s, extent, buffer);
    s.fresh.push_back(buffer);
  }
  void store(TileStep& s, Extent extent, std::size_t buffer) {
    extent.access = Access::write;
    s.stores.push_back({extent, buffer});
    s.uses.push_back(buffer);
    plan_.written += total_bytes(extent);
  }

  /// The buffer that holds the key tile, loaded if it is not there yet.
  std::size_t key_tile(TileStep& s, std::int64_t head, std::int64_t tile) {
    const auto index = static_cast<std::size_t>(tile);
    const bool stays = index < resident_.size();
    const std::size_t buffer = stays ? kResident + index : kKv0 + (kv_turn_++ & 1);
    if (!stays || !resident_[index]) {
      load(s, kv_vectors(k_, head, keys(tile)), buffer);
      load(s, kv_vectors(v_, head, keys(tile)), buffer);
    } else {
      s.uses.push_back(buffer);
    }
    if (stays) {
      resident_[index] = true;
    }
    return buffer;
  }

  void tiled_queries(std::int64_t head, Run queries) {
    const std::int64_t tiles = visible_tiles(queries);
    const std::int64_t parts = ceil_div(queries.count, plan_.rows_at_once);
    std::size_t q = kQ0;
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      std::size_t kv = 0;
      for (std::int64_t part = 0; part < parts; ++part) {
        const std::int64_t first = queries.first + part * plan_.rows_at_once;
        const Run rows{first, std::min(plan_.rows_at_once, queries.end() - first)};
        TileStep& s = step();
        if (part == 0) {
          kv = key_tile(s, head, tile);
        } else {
          s.uses.push_back(kv);
        }
        if (tile == 0 || parts > 1) {
          q = kQ0 + (turn_++ & 1);
          load(s, query_vectors(q_, head * group(g_, o_.method), rows), q);
          plan_.spill_bytes += tile == 0 ? Bytes() : total_bytes(s.loads.back().extent);
        } else {
          s.uses.push_back(q);
        }
        part_of_tile(s,
                     {.head = head, .rows = rows, .tile = tile, .last = tile + 1 == tiles, .parts = parts});
      }
      ++plan_.tiles;
      plan_.spilled += parts > 1 ? 1 : 0;
    }
  }

  struct Part {
    std::int64_t head = 0;
    Run rows;
    std::int64_t tile = 0;
    bool last = false;
    std::int64_t parts = 1;
  };

  /// Arithmetic, and the accumulators' way to and from DRAM if they are spilled.
  void part_of_tile(TileStep& s, const Part& part) {
    const std::int64_t rows = part.rows.count * group(g_, o_.method);
    const std::size_t acc = part.parts > 1 ? kAcc0 + (turn_ & 1) : kAcc0;
    s.uses.insert(s.uses.end(), {acc, kScores0});
    s.fresh.push_back(kScores0);
    if (part.tile == 0) {
      (part.parts > 1 ? s.reserved : s.fresh).push_back(acc);
    }
    s.scores = rows * keys(part.tile).count;
    s.macs = 2 * s.scores * g_.head_dim;
    if (part.parts > 1) {
      const Extent spilled = {.address = static_cast<Address>(
                                  (end_ + accumulator_row(g_) * ((part.head * g_.queries + part.rows.first) *
                                                                 group(g_, o_.method)))
                                      .count()),
                              .row_bytes = accumulator_row(g_) * rows,
                              .stride = accumulator_row(g_) * rows,
                              .kind = Kind::scratch};
      if (part.tile > 0) {
        load(s, spilled, acc);
        plan_.spill_bytes += total_bytes(spilled);
        // The same rows' last turn. Key tiles follow each other, so that is `parts` steps ago.
        s.after = steps_->size() - 1 - static_cast<std::size_t>(part.parts);
      }
      if (!part.last) {
        store(s, spilled, acc);
        plan_.spill_bytes += total_bytes(spilled);
      }
    }
    if (part.last) {
      store_fresh(s, query_vectors(out_, part.head * group(g_, o_.method), part.rows), kOut);
    }
  }

  // Naive: three operators, each over all of a head's queries.

  void score_tiles(std::int64_t head, Run queries) {
    const std::size_t q = kQ0 + (turn_++ & 1);
    for (std::int64_t tile = 0; tile < key_tiles_; ++tile) {
      TileStep& s = step();
      if (tile == 0) {
        load(s, query_vectors(q_, head, queries), q);
      } else {
        s.uses.push_back(q);
      }
      const std::size_t turn = kv_turn_++ & 1;
      load(s, kv_vectors(k_, kv_head(head), keys(tile)), kKv0 + turn);
      s.macs = queries.count * keys(tile).count * g_.head_dim;
      store_fresh(s, score_rows(scores_, head, queries, keys(tile)), kScores0 + turn);
      ++plan_.tiles;
    }
  }

  void softmax_strips(std::int64_t head, Run queries) {
    const std::int64_t most = (plan_.buffers[kStrip0].bytes.count()) / (g_.score * g_.context).count();
    for (std::int64_t first = queries.first; first < queries.end(); first += most) {
      const Run rows{first, std::min(most, queries.end() - first)};
      TileStep& s = step();
      const std::size_t strip = kStrip0 + (turn_++ & 1);
      load(s, score_rows(scores_, head, rows, {0, g_.context}), strip);
      s.scores = rows.count * g_.context;
      store(s, score_rows(weights_, head, rows, {0, g_.context}), strip);
    }
  }

  void output_tiles(std::int64_t head, Run queries) {
    for (std::int64_t tile = 0; tile < key_tiles_; ++tile) {
      TileStep& s = step();
      const std::size_t turn = kv_turn_++ & 1;
      load(s, score_rows(weights_, head, queries, keys(tile)), kScores0 + turn);
      load(s, kv_vectors(v_, kv_head(head), keys(tile)), kKv0 + turn);
      s.uses.push_back(kAcc0);
      if (tile == 0) {
        s.fresh.push_back(kAcc0);
      }
      s.macs = queries.count * keys(tile).count * g_.head_dim;
      if (tile + 1 == key_tiles_) {
        store_fresh(s, query_vectors(out_, head, queries), kOut);
      }
      ++plan_.tiles;
    }
  }

  [[nodiscard]] std::int64_t kv_head(std::int64_t head) const { return head / (g_.heads / g_.kv_heads); }

  const TileGeometry& g_;
  const TileOptions& o_;
  TilePlan& plan_;
  Bytes q_, k_, v_, out_, scores_, weights_, end_;
  std::int64_t key_tiles_ = 0;
  std::vector<TileStep>* steps_ = nullptr;
  std::vector<bool> resident_;
  std::size_t turn_ = 0, kv_turn_ = 0;
  std::optional<std::size_t> stored_;
  std::int64_t all_steps_ = 0;
};

/// Buffers one behind the other; strips begin at the front again.
void place_buffers(const TileGeometry& g, const TileOptions& o, TilePlan& plan) {
  const bool spills = plan.rows_at_once < plan.shape.queries;
  const std::vector<Bytes> sizes = buffer_sizes(g, o, {plan.rows_at_once, plan.shape.keys}, spills);
  Bytes at;
  for (const Bytes size : sizes) {
    plan.buffers.push_back({at, size});
    at += size;
  }
  check(at <= o.sram, "the buffers fit");
  if (!naive(o)) {
    return;
  }
  const Bytes row = g.score * g.context;
  const std::int64_t rows = std::min(o.sram.count() / 2 / row.count(), plan.shape.queries);
  if (rows == 0) {
    throw UserError(
        fmt::format("naive attention: two rows of scores, {} B each, do not fit into {} B of SRAM",
                    row.count(), o.sram.count()));
  }
  plan.buffers[kStrip0] = {Bytes(), row * rows};
  plan.buffers[kStrip1] = {row * rows, row * rows};
}

}  // namespace

Bytes tile_plan_footprint(const TileGeometry& g, AttentionMethod method) {
  TilePlan plan;
  plan.shape = {1, 1};
  return Planner(g, {.method = method, .sram = {}}, 0, plan).end() +
         accumulator_row(g) * (g.heads * g.queries);  // where spilled ones go
}

Bytes tile_bytes(const TileGeometry& g, const TileOptions& o, const TileShape& shape) {
  return sum(buffer_sizes(g, o, shape, false));
}

TileShape fitting_shape(const TileGeometry& g, const TileOptions& o) {
  for (std::int64_t keys = kMaxKeys; keys >= 1; keys /= 2) {
    const std::int64_t queries = fitting_queries(g, o, keys, false);
    if (queries >= std::min(keys, g.queries) && queries > 0) {
      return {std::min(queries, ceil_div(g.queries, o.cores)), keys};  // every core has a tile
    }
  }
  throw UserError(fmt::format("a tile of one query and one key takes {} B, more than the SRAM's {} B",
                              tile_bytes(g, o, {1, 1}).count(), o.sram.count()));
}

TilePlan plan_tiles(const TileGeometry& g, const TileOptions& o, Address base) {
  check_geometry(g, o);
  TilePlan plan;
  plan.shape = o.shape ? *o.shape : fitting_shape(g, o);
  plan.shape.queries = std::min(plan.shape.queries, g.queries);
  plan.shape.keys = std::min(plan.shape.keys, g.context);
  plan.rows_at_once = plan.shape.queries;
  if (const Bytes needed = tile_bytes(g, o, plan.shape); needed > o.sram) {
    plan.rows_at_once = fitting_queries(g, o, plan.shape.keys, true);
    if (o.oversize == Oversize::refuse || naive(o) || plan.rows_at_once == 0) {
      throw UserError(fmt::format("a tile of {} queries x {} keys takes {} B, more than the SRAM's {} B{}",
                                  plan.shape.queries, plan.shape.keys, needed.count(), o.sram.count(),
                                  plan.rows_at_once == 0 ? "; not even one query fits beside the keys"
                                  : naive(o)             ? "; naive attention cannot spill"
                                                         : "; take a smaller one, or spill"));
    }
  }
  place_buffers(g, o, plan);
  plan.cores.resize(static_cast<std::size_t>(o.cores));
  Planner planner(g, o, base, plan);
  for (std::int64_t core = 0; core < o.cores; ++core) {
    naive(o) ? planner.naive_heads(core) : planner.tiled(core);
  }
  return plan;
}

}  // namespace kvsim::trace
