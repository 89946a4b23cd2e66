// SPDX-License-Identifier: Apache-2.0
// How sessions' buffers and blocks come, move and go.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "configs/error/error.h"
#include "traces/kv_cache/kv_sessions.h"

namespace kvsim::trace {
namespace {

constexpr std::array kSides{KvSide::k, KvSide::v};

Alloc allocation(Address address, Bytes bytes) {
  return {.address = address,
          .bytes = bytes,
          .kind = Kind::kv,
          .backing = Backing::anonymous,
          .name = alloc_name("KV cache")};
}

}  // namespace

void KvSessions::place_cells(Address buffer, std::uint32_t tokens) {
  KvPool cells(cells_shape_, {.k = cells_shape_.spec.k, .v = cells_shape_.spec.v}, tokens, buffer);
  if (config_.payload == KvPayload::numbers) {
    cells.hold_numbers();
  }
  check(cells_.emplace(buffer, std::move(cells)).second, "buffers do not overlap");
}

/// Reads and writes again, layer by layer, K and V apart.
void KvSessions::copy(const KvPool& from, CellRun cells, KvPool& to, AccessSink& sink) {
  const CellRun target{.first = 0, .count = cells.count};
  for (Layer layer(0); layer.value() < cells_shape_.layers; ++layer) {
    for (const KvSide side : kSides) {
      const KvPlace place{.layer = layer, .side = side};
      from.access_all_heads(place, cells, Access::read, Stream(0), sink);
      to.access_all_heads(place, target, Access::write, Stream(0), sink);
      if (config_.payload == KvPayload::numbers) {
        to.take_over(place, from, cells, 0);
      }
    }
  }
  counters_.copied += bytes_per_token(cells_shape_) * std::int64_t{cells.count};
}

void KvSessions::grow_buffer(Session& session, std::uint32_t tokens, AccessSink& sink) {
  const std::uint32_t room = grown(session, tokens);
  if (room == session.room) {
    return;
  }
  const Bytes bytes = size_of(room);
  const auto buffer = memory_.allocate(bytes);
  check(buffer.has_value(), "a planned buffer has a hole");
  sink.put(allocation(*buffer, bytes));
  counters_.peak = std::max(counters_.peak, occupied());
  place_cells(*buffer, room);
  if (!session.buffers.empty()) {
    copy(cells_.at(session.buffers.front()), {.first = 0, .count = session.depth}, cells_.at(*buffer), sink);
    release(session.buffers.front(), sink);
  }
  session.buffers.assign(1, *buffer);
  session.room = room;
}

void KvSessions::grow_blocks(Session& session, std::uint32_t tokens, AccessSink& sink) {
  session.room = blocks_->block_tokens();
  if (session.depth % session.room != 0) {
    own_last_block(session, sink);
  }
  while (std::uint64_t{session.room} * session.buffers.size() < tokens) {
    session.buffers.push_back(take_block(sink));
  }
}

/// A block that has others is copied before it is written: the tokens of the session, not the whole block.
void KvSessions::own_last_block(Session& session, AccessSink& sink) {
  const Address old = session.buffers.back();
  if (blocks_->references(block(old)) == 1) {
    blocks_->withdraw(block(old));
    return;
  }
  session.buffers.back() = take_block(sink);
  copy(cells_.at(old), {.first = 0, .count = session.depth % session.room}, cells_.at(session.buffers.back()),
       sink);
  release(old, sink);
}

Address KvSessions::take_block(AccessSink& sink) {
  const Address address = config_.base + blocks_->take().value() * static_cast<Address>(block_bytes_.count());
  sink.put(allocation(address, block_bytes_));
  counters_.peak = std::max(counters_.peak, occupied());
  place_cells(address, blocks_->block_tokens());
  return address;
}

void KvSessions::release(Address buffer, AccessSink& sink) {
  if (paged() && !blocks_->release(block(buffer))) {
    return;
  }
  const Bytes bytes = paged() ? block_bytes_ : memory_.free(buffer);
  check(cells_.erase(buffer) == 1, "a buffer is freed once");
  sink.put(Free{.address = buffer, .bytes = bytes});
}

void KvSessions::publish_full_blocks(const Session& session, std::uint32_t from) {
  if (!config_.share_prefixes || !session.whole) {
    return;
  }
  const std::uint32_t size = blocks_->block_tokens();
  for (std::uint32_t i = from / size; i < session.depth / size; ++i) {
    const auto before = i == 0 ? std::nullopt : std::optional(block(session.buffers[i - 1]));
    blocks_->publish(block(session.buffers[i]), before,
                     std::span(session.ids).subspan(std::size_t{i} * size, size));
  }
}

void KvSessions::keep(SessionId id, TokenRange kept, AccessSink& sink) {
  Session& session = at(id);
  check(kept.count > 0 && std::uint64_t{kept.first} + kept.count <= session.depth,
        "a session keeps tokens that it has");
  ++version_;
  counters_.evictions += session.depth - kept.count;
  if (paged()) {
    keep_in_blocks(session, kept, sink);
  } else {
    keep_in_buffer(session, kept, sink);
  }
  session.depth = kept.count;
  session.written_from = kept.count;
  session.whole = session.whole && kept.first == 0;
  if (config_.share_prefixes) {
    session.ids.erase(session.ids.begin(), session.ids.begin() + kept.first);
    session.ids.resize(kept.count);
  }
}

/// Down to the beginning of the same buffer, of which then the end is given back; where the longest context
/// stays reserved, all of it does. Ascending, no token is overwritten before it has moved.
void KvSessions::keep_in_buffer(Session& session, TokenRange kept, AccessSink& sink) {
  const std::uint32_t room = config_.growth == KvGrowth::preallocate ? session.room : kept.count;
  if (room == session.room && kept.first == 0) {
    return;
  }
  const Address buffer = session.buffers.front();
  auto old = cells_.extract(buffer);
  place_cells(buffer, room);
  copy(old.mapped(), {.first = kept.first, .count = kept.count}, cells_.at(buffer), sink);
  const Bytes before = memory_.size(buffer), after = size_of(room);
  if (after < before) {
    memory_.shrink(buffer, after);
    sink.put(Free{.address = buffer, .bytes = before});
    sink.put(allocation(buffer, after));
  }
  session.room = room;
}

void KvSessions::keep_in_blocks(Session& session, TokenRange kept, AccessSink& sink) {
  check(kept.first % session.room == 0, "whole blocks leave at the front");
  const std::size_t begin = kept.first / session.room;
  const std::size_t end = begin + (std::size_t{kept.count} + session.room - 1) / session.room;
  std::vector<Address> stay;
  for (std::size_t i = 0; i < session.buffers.size(); ++i) {
    if (begin <= i && i < end) {
      stay.push_back(session.buffers[i]);
    } else {
      release(session.buffers[i], sink);
    }
  }
  session.buffers = std::move(stay);
}

void KvSessions::reset(SessionId id, AccessSink& sink) {
  Session& session = at(id);
  ++version_;
  for (const Address buffer : session.buffers) {
    release(buffer, sink);
  }
  session = {};
}

void KvSessions::evict(SessionId session, AccessSink& sink) {
  counters_.evictions += depth(session);
  reset(session, sink);
}

KvUsage KvSessions::usage() const {
  std::map<Address, std::uint32_t> filled;  // shared blocks: by who has most of it
  std::int64_t tokens = 0, distinct = 0;
  for (const Session& session : sessions_) {
    tokens += session.depth;
    for_each_run(session, {.first = 0, .count = session.depth}, [&](Address buffer, CellRun run) {
      std::uint32_t& most = filled[buffer];
      most = std::max(most, run.count);
    });
  }
  for (const auto& [buffer, count] : filled) {
    distinct += count;
  }
  KvUsage usage{.occupied = occupied(), .stored = token_bytes_ * distinct};
  usage.shared = token_bytes_ * (tokens - distinct);
  usage.padding = usage.occupied - usage.stored;
  return usage;
}

void KvSessions::audit() const {
  std::map<Address, std::uint32_t> holders;
  for (const Session& session : sessions_) {
    for (const Address buffer : session.buffers) {
      ++holders[buffer];
    }
  }
  check(holders.size() == cells_.size(), "every buffer has a holder");
  Bytes bytes{};
  for (const auto& [buffer, count] : holders) {
    check(cells_.contains(buffer), "every holder has its buffer");
    check(count == (paged() ? blocks_->references(block(buffer)) : 1U),
          "a buffer is held as often as is counted");
    bytes += paged() ? block_bytes_ : memory_.size(buffer);
  }
  check(bytes == occupied(), "what is allocated is held");
}

}  // namespace kvsim::trace
