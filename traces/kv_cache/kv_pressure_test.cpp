// SPDX-License-Identifier: Apache-2.0
// Memory that runs short, and what the field claims of it.
#include "traces/kv_cache/kv_pressure.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "traces/kv_cache/kv_sessions_testing.h"

namespace kvsim::trace {
namespace {

using namespace kvsim::literals;

TEST(KvPressure, TheOldestSessionOutsideTheBatchGoes) {
  KvSessions sessions(small(KvGrowth::preallocate, 3 * 128));
  const auto pressure = drop_oldest();
  const KvPressureRule rule{.pressure = *pressure, .watermark = kToken * 1024};
  std::vector<Record> records;
  VectorSink sink(records);
  std::vector<SessionId> ids;
  for (int i = 0; i < 4; ++i) {
    ids.push_back(sessions.open());
  }
  for (const std::size_t i : {1U, 0U, 2U}) {
    grow(sessions, ids[i], 10);
  }
  ASSERT_TRUE(std::holds_alternative<KvBatchPlan>(
      admit(sessions, std::vector{demand(ids[1], 1), demand(ids[3], 1)}, rule, sink)));
  EXPECT_EQ(sessions.depth(ids[1]), 11U);  // the oldest, but wanted
  EXPECT_EQ(sessions.depth(ids[0]), 0U);
  EXPECT_EQ(sessions.depth(ids[2]), 10U);
  EXPECT_EQ(sessions.counters().evictions, 10U);
  const auto all = std::vector{demand(ids[0], 1), demand(ids[1], 1), demand(ids[2], 1), demand(ids[3], 1)};
  EXPECT_TRUE(std::holds_alternative<KvBatchRefusal>(admit(sessions, all, rule, sink)));
  EXPECT_EQ(sessions.counters().failures, 1U);
}

/// Sessions of 100 tokens one after another in room for 4 (claim B5): how many come in before one is refused.
int sessions_served(bool reset_at_end, const KvPressure* pressure) {
  KvSessions sessions(small(KvGrowth::preallocate, 4 * 128));
  std::vector<Record> records;
  VectorSink sink(records);
  for (int served = 0; served < 100; ++served) {
    const SessionId id = sessions.open();
    const std::vector<KvDemand> batch{demand(id, 100)};
    if (pressure != nullptr) {
      const auto answer = admit(sessions, batch, {.pressure = *pressure, .watermark = kToken * 1024}, sink);
      if (std::holds_alternative<KvBatchRefusal>(answer)) {
        return served;
      }
    } else if (const auto answer = sessions.plan(batch); std::holds_alternative<KvBatchPlan>(answer)) {
      sessions.apply(std::get<KvBatchPlan>(answer), sink);
    } else {
      return served;
    }
    if (reset_at_end) {
      sessions.reset(id, sink);
    }
  }
  return 100;
}

TEST(KvPressure, SessionsThatStayFillTheMemoryUnlessTheyAreResetOrDropped) {
  EXPECT_EQ(sessions_served(false, nullptr), 4);
  EXPECT_EQ(sessions_served(true, nullptr), 100);
  EXPECT_EQ(sessions_served(false, drop_oldest().get()), 100);
}

/// One session that grows by a token at a time, 384 at most, cut to its last 256 (claim B8).
TEST(KvPressure, CuttingToTheLastTokensKeepsASessionAlive) {
  for (const KvGrowth growth :
       {KvGrowth::preallocate, KvGrowth::doubled, KvGrowth::concatenate, KvGrowth::paged}) {
    KvSessions sessions(small(growth, 3 * 384, 384));  // old and new, wherever the old one lies
    const auto pressure = keep_last(256);
    const SessionId id = sessions.open();
    std::vector<Record> records;
    VectorSink sink(records);
    for (int step = 1; step <= 2000; ++step) {
      ASSERT_TRUE(std::holds_alternative<KvBatchPlan>(admit(
          sessions, std::vector{demand(id, 1)}, {.pressure = *pressure, .watermark = kToken * 1024}, sink)));
      const int expected = step <= 384 ? step : 257 + (step - 385) % 128;
      ASSERT_EQ(sessions.depth(id), static_cast<std::uint32_t>(expected));
    }
    EXPECT_EQ(sessions.counters().evictions, 13U * 128);  // at 385, 513, ... 1921
  }
}

TEST(KvPressure, TheWatermarkIsKeptAsLongAsSomethingCanGo) {
  KvSessions sessions(small(KvGrowth::concatenate, 1024, 384));
  const auto pressure = keep_last(256);
  const SessionId id = sessions.open();
  std::vector<Record> records;
  VectorSink sink(records);
  const auto step = [&](Bytes watermark) {
    return admit(sessions, std::vector{demand(id, 1)}, {.pressure = *pressure, .watermark = watermark}, sink);
  };
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(std::holds_alternative<KvBatchPlan>(step(kToken * 307)));  // 80 % of 384
    ASSERT_LE(sessions.usage().occupied, kToken * 307);
  }
  while (sessions.depth(id) > 257) {
    ASSERT_TRUE(std::holds_alternative<KvBatchPlan>(step(kToken * 307)));
  }
  EXPECT_TRUE(std::holds_alternative<KvBatchPlan>(step(kToken)));  // over it, but it fits
  EXPECT_EQ(sessions.depth(id), 257U);
  EXPECT_EQ(sessions.counters().failures, 0U);
}

// Claim B2: "KV grew 8 MB (step 1), 124 MB (step 10), 1.8 GB (step 50)", 15.5 and 225 times the first step.
// What the growth policies take, in tokens of 512 KiB (7B, 32 layers x 32 heads x 128, F16): the most at any
// time so far.
TEST(Claims, BytesAtTokens1And10And50ByGrowth) {
  struct Case {
    KvGrowth growth;
    std::vector<std::int64_t> occupied, peak;
  };
  const std::vector<std::uint32_t> steps{1, 10, 50};
  for (const Case& c : {Case{KvGrowth::preallocate, {2048, 2048, 2048}, {2048, 2048, 2048}},
                        Case{KvGrowth::doubled, {1, 16, 64}, {1, 8 + 16, 32 + 64}},
                        Case{KvGrowth::concatenate, {1, 10, 50}, {1, 9 + 10, 49 + 50}},
                        Case{KvGrowth::paged, {16, 16, 64}, {16, 16, 64}}}) {
    KvSessions sessions({.shape = {.layers = 32, .kv_heads = 32, .head_dim = 128, .capacity = 2048},
                         .growth = c.growth,
                         .memory = 4_GiB});
    const SessionId id = sessions.open();
    Bytes allocated{};
    for (std::uint32_t n = 1, i = 0; n <= 50; ++n) {
      for (const Record& record : grow(sessions, id, 1)) {
        allocated += std::holds_alternative<Alloc>(record) ? std::get<Alloc>(record).bytes : Bytes(0);
      }
      if (n == steps[i]) {
        EXPECT_EQ(sessions.usage().occupied, 512_KiB * c.occupied[i]);
        EXPECT_EQ(sessions.counters().peak, 512_KiB * c.peak[i++]);
      }
    }
    if (c.growth ==
        KvGrowth::concatenate) {  // the claim lies between its peak and all that it ever allocated
      EXPECT_EQ(allocated, 512_KiB * std::int64_t{50 * 51 / 2});
    }
  }
}

/// Sessions of unequal lengths, one after another as long as they fit (claim B6).
struct Served {
  int sessions = 0;
  Bytes stored{}, occupied{};
};

constexpr std::int64_t kLengths[] = {100, 37, 512, 260};
constexpr std::int64_t kPrompt = 32;  // at the beginning of each, in whole blocks

Served serve(KvGrowth growth, bool share) {
  KvSessionsConfig config = small(growth, 8 * 512, 512);
  config.share_prefixes = share;
  KvSessions sessions(config);
  for (Served served;; ++served.sessions) {
    const auto length = static_cast<std::size_t>(kLengths[served.sessions % 4]);
    std::vector<TokenId> ids = ids_from(1, kPrompt);
    ids.resize(length, 1000 + static_cast<TokenId>(served.sessions));
    const KvDemand wanted{.session = sessions.open(),
                          .tokens = static_cast<std::uint32_t>(length),
                          .ids = share ? std::span<const TokenId>(ids) : std::span<const TokenId>()};
    if (std::holds_alternative<KvBatchRefusal>(sessions.plan(std::vector{wanted}))) {
      served.stored = sessions.usage().stored;
      served.occupied = sessions.usage().occupied;
      return served;
    }
    grow(sessions, {wanted});
  }
}

/// The same by sums: blocks of the lengths, less the prompt's for all but the first if it is shared.
int sessions_in_blocks(bool share) {
  std::int64_t left = 8 * 512 / 16;
  for (int i = 0;; ++i) {
    left -= (kLengths[i % 4] + 15) / 16 - (share && i > 0 ? kPrompt / 16 : 0);
    if (left < 0) {
      return i;
    }
  }
}

TEST(Claims, UnequalLengthsFitMoreOftenInPagesAndStillMoreWithSharedPrompts) {
  const Served whole = serve(KvGrowth::preallocate, false);
  EXPECT_EQ(whole.sessions, 8);
  EXPECT_EQ(whole.stored, kToken * (2 * (100 + 37 + 512 + 260)));
  EXPECT_EQ(whole.occupied, kToken * (8 * 512));  // 44 % used
  const Served pages = serve(KvGrowth::paged, false);
  EXPECT_EQ(pages.sessions, sessions_in_blocks(false));
  EXPECT_EQ(pages.sessions, 18);
  EXPECT_GT(ratio(pages.stored, pages.occupied), 0.95);
  const Served shared = serve(KvGrowth::paged, true);
  EXPECT_EQ(shared.sessions, sessions_in_blocks(true));
  EXPECT_EQ(shared.sessions, 19);
}

}  // namespace
}  // namespace kvsim::trace
