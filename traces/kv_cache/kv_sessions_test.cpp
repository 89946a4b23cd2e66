// SPDX-License-Identifier: Apache-2.0
#include "traces/kv_cache/kv_sessions.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "configs/error/error.h"
#include "traces/kv_cache/kv_pressure.h"
#include "traces/record/sinks.h"

namespace kvsim::trace {
namespace {

using namespace kvsim::literals;

constexpr Bytes kToken = 256_B;  // 2 layers x K and V x 2 heads x 16 numbers of 2 B

KvSessionsConfig small(KvGrowth growth, std::int64_t memory_tokens = 1024, std::int64_t capacity = 128) {
  return {.shape = {.layers = 2, .kv_heads = 2, .head_dim = 16, .capacity = capacity},
          .growth = growth,
          .base = 4096,
          .memory = kToken * memory_tokens};
}

KvSessionsConfig sharing(std::int64_t memory_tokens = 1024) {
  KvSessionsConfig config = small(KvGrowth::paged, memory_tokens);
  config.share_prefixes = true;
  return config;
}

KvDemand demand(SessionId session, std::uint32_t tokens) {
  return {.session = session, .tokens = tokens};
}

KvDemand demand(SessionId session, std::span<const TokenId> ids) {
  return {.session = session, .tokens = static_cast<std::uint32_t>(ids.size()), .ids = ids};
}

/// Plans and applies, which must fit.
std::vector<Record> grow(KvSessions& sessions, std::vector<KvDemand> batch) {
  std::vector<Record> records;
  VectorSink sink(records);
  sessions.apply(std::get<KvBatchPlan>(sessions.plan(batch)), sink);
  sessions.audit();
  return records;
}

std::vector<Record> grow(KvSessions& sessions, SessionId session, std::uint32_t tokens) {
  return grow(sessions, {demand(session, tokens)});
}

KvBatchRefusal refusal(const KvSessions& sessions, std::vector<KvDemand> batch) {
  return std::get<KvBatchRefusal>(sessions.plan(batch));
}

std::vector<TokenId> ids_from(TokenId first, std::size_t count) {
  std::vector<TokenId> ids(count);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

/// What extents of a kind move.
Bytes moved(const std::vector<Record>& records, Access access) {
  Bytes bytes{};
  for (const Record& record : records) {
    const auto* extent = std::get_if<Extent>(&record);
    bytes += extent != nullptr && extent->access == access ? total_bytes(*extent) : Bytes(0);
  }
  return bytes;
}

TEST(KvSessions, ConcatenatingCopiesAllTokensForEveryNewOne) {
  KvSessions sessions(small(KvGrowth::concatenate));
  const SessionId id = sessions.open();
  Bytes read{}, written{};
  for (std::int64_t n = 1; n <= 50; ++n) {
    const std::vector<Record> records = grow(sessions, id, 1);
    read += moved(records, Access::read);
    written += moved(records, Access::write);
    EXPECT_EQ(sessions.usage().occupied, kToken * n);
    EXPECT_EQ(sessions.usage().padding, 0_B);
    EXPECT_EQ(sessions.counters().peak, kToken * (2 * n - 1));
    EXPECT_EQ(sessions.counters().copied, kToken * (n * (n - 1) / 2));
  }
  EXPECT_EQ(read, sessions.counters().copied);
  EXPECT_EQ(written, sessions.counters().copied);
}

TEST(KvSessions, DoublingHasOldAndNewTogetherAndCopiesLessThanTwice) {
  KvSessions sessions(small(KvGrowth::doubled));
  const SessionId id = sessions.open();
  std::int64_t room = 0, copied = 0, peak = 0;
  for (std::int64_t n = 1; n <= 128; ++n) {
    grow(sessions, id, 1);
    if (n > room) {
      peak = room + std::max<std::int64_t>(1, 2 * room);
      room = peak - room;
      copied += n - 1;
    }
    EXPECT_EQ(sessions.usage().occupied, kToken * room);
    EXPECT_EQ(sessions.counters().peak, kToken * peak);
    EXPECT_EQ(sessions.counters().copied, kToken * copied);
  }
  EXPECT_EQ(copied, 127);  // 1 + 2 + 4 + ... + 64
  EXPECT_EQ(peak, 64 + 128);
}

TEST(KvSessions, DoublingEndsAtTheLimit) {
  KvSessions sessions(small(KvGrowth::doubled, 1024, 100));
  const SessionId id = sessions.open();
  grow(sessions, id, 64);
  grow(sessions, id, 1);
  EXPECT_EQ(sessions.usage().occupied, kToken * 100);
}

TEST(KvSessions, PreallocatingTakesTheLongestContextAtOnceAndCopiesNothing) {
  KvSessions sessions(small(KvGrowth::preallocate));
  const SessionId id = sessions.open();
  for (std::int64_t n = 1; n <= 128; ++n) {
    EXPECT_EQ(grow(sessions, id, 1).size(), n == 1 ? 1U : 0U);
    EXPECT_EQ(sessions.usage().occupied, kToken * 128);
    EXPECT_EQ(sessions.usage().padding, kToken * (128 - n));
  }
  EXPECT_EQ(sessions.counters().copied, 0_B);
}

TEST(KvSessions, PagesWasteLessThanABlockPerSession) {
  KvSessions sessions(small(KvGrowth::paged));
  const SessionId a = sessions.open(), b = sessions.open();
  for (std::int64_t n = 1; n <= 128; ++n) {
    grow(sessions, {demand(a, 1), demand(b, 1)});
    EXPECT_EQ(sessions.usage().occupied, 2 * kToken * ((n + 15) / 16 * 16));
    EXPECT_LT(sessions.usage().padding, 2 * kToken * 16);
    EXPECT_EQ(sessions.usage().stored, 2 * kToken * n);
  }
  EXPECT_EQ(sessions.counters().copied, 0_B);
}

TEST(KvSessions, AppendsGoWhereReadsComeFrom) {
  KvSessions sessions(small(KvGrowth::paged));
  const SessionId id = sessions.open();
  grow(sessions, id, 20);
  std::vector<Record> written, read;
  VectorSink writes(written), reads(read);
  sessions.append({.session = id, .layer = Layer(1), .first = Token(0), .tokens = 20}, writes);
  ASSERT_EQ(written.size(), 4U);  // K of two blocks, V of two blocks
  // [block][layer][K, V][token][head]: 16 tokens x 64 B a side
  EXPECT_EQ(std::get<Extent>(written[3]), (Extent{.address = 4096 + 4096 + 2048 + 1024,
                                                  .row_bytes = 256_B,
                                                  .stride = 256_B,
                                                  .access = Access::write,
                                                  .kind = Kind::kv}));
  sessions.read(id, {.layer = Layer(1), .side = KvSide::v, .head = Head(1)}, {.first = 15, .count = 3},
                reads);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(std::get<Extent>(read[0]).address, 4096U + 2048 + 1024 + 15 * 64 + 32);
  EXPECT_EQ(std::get<Extent>(read[1]), (Extent{.address = 4096 + 4096 + 2048 + 1024 + 32,
                                               .row_bytes = 32_B,
                                               .rows = 2,
                                               .stride = 64_B,
                                               .kind = Kind::kv}));
}

TEST(KvSessions, CommonPrefixesAreSharedInWholeBlocksButNotTheLastToken) {
  for (const std::size_t common : {0, 1, 15, 16, 17, 31, 32, 40, 47, 48, 64}) {
    for (const std::size_t own : {0, 1, 16}) {
      if (common + own == 0) {
        continue;
      }
      KvSessions sessions(sharing());
      const SessionId a = sessions.open(), b = sessions.open();
      const std::vector<TokenId> first = ids_from(1, 64);
      std::vector<TokenId> second = ids_from(1, common);
      second.resize(common + own, 1000);
      grow(sessions, {demand(a, first)});
      const auto plan = std::get<KvBatchPlan>(sessions.plan(std::vector{demand(b, second)}));
      const std::size_t shared = std::min(common, common + own - 1) / 16 * 16;
      EXPECT_EQ(plan.intakes.at(0).shared, shared);
      grow(sessions, {demand(b, second)});
      EXPECT_EQ(sessions.usage().shared, kToken * static_cast<std::int64_t>(shared));
      EXPECT_EQ(sessions.usage().occupied,
                kToken * static_cast<std::int64_t>(64 + (common + own + 15) / 16 * 16 - shared));
    }
  }
}

TEST(KvSessions, SharedBlocksOutliveTheirFirstSession) {
  KvSessions sessions(sharing());
  const SessionId a = sessions.open(), b = sessions.open(), c = sessions.open();
  const std::vector<TokenId> ids = ids_from(1, 40);
  grow(sessions, {demand(a, ids)});
  grow(sessions, {demand(b, ids)});
  std::vector<Record> records;
  VectorSink sink(records);
  sessions.reset(a, sink);
  EXPECT_EQ(records.size(), 1U);  // its last block
  grow(sessions, {demand(c, ids)});
  EXPECT_EQ(sessions.usage().shared, kToken * 32);
  sessions.reset(b, sink);
  sessions.reset(c, sink);
  EXPECT_EQ(sessions.usage().occupied, 0_B);
  sessions.audit();
  grow(sessions, {demand(a, ids)});  // nothing is found of what was freed
  EXPECT_EQ(sessions.usage().shared, 0_B);
}

TEST(KvSessions, AForkIsCopiedBlockByBlockWhenItIsWritten) {
  KvSessions sessions(small(KvGrowth::paged));
  const SessionId parent = sessions.open();
  grow(sessions, parent, 20);
  const SessionId child = sessions.fork(parent);
  EXPECT_EQ(sessions.depth(child), 20U);
  EXPECT_EQ(sessions.usage().shared, kToken * 20);
  EXPECT_EQ(sessions.usage().occupied, kToken * 32);
  const std::vector<Record> copies = grow(sessions, child, 1);
  EXPECT_EQ(moved(copies, Access::read), kToken * 4);
  EXPECT_EQ(moved(copies, Access::write), kToken * 4);
  EXPECT_EQ(sessions.usage().shared, kToken * 16);
  EXPECT_TRUE(grow(sessions, parent, 1).empty());  // has its block for itself now
  EXPECT_EQ(sessions.counters().copied, kToken * 4);
}

TEST(KvSessions, OfTwoThatWriteASharedBlockOnlyOneCopies) {
  KvSessions sessions(small(KvGrowth::paged, 48));  // one block is left
  const SessionId parent = sessions.open();
  grow(sessions, parent, 20);
  const SessionId child = sessions.fork(parent);
  grow(sessions, {demand(parent, 1), demand(child, 1)});
  EXPECT_EQ(sessions.counters().copied, kToken * 4);
  const SessionId third = sessions.fork(parent);
  EXPECT_EQ(refusal(sessions, {demand(third, 1)}),
            (KvBatchRefusal{
                .why = KvBatchRefusal::Why::memory, .session = third, .asked = kToken * 16, .left = 0_B}));
}

TEST(KvSessions, TheLimitIsHard) {
  for (const KvGrowth growth :
       {KvGrowth::preallocate, KvGrowth::doubled, KvGrowth::concatenate, KvGrowth::paged}) {
    KvSessions sessions(small(growth));
    const SessionId id = sessions.open();
    grow(sessions, id, 100);
    EXPECT_EQ(
        refusal(sessions, {demand(id, 29)}),
        (KvBatchRefusal{
            .why = KvBatchRefusal::Why::length, .session = id, .asked = kToken * 29, .left = kToken * 28}));
    grow(sessions, id, 28);
  }
}

TEST(KvSessions, FragmentsDoNotHoldABufferThatTheirSumWould) {
  KvSessions sessions(small(KvGrowth::concatenate, 60));
  const SessionId a = sessions.open(), b = sessions.open(), c = sessions.open();
  grow(sessions, {demand(a, 20), demand(b, 20), demand(c, 20)});
  std::vector<Record> records;
  VectorSink sink(records);
  sessions.reset(a, sink);
  sessions.reset(c, sink);
  EXPECT_EQ(
      refusal(sessions, {demand(a, 30)}),
      (KvBatchRefusal{.session = a, .asked = kToken * 30, .left = kToken * 40, .largest_hole = kToken * 20}));
}

TEST(KvSessions, RefusedBatchesChangeNothingAndAreCounted) {
  KvSessions sessions(small(KvGrowth::paged, 32));
  const SessionId a = sessions.open(), b = sessions.open();
  grow(sessions, a, 16);
  const KvBatchRefusal why = refusal(sessions, {demand(a, 1), demand(b, 1)});
  EXPECT_EQ(why.session, b);
  sessions.refuse(why);
  EXPECT_EQ(sessions.counters().failures, 1U);
  EXPECT_EQ(sessions.usage().occupied, kToken * 16);
  grow(sessions, b, 16);
}

TEST(KvSessions, StalePlansAndMisuseAreBugs) {
  KvSessions sessions(small(KvGrowth::paged));
  const SessionId id = sessions.open();
  std::vector<Record> records;
  VectorSink sink(records);
  const auto plan = std::get<KvBatchPlan>(sessions.plan(std::vector{demand(id, 4)}));
  sessions.apply(plan, sink);
  EXPECT_THROW(sessions.apply(plan, sink), InternalError);
  EXPECT_THROW(static_cast<void>(sessions.plan(std::vector{demand(id, 1), demand(id, 1)})), InternalError);
  EXPECT_THROW(static_cast<void>(sessions.plan(std::vector{demand(id, 0)})), InternalError);
  EXPECT_THROW(static_cast<void>(sessions.depth(SessionId(1))), InternalError);
  EXPECT_THROW(sessions.append({.session = id, .tokens = 5}, sink), InternalError);
  EXPECT_THROW(sessions.keep(id, {.first = 1, .count = 2}, sink), InternalError);
  EXPECT_THROW(sessions.read(id, {}, {.first = 0, .count = 5}, sink), InternalError);
  KvSessions whole(small(KvGrowth::concatenate));
  const SessionId parent = whole.open();
  EXPECT_THROW(static_cast<void>(whole.fork(parent)), InternalError);
}

TEST(KvSessions, WhatDoesNotGoTogetherIsRefused) {
  const auto refused = [](KvSessionsConfig config) { EXPECT_THROW(KvSessions sessions(config), UserError); };
  KvSessionsConfig config = small(KvGrowth::paged);
  config.memory = kToken * 15;  // less than a block
  refused(config);
  config = small(KvGrowth::concatenate);
  config.share_prefixes = true;
  refused(config);
  config = small(KvGrowth::concatenate);
  config.shape.layout = config::KvLayout::paged;
  refused(config);
  config = small(KvGrowth::paged);
  config.shape.spec = config::parse_kv_spec("f16+window=8");
  refused(config);
  config.shape.spec = config::parse_kv_spec("int4:g16:channel");
  refused(config);
  config = small(KvGrowth::paged);
  config.shape.block = 0;
  refused(config);
  config = small(KvGrowth::paged);
  config.shape.capacity = 0;
  refused(config);
}

TEST(KvSessions, CutBuffersMoveDownAndGiveTheirEndBack) {
  struct Case {
    KvGrowth growth;
    std::int64_t occupied, copied;
  };
  for (const Case& c : {Case{KvGrowth::preallocate, 128, 60}, Case{KvGrowth::doubled, 60, 60},
                        Case{KvGrowth::concatenate, 60, 60}, Case{KvGrowth::paged, 80, 0}}) {
    KvSessions sessions(small(c.growth));
    const SessionId id = sessions.open();
    grow(sessions, id, 100);
    std::vector<Record> records;
    VectorSink sink(records);
    const std::uint32_t first = c.growth == KvGrowth::paged ? 32 : 40;  // 68 tokens in 5 blocks, or 60
    sessions.keep(id, {.first = first, .count = 100 - first}, sink);
    sessions.audit();
    EXPECT_EQ(sessions.usage().occupied, kToken * c.occupied);
    EXPECT_EQ(sessions.counters().copied, kToken * c.copied);
    EXPECT_EQ(sessions.counters().evictions, first);
  }
}

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
    KvSessions sessions(small(growth, 1024, 384));
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
  EXPECT_EQ(shared.sessions, 20);
}

}  // namespace
}  // namespace kvsim::trace
