// SPDX-License-Identifier: Apache-2.0
#include "traces/kv_cache/kv_sessions.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "traces/record/checked.h"

namespace kvsim::trace {
namespace {

constexpr const char* kWhat = "a session's KV cache";
constexpr std::array kSides{KvSide::k, KvSide::v};

std::uint32_t u32(std::int64_t value) {
  return static_cast<std::uint32_t>(value);
}

std::uint32_t blocks_for(std::uint64_t tokens, std::uint32_t block) {
  return static_cast<std::uint32_t>((tokens + block - 1) / block);
}

bool by_channel(const config::KvFormat& format) {
  return format.range == config::KvRange::channel;
}

void check_config(const KvSessionsConfig& config) {
  const KvShape& shape = config.shape;
  config::KvSpec plain;
  plain.k = shape.spec.k;
  plain.v = shape.spec.v;
  plain.unrotated = shape.spec.unrotated;
  if (!(shape.spec == plain)) {
    throw UserError(
        "several sessions in one memory keep all of their tokens in one format: no window, sinks, h2o, "
        "entropy, topk, first or recent");
  }
  if (by_channel(shape.spec.k) || by_channel(shape.spec.v)) {
    throw UserError("several sessions in one memory take no range by channel: groups of tokens would be cut");
  }
  constexpr auto kMost = std::numeric_limits<std::uint32_t>::max();
  if (shape.capacity < 1 || shape.capacity > kMost || shape.block < 1 || shape.block > kMost) {
    throw UserError("a session's limit and its block are 1 token or more");
  }
  if (config.growth != KvGrowth::paged &&
      (shape.layout == config::KvLayout::paged || config.share_prefixes)) {
    throw UserError("pages and shared prefixes need paged growth");
  }
}

/// A buffer is contiguous; in a block, heads come one after another as in vLLM's HND.
KvShape shape_of_cells(const KvSessionsConfig& config) {
  check_config(config);
  KvShape shape = config.shape;
  if (shape.layout == config::KvLayout::paged) {
    shape.layout = config::KvLayout::head_major;
  }
  return shape;
}

/// What a token's numbers and scales take, without alignment.
Bytes bare_token_bytes(KvShape shape) {
  shape.head_alignment = Bytes(1);
  return bytes_per_token(shape);
}

}  // namespace

KvSessions::KvSessions(const KvSessionsConfig& config)
    : config_(config),
      cells_shape_(shape_of_cells(config)),
      token_bytes_(bare_token_bytes(config.shape)),
      memory_(config.base, config.memory) {
  static_cast<void>(size_of(u32(config.shape.capacity)));  // throws if it is too large
  if (paged()) {
    block_bytes_ = size_of(u32(config.shape.block));
    const std::int64_t blocks = config.memory.count() / block_bytes_.count();
    if (blocks < 1 || blocks > std::numeric_limits<std::uint32_t>::max()) {
      throw UserError(
          fmt::format("{} bytes for KV caches hold {} blocks of {} bytes; at least 1 and less than 2^32 "
                      "are needed",
                      config.memory.count(), blocks, block_bytes_.count()));
    }
    blocks_.emplace(u32(blocks), u32(config.shape.block));
  }
}

const KvSessions::Session& KvSessions::at(SessionId session) const {
  check(session.pos() < sessions_.size(), "a session was opened");
  return sessions_[session.pos()];
}

KvSessions::Session& KvSessions::at(SessionId session) {
  check(session.pos() < sessions_.size(), "a session was opened");
  return sessions_[session.pos()];
}

SessionId KvSessions::open() {
  sessions_.emplace_back();
  return SessionId(sessions() - 1);
}

SessionId KvSessions::fork(SessionId parent) {
  check(paged(), "only blocks are shared");
  Session child = at(parent);
  for (const Address buffer : child.buffers) {
    blocks_->share(block(buffer));
  }
  child.written_from = child.depth;
  child.started = ++version_;
  sessions_.push_back(std::move(child));
  return SessionId(sessions() - 1);
}

std::optional<std::uint64_t> KvSessions::age(SessionId session) const {
  const Session& s = at(session);
  return s.depth == 0 ? std::nullopt : std::optional(s.started);
}

Bytes KvSessions::size_of(std::uint32_t tokens) const {
  return AddressAllocator::rounded(checked_product(kWhat, {bytes_per_token(cells_shape_).count(), tokens}));
}

Bytes KvSessions::occupied() const {
  return paged() ? block_bytes_ * std::int64_t{blocks_->in_use()} : memory_.in_use();
}

BlockId KvSessions::block(Address address) const {
  return BlockId(
      static_cast<std::uint32_t>((address - config_.base) / static_cast<Address>(block_bytes_.count())));
}

/// Tokens that the buffer of a session with `tokens` tokens has room for.
std::uint32_t KvSessions::grown(const Session& session, std::uint32_t tokens) const {
  const std::uint32_t limit = u32(config_.shape.capacity);
  switch (config_.growth) {
    case KvGrowth::preallocate:
      return limit;
    case KvGrowth::doubled:
      return tokens <= session.room
                 ? session.room
                 : std::max(tokens, u32(std::min<std::int64_t>(limit, 2 * std::int64_t{session.room})));
    case KvGrowth::concatenate:
      return tokens;
    case KvGrowth::paged:
      break;
  }
  return u32(config_.shape.block);
}

std::optional<KvBatchRefusal> KvSessions::over_limit(std::span<const KvDemand> batch) const {
  std::set<SessionId> named;
  for (const KvDemand& demand : batch) {
    const Session& session = at(demand.session);
    check(demand.tokens > 0 && named.insert(demand.session).second,
          "a session's tokens are asked for once per batch");
    check(demand.ids.size() == (config_.share_prefixes ? demand.tokens : 0U),
          "tokens have ids if and only if prefixes are shared");
    const std::uint32_t left = u32(config_.shape.capacity) - session.depth;
    if (demand.tokens > left) {
      return KvBatchRefusal{.why = KvBatchRefusal::Why::length,
                            .session = demand.session,
                            .asked = token_bytes_ * std::int64_t{demand.tokens},
                            .left = token_bytes_ * std::int64_t{left}};
    }
  }
  return std::nullopt;
}

std::variant<KvBatchPlan, KvBatchRefusal> KvSessions::plan(std::span<const KvDemand> batch) const {
  if (const auto refusal = over_limit(batch)) {
    return *refusal;
  }
  auto answer = paged() ? plan_blocks(batch) : plan_buffers(batch);
  if (auto* plan = std::get_if<KvBatchPlan>(&answer)) {
    plan->version = version_;
  }
  return answer;
}

/// Tries it out on a copy of the memory's book-keeping.
std::variant<KvBatchPlan, KvBatchRefusal> KvSessions::plan_buffers(std::span<const KvDemand> batch) const {
  AddressAllocator memory = memory_;
  KvBatchPlan plan;
  plan.peak = memory.in_use();
  for (const KvDemand& demand : batch) {
    const Session& session = at(demand.session);
    const std::uint32_t room = grown(session, session.depth + demand.tokens);
    if (room != session.room) {
      if (!memory.allocate(size_of(room))) {
        return KvBatchRefusal{.session = demand.session,
                              .asked = size_of(room),
                              .left = memory.left(),
                              .largest_hole = memory.largest_hole()};
      }
      plan.peak = std::max(plan.peak, memory.in_use());
      if (!session.buffers.empty()) {
        memory.free(session.buffers.front());
      }
    }
    plan.intakes.push_back({.session = demand.session,
                            .first = Token(session.depth),
                            .tokens = demand.tokens,
                            .shared = 0,
                            .ids = {}});
  }
  plan.occupied = memory.in_use();
  return plan;
}

/// Full blocks that begin with a new session's tokens. The last token is computed in any case, for its logits
/// (vLLM v1/core/kv_cache_manager.py, get_computed_blocks).
std::vector<BlockId> KvSessions::shared_blocks(const Session& session, std::span<const TokenId> ids) const {
  if (session.depth > 0 || ids.empty()) {
    return {};
  }
  return blocks_->find(ids.first(ids.size() - 1));
}

std::variant<KvBatchPlan, KvBatchRefusal> KvSessions::plan_blocks(std::span<const KvDemand> batch) const {
  const std::uint32_t block_tokens = blocks_->block_tokens();
  KvBatchPlan plan;
  std::map<BlockId, std::int64_t> more;  // references that the batch adds to a block, or takes
  for (const KvDemand& demand : batch) {
    const std::vector<BlockId> shared = shared_blocks(at(demand.session), demand.ids);
    for (const BlockId block : shared) {
      ++more[block];
    }
    plan.intakes.push_back({.session = demand.session,
                            .first = Token(at(demand.session).depth),
                            .tokens = demand.tokens,
                            .shared = static_cast<std::uint32_t>(shared.size()) * block_tokens,
                            .ids = {demand.ids.begin(), demand.ids.end()}});
  }
  std::uint64_t taken = 0;
  for (const KvIntake& intake : plan.intakes) {
    const Session& session = at(intake.session);
    taken += blocks_for(std::uint64_t{session.depth} + intake.tokens, block_tokens) - session.buffers.size() -
             intake.shared / block_tokens;
    if (session.depth % block_tokens != 0) {
      const BlockId last = block(session.buffers.back());
      if (blocks_->references(last) + more[last] > 1) {  // is copied when it is written
        --more[last];
        ++taken;
      }
    }
    if (taken > blocks_->left()) {
      const Bytes left = block_bytes_ * std::int64_t{blocks_->left()};
      return KvBatchRefusal{.session = intake.session,
                            .asked = block_bytes_ * static_cast<std::int64_t>(taken),
                            .left = left,
                            .largest_hole = left};
    }
  }
  plan.occupied = plan.peak = occupied() + block_bytes_ * static_cast<std::int64_t>(taken);
  return plan;
}

void KvSessions::apply(const KvBatchPlan& plan, AccessSink& sink) {
  check(plan.version == version_, "a plan is applied to the state it was made for, once");
  ++version_;
  for (const KvIntake& intake : plan.intakes) {  // before any block is written
    Session& session = at(intake.session);
    for (const BlockId block :
         intake.shared > 0 ? shared_blocks(session, intake.ids) : std::vector<BlockId>{}) {
      blocks_->share(block);
      session.buffers.push_back(config_.base + block.value() * static_cast<Address>(block_bytes_.count()));
    }
  }
  for (const KvIntake& intake : plan.intakes) {
    Session& session = at(intake.session);
    const std::uint32_t before = session.depth, depth = before + intake.tokens;
    if (paged()) {
      grow_blocks(session, depth, sink);
    } else {
      grow_buffer(session, depth, sink);
    }
    session.started = before == 0 ? version_ : session.started;
    session.written_from = before + intake.shared;
    session.depth = depth;
    session.ids.insert(session.ids.end(), intake.ids.begin(), intake.ids.end());
    publish_full_blocks(session, before);
  }
  check(occupied() == plan.occupied, "a plan takes what it said");
}

void KvSessions::append(SessionId to, const KvAppend& append, AccessSink& sink) {
  const Session& session = at(to);
  check(append.tokens > 0 && append.first.value() >= session.written_from &&
            std::uint64_t{append.first.value()} + append.tokens <= session.depth,
        "appended tokens are planned, and not shared");
  const bool payload = config_.payload == KvPayload::numbers;
  const auto heads = static_cast<std::size_t>(config_.shape.kv_heads);
  const auto size = static_cast<std::size_t>(config_.shape.head_dim);
  for (const KvSide side : kSides) {
    const std::span<const float> numbers = side == KvSide::k ? append.k : append.v;
    check(numbers.size() == (payload ? heads * size * append.tokens : 0U),
          "a payload holds a number per head, dimension and token");
    std::size_t token = 0;
    for_each_run(
        session, {.first = append.first.value(), .count = append.tokens}, [&](Address at, CellRun run) {
          KvPool& cells = cells_.at(at);
          KvPlace place{.layer = append.layer, .side = side};
          cells.access_all_heads(place, run, Access::write, append.stream, sink);
          for (std::uint32_t i = 0; payload && i < run.count; ++i, ++token) {
            for (std::size_t head = 0; head < heads; ++head) {
              place.head = Head(static_cast<std::uint32_t>(head));
              cells.store(place, run.first + i, numbers.subspan((token * heads + head) * size, size));
            }
          }
        });
  }
}

void KvSessions::read(SessionId session, const KvPlace& place, TokenRange tokens, AccessSink& sink) const {
  for_each_run(at(session), tokens, [&](Address buffer, CellRun run) {
    cells_.at(buffer).access_head(place, run, Access::read, Stream(0), sink);
  });
}

void KvSessions::load(SessionId session, const KvPlace& place, TokenRange tokens,
                      std::span<float> numbers) const {
  const auto size = static_cast<std::size_t>(config_.shape.head_dim);
  for_each_run(at(session), tokens, [&](Address buffer, CellRun run) {
    cells_.at(buffer).load(place, run, numbers.first(size * run.count));
    numbers = numbers.subspan(size * run.count);
  });
  check(numbers.empty(), "as many numbers are loaded as there are");
}

}  // namespace kvsim::trace
