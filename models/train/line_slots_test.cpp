// SPDX-License-Identifier: Apache-2.0
#include "models/train/line_slots.h"

#include <vector>

#include <gtest/gtest.h>

#include "configs/error/test_support.h"

namespace kvsim::model {
namespace {

TEST(LineSlots, LinesOfOneTimeFollowEachOther) {
  LineSlots slots(100);
  EXPECT_EQ(slots.pass(1000), 0);
  EXPECT_EQ(slots.pass(1000), 100);
  EXPECT_EQ(slots.pass(1050), 200);
  EXPECT_EQ(slots.pass(1300), 0);
}

TEST(LineSlots, ALateLineTakesASlotThatWasLeft) {
  LineSlots slots(100);
  slots.pass(1000);
  slots.pass(1200);
  EXPECT_EQ(slots.pass(1000), 100) << "between the two";
  EXPECT_EQ(slots.pass(500), 0) << "before them";
}

TEST(LineSlots, WaitsReachOverManyWords) {
  LineSlots slots(10);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(slots.pass(70), i * 10);
  }
}

TEST(LineSlots, WhatIsForgottenIsFreeForLaterTimes) {
  LineSlots slots(10);
  constexpr std::int64_t kRing = 65536 * 10;
  for (std::int64_t turn = 0; turn < 5; ++turn) {
    slots.forget_before(turn * kRing);
    for (int i = 0; i < 200; ++i) {
      ASSERT_EQ(slots.pass(turn * kRing), i * 10) << turn;
    }
  }
  slots.forget_before(1'000 * kRing + 5);
  EXPECT_EQ(slots.pass(1'000 * kRing + 5), 0) << "after a long rest";
}

// A server of one line at a time that takes lines in order keeps every wait within a slot of the slots'.
TEST(LineSlots, WaitsAreThoseOfAServerWithinASlot) {
  constexpr std::int64_t kSlot = 1778;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    LineSlots slots(kSlot);
    std::int64_t now = 0;
    std::int64_t free = 0;
    std::int64_t waits = 0;
    std::int64_t expected = 0;
    constexpr int kLines = 20'000;
    for (int i = 0; i < kLines; ++i) {
      now += static_cast<std::int64_t>(random.below(2 * kSlot + kSlot / 2));
      slots.forget_before(now);
      waits += slots.pass(now);
      expected += std::max<std::int64_t>(0, free - now);
      free = std::max(free, now) + kSlot;
    }
    EXPECT_NEAR(static_cast<double>(waits) / kLines, static_cast<double>(expected) / kLines, kSlot / 4.0)
        << seed;
  }
}

}  // namespace
}  // namespace kvsim::model
