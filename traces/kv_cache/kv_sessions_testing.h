// SPDX-License-Identifier: Apache-2.0
// What the tests of sessions share: a small geometry, and batches that must fit.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <variant>
#include <vector>

#include "traces/kv_cache/kv_sessions.h"
#include "traces/record/sinks.h"

namespace kvsim::trace {

inline constexpr Bytes kToken{256};  // 2 layers x K and V x 2 heads x 16 numbers of 2 B

inline KvSessionsConfig small(KvGrowth growth, std::int64_t memory_tokens = 1024,
                              std::int64_t capacity = 128) {
  return {.shape = {.layers = 2, .kv_heads = 2, .head_dim = 16, .capacity = capacity},
          .growth = growth,
          .base = 4096,
          .memory = kToken * memory_tokens};
}

inline KvSessionsConfig sharing(std::int64_t memory_tokens = 1024) {
  KvSessionsConfig config = small(KvGrowth::paged, memory_tokens);
  config.share_prefixes = true;
  return config;
}

inline KvDemand demand(SessionId session, std::uint32_t tokens) {
  return {.session = session, .tokens = tokens};
}

inline KvDemand demand(SessionId session, std::span<const TokenId> ids) {
  return {.session = session, .tokens = static_cast<std::uint32_t>(ids.size()), .ids = ids};
}

/// Plans and applies, which must fit.
inline std::vector<Record> grow(KvSessions& sessions, std::vector<KvDemand> batch) {
  std::vector<Record> records;
  VectorSink sink(records);
  sessions.apply(std::get<KvBatchPlan>(sessions.plan(batch)), sink);
  sessions.audit();
  return records;
}

inline std::vector<Record> grow(KvSessions& sessions, SessionId session, std::uint32_t tokens) {
  return grow(sessions, {demand(session, tokens)});
}

inline std::vector<TokenId> ids_from(TokenId first, std::size_t count) {
  std::vector<TokenId> ids(count);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

}  // namespace kvsim::trace
