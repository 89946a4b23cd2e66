// SPDX-License-Identifier: Apache-2.0
#include "sim/capture/capture_replay.h"

#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "models/stream/engine_stream.h"
#include "models/testing/test_device.h"

namespace kvsim::sim {
namespace {

using namespace literals;
using ::testing::HasSubstr;
using trace::LackeyEvent;
using trace::RegionMap;
using What = LackeyEvent::What;

LackeyEvent event(What what, std::uint64_t address, std::uint32_t bytes = 8) {
  return {.value = address, .bytes = bytes, .what = what};
}

Replayed replay(const std::vector<LackeyEvent>& events, const IssueRule& issue = {}) {
  const RegionMap regions;
  CaptureReplay capture(model::testing::device(), regions, issue);
  capture.take(events);
  return capture.finish();
}

TEST(PageMap, PagesComeInOrderOfFirstTouch) {
  PageMap pages(4_KiB, 16_KiB);
  EXPECT_EQ(pages.physical(0x7fff'1234), 0x234U);
  EXPECT_EQ(pages.physical(0x1000), 0x1000U);
  EXPECT_EQ(pages.physical(0x7fff'1fff), 0xfffU);
  EXPECT_EQ(pages.physical(~std::uint64_t{0}), 0x2fffU);
  EXPECT_EQ(pages.virtual_of(0x2fff), ~std::uint64_t{0});
  EXPECT_EQ(pages.virtual_of(0x234), 0x7fff'1234U);
  EXPECT_EQ(pages.physical(0), 0x3000U);
  EXPECT_THAT(message_of([&] { static_cast<void>(pages.physical(0x5000)); }),
              HasSubstr("touches more than the device's 16.00 KiB of memory, in pages of 4.00 KiB"));
  EXPECT_EQ(pages.physical(0x1fff), 0x1fffU);  // what is there stays
}

TEST(PageMap, IsOneToOne) {
  PageMap pages(4_KiB, 64_MiB);
  Random random(7);
  std::set<std::uint64_t> frames;
  std::set<std::uint64_t> virtuals;
  for (int i = 0; i < 20'000; ++i) {
    const trace::Address address = random.below(4000) * 0x101000 + random.below(4096);
    const trace::Address physical = pages.physical(address);
    ASSERT_EQ(pages.virtual_of(physical), address);
    ASSERT_LT(physical, 64U << 20);
    frames.insert(physical / 4096);
    virtuals.insert(address / 4096);
  }
  EXPECT_EQ(frames.size(), virtuals.size());
}

/// Everything after the first line hits, so that the rule alone makes the time; the work before that line is
/// hidden behind its latency.
TEST(CaptureReplay, TheIssueRuleIsTheTimeOfHits) {
  std::vector<LackeyEvent> accesses(1001, event(What::load, 0x5000));
  const Picoseconds miss = replay({accesses[0]}).file.elapsed;
  EXPECT_EQ(replay(accesses).file.elapsed, miss);
  EXPECT_EQ(replay(accesses, {.text = {}, .per_byte = 100}).file.elapsed - miss, 1000 * 800_ps);
  EXPECT_EQ(replay(accesses, {.text = {}, .per_instruction = 500}).file.elapsed - miss, 1000 * 500_ps);

  std::vector<LackeyEvent> instructions = {accesses[0]};  // cut within an instruction: it is one
  for (int i = 0; i < 1000; ++i) {
    instructions.insert(instructions.end(),
                        {event(What::instruction, 0x400000, 4), event(What::instruction, 0x400004, 4),
                         accesses[0], accesses[0]});
  }
  const Replayed replayed = replay(instructions, {.text = {}, .per_instruction = 500});
  EXPECT_EQ(replayed.file.elapsed - miss, 2000 * 500_ps);
  EXPECT_EQ(replayed.file.instructions, 2000U);
  EXPECT_EQ(replayed.file.accesses, 2001U);

  // Fractions of a picosecond are not lost; a modify moves its bytes twice.
  std::vector<LackeyEvent> modifies(1000, event(What::modify, 0x5000, 1));
  EXPECT_EQ(replay(modifies, {.text = {}, .per_byte = 0.25}).file.elapsed - miss, 500_ps);
}

TEST(CaptureReplay, CachesKeepWhatTheyHoldFromTokenToToken) {
  std::vector<LackeyEvent> events;
  for (std::uint64_t token = 0; token < 2; ++token) {
    events.push_back(event(What::token_start, token, 0));
    for (std::uint64_t i = 0; i < 1000; ++i) {
      events.push_back(event(What::load, 0x10000 + i * 64));
    }
    events.push_back(event(What::token_end, token, 0));
    events.push_back(event(What::store, 0xff'0000 + token * 64));
  }
  const Replayed replayed = replay(events);
  ASSERT_EQ(replayed.tokens.size(), 2U);
  EXPECT_EQ(replayed.tokens[0].levels[1].fills, 1000);
  EXPECT_GT(replayed.tokens[0].elapsed, 1_us);
  EXPECT_EQ(replayed.tokens[1].levels[0].hits, 1000);
  EXPECT_EQ(replayed.tokens[1].elapsed, 0_ps);
  EXPECT_EQ(replayed.tokens[1].memory.read, 0_B);
  EXPECT_EQ(replayed.file.levels[1].fills, 1002);
  EXPECT_EQ(replayed.file.memory.read, 1002 * 64_B);
  EXPECT_GT(replayed.file.elapsed, replayed.tokens[0].elapsed);
}

/// Random accesses with tokens and without, by every rule: what is moved is what is counted.
TEST(CaptureReplay, BytesAddUp) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    Random random(seed);
    std::vector<LackeyEvent> events;
    std::uint64_t read = 0;
    std::uint64_t written = 0;
    for (std::uint64_t scope = 0; scope < 6; ++scope) {
      events.push_back(event(scope % 2 == 0 ? What::token_start : What::token_end, scope / 2, 0));
      for (int i = 0; i < 10'000; ++i) {
        const auto what = static_cast<What>(random.below(4));
        const auto bytes = static_cast<std::uint32_t>(1 + random.below(100));
        events.push_back(event(what, random.below(16 << 20), bytes));
        read += reads(what) ? bytes : 0;
        written += writes(what) ? bytes : 0;
      }
    }
    const IssueRule rules[] = {{}, {.text = {}, .per_instruction = 200}, {.text = {}, .per_byte = 50}};
    const Replayed replayed = replay(events, rules[seed % 3]);
    ASSERT_EQ(replayed.tokens.size(), 3U);
    const ReplayedScope& file = replayed.file;
    ASSERT_EQ(file.kinds.size(), 1U);
    EXPECT_EQ(file.kinds[0].read_bytes, read);
    EXPECT_EQ(file.kinds[0].write_bytes, written);
    EXPECT_EQ(file.kinds[0].fill_bytes, static_cast<std::uint64_t>(file.memory.read.count()));
    EXPECT_EQ(file.kinds[0].fill_bytes, static_cast<std::uint64_t>(file.levels[1].fills) * 64);
    EXPECT_EQ(file.kinds[0].write_back_bytes, static_cast<std::uint64_t>(file.levels[1].write_backs) * 64);
    EXPECT_EQ(file.levels[0].fills, file.levels[1].fills + file.levels[1].hits);
    EXPECT_EQ(file.account.total(), file.elapsed);
    EXPECT_GT(file.levels[1].write_backs, 0);
    Picoseconds in_tokens;
    for (const ReplayedScope& token : replayed.tokens) {
      EXPECT_EQ(token.account.total(), token.elapsed);
      in_tokens += token.elapsed;
    }
    EXPECT_LT(in_tokens, file.elapsed);
  }
}

TEST(CaptureReplay, SlowerRulesTakeLongerAndMoveTheSame) {
  Random random(9);
  std::vector<LackeyEvent> events;
  for (int i = 0; i < 20'000; ++i) {
    events.push_back(event(What::load, random.below(16 << 20)));
  }
  const Replayed asap = replay(events);
  const Replayed slow = replay(events, {.text = {}, .per_instruction = 100'000});
  EXPECT_GT(slow.file.elapsed, 20'000 * 100'000_ps);
  EXPECT_GT(slow.file.elapsed, asap.file.elapsed);
  EXPECT_EQ(slow.file.kinds, asap.file.kinds);
  EXPECT_EQ(slow.file.levels, asap.file.levels);
}

}  // namespace
}  // namespace kvsim::sim
