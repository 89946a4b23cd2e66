// SPDX-License-Identifier: Apache-2.0
#include "traces/kv_cache/kv_cache.h"

#include <algorithm>
#include <limits>

#include "configs/error/error.h"

namespace kvsim::trace {
namespace {

constexpr config::KvFormat kWide{.number = config::KvNumber::f16};
constexpr std::array kSides{KvSide::k, KvSide::v};

std::uint32_t u32(std::int64_t value) {
  return static_cast<std::uint32_t>(value);
}

/// What is allocated for every vector beyond what its format takes.
Bytes padding(const KvShape& shape) {
  KvShape bare = shape;
  bare.head_alignment = Bytes(1);
  return total_bytes(shape) - total_bytes(bare);
}

/// `visit(cells)` for those side by side.
template <class Visit>
void for_each_run(const std::vector<std::uint32_t>& cells, Visit visit) {
  for (std::size_t begin = 0; begin < cells.size();) {
    std::size_t end = begin + 1;
    while (end < cells.size() && cells[end] == cells[end - 1] + 1) {
      ++end;
    }
    visit(CellRun{.first = cells[begin], .count = static_cast<std::uint32_t>(end - begin)});
    begin = end;
  }
}

}  // namespace

KvCache::KvCache(const KvShape& shape, Address base, KvPayload payload, std::optional<Address> wide)
    : shape_(shape), payload_(payload), policy_(make_policy(shape.spec)) {
  constexpr auto kMost = std::numeric_limits<std::uint32_t>::max();
  check(shape.capacity <= kMost && shape.batch >= 1 && shape.batch <= kMost,
        "a context's tokens fit into 32 bits");
  check(payload == KvPayload::none || (shape.latent == 0 && !shape.v_transposed),
        "a payload has V, each vector in one place");
  pools_.emplace_back(shape_, KvPool::Formats{.k = shape.spec.k, .v = shape.spec.v}, main_cells(shape_),
                      base);
  const Bytes others = total_bytes(shape_) - wide_bytes(shape_);
  pools_.emplace_back(shape_, KvPool::Formats{.k = kWide, .v = kWide}, wide_cells(shape_),
                      wide.value_or(base + static_cast<Address>(others.count())));
  bounds_ = base + static_cast<Address>(pools_.front().bytes().count());
  for (KvPool& pool : pools_) {
    if (has_payload()) {
      pool.hold_numbers();
    }
  }
  lanes_.resize(policy_->ranks() ? static_cast<std::size_t>(shape.layers * shape.kv_heads) : 1);
  intakes_.resize(lanes_.size());
  first_late_ = Token(u32(first_in_f16(shape_)));
  group_ = u32(group_tokens(shape_));
  recent_ = u32(std::min(recent_in_f16(shape_), shape.capacity));
  counters_.padding = padding(shape_);
}

std::size_t KvCache::lane_number(Layer layer, Head head) const {
  return lanes_.size() == 1 ? 0 : layer.pos() * static_cast<std::size_t>(shape_.kv_heads) + head.pos();
}

std::variant<KvPlan, DoesNotFit> KvCache::plan(std::uint32_t tokens) const {
  const std::uint32_t left = u32(shape_.capacity) - depth_;
  const std::uint32_t at_once = u32(std::min<std::int64_t>(left, policy_->budget() ? shape_.batch : left));
  if (tokens > at_once) {
    return DoesNotFit{.asked = tokens, .left = at_once};
  }
  return KvPlan{.first = Token(depth_), .tokens = tokens};
}

void KvCache::apply(const KvPlan& plan) {
  check(plan.first.value() == depth_ && plan.tokens <= static_cast<std::uint64_t>(shape_.capacity) - depth_,
        "a plan is applied to the cache it was made for, once");
  depth_ += plan.tokens;
  plan_ = plan;
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    admit(lane, plan);
  }
  counters_.resident = lanes_.front().size();
  counters_.peak = std::max(counters_.peak, counters_.resident);
  counters_.peak_bytes = std::max(counters_.peak_bytes, held());
}

/// What the tokens in the cache take.
Bytes KvCache::held() const {
  Bytes bytes{};
  for (const KvPoolKind kind : kKvPools) {
    std::int64_t vectors = 0;
    for (const KvLane& lane : lanes_) {
      vectors += lane.size(kind);
    }
    const std::int64_t shared = lanes_.size() == 1 ? shape_.layers * shape_.kv_heads : 1;
    bytes += (side_bytes(shape_, KvSide::k, pool(kind).format(KvSide::k)) +
              side_bytes(shape_, KvSide::v, pool(kind).format(KvSide::v))) *
             (vectors * shared);
  }
  return bytes;
}

void KvCache::admit(std::size_t number, const KvPlan& plan) {
  KvLane& lane = lanes_[number];
  Intake& intake = intakes_[number];
  intake.placements.clear();
  intake.moves.clear();
  evict(lane, plan.first);
  for (std::uint32_t i = 0; i < plan.tokens; ++i) {
    const Token token(plan.first.value() + i);
    const KvCell cell = lane.place(pool_of(token), token);
    Placement* last = intake.placements.empty() ? nullptr : &intake.placements.back();
    if (last != nullptr && last->cell.pool == cell.pool && last->cell.index + last->tokens == cell.index) {
      ++last->tokens;
    } else {
      intake.placements.push_back({.first = token, .tokens = 1, .cell = cell});
    }
  }
  if (plan.tokens > 0) {
    move_old(lane, Token(depth_ - 1), intake.moves);
  }
}

void KvCache::evict(KvLane& lane, Token next) {
  if (!policy_->budget() || std::int64_t{lane.size()} < *policy_->budget()) {
    return;
  }
  std::vector<KvCell> leaving;
  policy_->leaving(lane, next, leaving);
  for (const KvCell cell : leaving) {
    lane.release(cell);
  }
  counters_.evictions += leaving.size();
}

KvPoolKind KvCache::pool_of(Token token) const {
  return token < first_late_ || recent_ > 0 || group_ > 1 ? KvPoolKind::wide : KvPoolKind::main;
}

/// Tokens older than the `recent_` last go on, in whole groups; the first ones stay.
void KvCache::move_old(KvLane& lane, Token last, std::vector<Move>& moves) {
  if (recent_ == 0 && group_ == 1) {
    return;
  }
  std::vector<std::pair<Token, std::uint32_t>> old;
  for (KvCell cell{.pool = KvPoolKind::wide}; cell.index < lane.end(KvPoolKind::wide); ++cell.index) {
    const auto& resident = lane.at(cell);
    if (resident && resident->token >= first_late_ &&
        std::uint64_t{resident->token.value()} + recent_ <= last.value()) {
      old.emplace_back(resident->token, cell.index);
    }
  }
  std::sort(old.begin(), old.end());
  old.resize(old.size() / group_ * group_);
  for (const auto& [token, index] : old) {
    const KvCell from{.pool = KvPoolKind::wide, .index = index};
    const Resident resident = *lane.at(from);
    lane.release(from);
    const std::uint32_t to = lane.place(KvPoolKind::main, resident.token, resident.score).index;
    if (moves.empty() || moves.back().to + moves.back().from.size() != to) {
      moves.push_back({.from = {}, .to = to});
    }
    moves.back().from.push_back(index);
  }
}

void KvCache::append(const KvAppend& append, AccessSink& sink) {
  check(append.tokens > 0 && append.first >= plan_.first &&
            std::uint64_t{append.first.value()} + append.tokens <= depth_,
        "appended tokens are planned");
  for (const KvSide side : kSides) {
    if (has_payload()) {
      store(append, side);
    }
    emit_writes(append, side, sink);
  }
  if (append.first.value() + append.tokens == depth_) {
    for (std::uint32_t head = 0; head < shape_.kv_heads; ++head) {
      emit_moves(append, Head(head), sink);
    }
  }
  if (shape_.spec.topk > 0) {
    emit_bounds(append, sink);
  }
}

Address KvCache::bounds_address(const KvPlace& place, std::uint32_t page) const {
  const std::int64_t pages = (main_cells(shape_) + config::kTopkPage - 1) / config::kTopkPage;
  const std::int64_t head = place.layer.value() * shape_.kv_heads + place.head.value();
  return bounds_ + static_cast<Address>((page_bounds_bytes(shape_) * (head * pages + page)).count());
}

void KvCache::read_bounds(const KvPlace& place, std::uint32_t pages, Stream stream, AccessSink& sink) const {
  const Bytes bytes = page_bounds_bytes(shape_) * std::int64_t{pages};
  sink.put(Extent{.address = bounds_address(place, 0),
                  .row_bytes = bytes,
                  .rows = 1,
                  .stride = bytes,
                  .kind = Kind::kv,
                  .stream = stream});
}

/// The bounds of each page that a token comes into are written; before, those that it already had are read.
void KvCache::emit_bounds(const KvAppend& append, AccessSink& sink) const {
  for_each_placement(append, intakes_.front(), [&](const Placement& run) {
    const std::uint32_t first = run.cell.index, end = first + run.tokens;
    for (std::uint32_t page = first / config::kTopkPage; page * config::kTopkPage < end; ++page) {
      for (Head head(0); run.cell.pool == KvPoolKind::main && head.value() < shape_.kv_heads; ++head) {
        Extent e{.address = bounds_address({.layer = append.layer, .head = head}, page),
                 .row_bytes = page_bounds_bytes(shape_),
                 .rows = 1,
                 .stride = page_bounds_bytes(shape_),
                 .kind = Kind::kv,
                 .stream = append.stream};
        if (first > page * config::kTopkPage) {
          sink.put(e);
        }
        e.access = Access::write;
        sink.put(e);
      }
    }
  });
}

void KvCache::emit_moves(const KvAppend& append, Head head, AccessSink& sink) {
  for (const Move& move : intakes_[lane_number(append.layer, head)].moves) {
    for (const KvSide side : kSides) {
      const KvPlace place{.layer = append.layer, .side = side, .head = head};
      for_each_run(move.from, [&](CellRun from) {
        pool(KvPoolKind::wide).access_head(place, from, Access::read, append.stream, sink);
      });
      const CellRun to{.first = move.to, .count = static_cast<std::uint32_t>(move.from.size())};
      pool(KvPoolKind::main).access_head(place, to, Access::write, append.stream, sink);
      if (has_payload()) {
        move_numbers(place, move);
      }
    }
  }
}

void KvCache::move_numbers(const KvPlace& place, const Move& move) {
  const auto size = static_cast<std::size_t>(shape_.head_dim);
  KvPool& main = pools_[static_cast<std::size_t>(KvPoolKind::main)];
  const std::size_t step = main.format(place.side).range == config::KvRange::channel ? group_ : 1;
  std::vector<float> numbers(step * size);
  for (std::size_t i = 0; i < move.from.size(); i += step) {
    for (std::size_t j = 0; j < step; ++j) {
      pool(KvPoolKind::wide)
          .load(place, {.first = move.from[i + j], .count = 1}, std::span(numbers).subspan(j * size, size));
    }
    main.store(place, move.to + static_cast<std::uint32_t>(i), numbers);
  }
}

/// Those of the last plan, cut to the tokens in hand.
template <class Visit>
void KvCache::for_each_placement(const KvAppend& append, const Intake& intake, Visit visit) const {
  const std::uint32_t begin = append.first.value(), end = begin + append.tokens;
  for (Placement run : intake.placements) {
    const std::uint32_t skipped = begin - std::min(begin, run.first.value());
    const std::uint32_t last = std::min(end, run.first.value() + run.tokens);
    run.first = Token(run.first.value() + skipped);
    run.cell.index += skipped;
    if (run.first.value() < last) {
      run.tokens = last - run.first.value();
      visit(run);
    }
  }
}

void KvCache::emit_writes(const KvAppend& append, KvSide side, AccessSink& sink) {
  const auto cells = [](const Placement& run) {
    return CellRun{.first = run.cell.index, .count = run.tokens};
  };
  if (lanes_.size() == 1) {
    for_each_placement(append, intakes_.front(), [&](const Placement& run) {
      pool(run.cell.pool)
          .access_all_heads({.layer = append.layer, .side = side}, cells(run), Access::write, append.stream,
                            sink);
    });
    return;
  }
  for (Head head(0); head.value() < shape_.kv_heads; ++head) {
    for_each_placement(append, intakes_[lane_number(append.layer, head)], [&](const Placement& run) {
      pool(run.cell.pool)
          .access_head({.layer = append.layer, .side = side, .head = head}, cells(run), Access::write,
                       append.stream, sink);
    });
  }
}

void KvCache::store(const KvAppend& append, KvSide side) {
  for (Head head(0); head.value() < shape_.kv_heads; ++head) {
    const KvPlace place{.layer = append.layer, .side = side, .head = head};
    for_each_placement(append, intakes_[lane_number(append.layer, head)],
                       [&](const Placement& run) { store_run(append, place, run); });
  }
}

void KvCache::store_run(const KvAppend& append, const KvPlace& place, const Placement& run) {
  const auto size = static_cast<std::size_t>(shape_.head_dim);
  const auto heads = static_cast<std::size_t>(shape_.kv_heads);
  const std::span<const float> numbers = place.side == KvSide::k ? append.k : append.v;
  check(numbers.size() == heads * size * append.tokens,
        "a payload holds a number per head, dimension and token");
  for (std::uint32_t i = 0; i < run.tokens; ++i) {
    const std::size_t token = run.first.value() - append.first.value() + i;
    pools_[static_cast<std::size_t>(run.cell.pool)].store(
        place, run.cell.index + i, numbers.subspan((token * heads + place.head.pos()) * size, size));
  }
}

void KvCache::reset() {
  for (KvLane& lane : lanes_) {
    lane.clear();
  }
  depth_ = 0;
  plan_ = {};
  counters_.resident = 0;
}

void KvCache::truncate(std::uint32_t tokens) {
  check(tokens <= depth_, "only tokens that are there can be kept");
  if (lanes_.size() == 1 && lanes_.front().in_order()) {
    lanes_.front().truncate(tokens);
    depth_ = tokens;
    counters_.resident = tokens;
    return;
  }
  check(!has_payload(), "numbers that have left do not come back");
  reset();
  while (depth_ < tokens) {
    apply({.first = Token(depth_), .tokens = 1});
  }
}

void KvCache::credit(Layer layer, Head head, KvCell cell, float mass) {
  if (const auto score = policy_->credit(mass)) {
    lanes_[lane_number(layer, head)].credit(cell, *score);
  }
}

}  // namespace kvsim::trace
