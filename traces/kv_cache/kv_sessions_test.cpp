// SPDX-License-Identifier: Apache-2.0
#include "traces/kv_cache/kv_sessions.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "configs/error/error.h"
#include "traces/kv_cache/kv_sessions_testing.h"

namespace kvsim::trace {
namespace {

using namespace kvsim::literals;

KvBatchRefusal refusal(const KvSessions& sessions, std::vector<KvDemand> batch) {
  return std::get<KvBatchRefusal>(sessions.plan(batch));
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
  sessions.append(id, {.layer = Layer(1), .first = Token(0), .tokens = 20}, writes);
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
  EXPECT_THROW(sessions.append(id, {.tokens = 5}, sink), InternalError);
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

}  // namespace
}  // namespace kvsim::trace
