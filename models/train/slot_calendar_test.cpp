// SPDX-License-Identifier: Apache-2.0
#include "models/train/slot_calendar.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "configs/error/test_support.h"

namespace kvsim::model {
namespace {

constexpr Wait kNoWait{.since = 1'000'000'000};

SlotCalendar one_lane() {
  return SlotCalendar({0}, 1, 10);
}

TEST(SlotCalendar, RequestsFollowEachOther) {
  SlotCalendar bus = one_lane();
  EXPECT_EQ(bus.book(100, 30, 0, kNoWait), 100);
  EXPECT_EQ(bus.book(100, 30, 0, kNoWait), 130);
  EXPECT_EQ(bus.book(200, 30, 0, kNoWait), 200);
  EXPECT_EQ(bus.end(), 230);
}

TEST(SlotCalendar, ALateRequestFindsTheGapThatWasLeft) {
  SlotCalendar bus = one_lane();
  bus.book(100, 30, 0, kNoWait);  // [100, 130)
  bus.book(200, 30, 0, kNoWait);  // [200, 230)
  EXPECT_EQ(bus.book(110, 40, 0, kNoWait), 130);
  EXPECT_EQ(bus.book(110, 40, 0, kNoWait), 230) << "30 are left between, too few";
  EXPECT_EQ(bus.book(110, 30, 0, kNoWait), 170);
  EXPECT_EQ(bus.book(0, 30, 0, kNoWait), 0) << "before the first";
}

TEST(SlotCalendar, WhatIsForgottenIsNotBooked) {
  SlotCalendar bus = one_lane();
  bus.book(100, 30, 0, kNoWait);
  bus.book(200, 30, 0, kNoWait);
  bus.forget_before(200);
  EXPECT_EQ(bus.book(130, 30, 0, kNoWait), 230);
}

TEST(SlotCalendar, OfManyGapsTheOldestIsGivenUp) {
  SlotCalendar bus = one_lane();
  for (std::int64_t i = 1; i <= 65; ++i) {
    bus.book(100 * i, 50, 0, kNoWait);
  }
  EXPECT_EQ(bus.book(0, 50, 0, kNoWait), 150) << "not before the first";
  bus.forget_before(3000);
  bus.book(6600, 50, 0, kNoWait);
  bus.book(6700, 50, 0, kNoWait);
  EXPECT_EQ(bus.book(3000, 50, 0, kNoWait), 3050) << "gaps that nobody asks for make room";
}

TEST(SlotCalendar, LanesKeepTheirDistance) {
  SlotCalendar bus({0, 5, 7, 0}, 2, 10);  // 5 from lane 0 to 1, 7 from 1 to 0
  EXPECT_EQ(bus.book(0, 20, 0, kNoWait), 0);
  EXPECT_EQ(bus.book(0, 20, 1, kNoWait), 25);
  EXPECT_EQ(bus.book(0, 20, 1, kNoWait), 45);
  EXPECT_EQ(bus.book(200, 20, 0, kNoWait), 200);
  EXPECT_EQ(bus.book(0, 20, 0, kNoWait), 72);
  EXPECT_EQ(bus.book(0, 103, 1, kNoWait), 225)
      << "it would fit but for the 5 behind and the 7 before a lane 0";
}

TEST(SlotCalendar, IdleTimeBelongsToWhatARequestWaitedFor) {
  SlotCalendar bus = one_lane();
  bus.book(0, 100, 0, {});
  bus.book(180, 20, 0, {.since = 130, .owner = Owner::row});  // idle from 100, waited for from 130
  EXPECT_EQ(bus.idle().total(), Picoseconds());
  bus.forget_before(180);
  EXPECT_EQ(bus.idle().part(Owner::row), Picoseconds(50));
  EXPECT_EQ(bus.idle().total(), Picoseconds(50));
}

TEST(SlotCalendar, ATurnIsItsOwnReason) {
  SlotCalendar bus({0, 8, 8, 0}, 2, 2);
  bus.book(0, 100, 0, {});
  bus.book(50, 20, 1, {.since = 50, .owner = Owner::row});
  bus.forget_before(108);
  EXPECT_EQ(bus.idle().part(Owner::turnaround), Picoseconds(8));
}

TEST(SlotCalendar, NothingOverlapsWhateverTheOrder) {
  struct Booked {
    std::int64_t start, end;
    std::size_t lane;
  };
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const std::vector<std::int64_t> distances = {0, 3, 4, 0};
    SlotCalendar bus(distances, 2, 5);
    std::vector<Booked> all;
    std::int64_t now = 0;
    for (int i = 0; i < 500; ++i) {
      now += static_cast<std::int64_t>(random.below(30));
      bus.forget_before(now);
      const std::int64_t earliest = now + static_cast<std::int64_t>(random.below(200));
      const auto length = static_cast<std::int64_t>(5 + random.below(20));
      const std::size_t lane = random.below(2);
      const std::int64_t start = bus.book(earliest, length, lane, {.since = earliest, .owner = Owner::queue});
      ASSERT_GE(start, earliest);
      all.push_back({start, start + length, lane});
    }
    std::sort(all.begin(), all.end(), [](const Booked& a, const Booked& b) { return a.start < b.start; });
    for (std::size_t i = 1; i < all.size(); ++i) {
      ASSERT_GE(all[i].start, all[i - 1].end + distances[all[i - 1].lane * 2 + all[i].lane]) << seed;
    }
    bus.forget_before(bus.end());
    std::int64_t busy = 0;
    for (const Booked& b : all) {
      busy += b.end - b.start;
    }
    ASSERT_LE(bus.idle().total(), Picoseconds(bus.end() - busy)) << seed;
  }
}

}  // namespace
}  // namespace kvsim::model
