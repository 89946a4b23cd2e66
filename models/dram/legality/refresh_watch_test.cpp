// SPDX-License-Identifier: Apache-2.0
// Is a missing refresh seen, and only a missing one?
#include "models/dram/legality/refresh_watch.h"

#include <gtest/gtest.h>

namespace kvsim::model::legality {
namespace {

constexpr Cycle kInterval = 1000;

RefreshWatch one_rank(double interval = kInterval, std::int64_t postponed = 8) {
  return {{.ranks = 1, .banks = 4}, interval, postponed};
}

TEST(RefreshWatch, NineIntervalsAreTheLongestWithoutARefresh) {
  RefreshWatch watch = one_rank();
  EXPECT_FALSE(watch.late_bank(9 * kInterval));
  EXPECT_EQ(watch.late_bank(9 * kInterval + 1), 0U);
  EXPECT_FALSE(watch.late_bank(9 * kInterval + 2)) << "told once";
}

TEST(RefreshWatch, AfterEightPostponedTheNextIsDueAnIntervalLater) {
  RefreshWatch watch = one_rank();
  watch.refreshed(0, 1, 9 * kInterval);
  EXPECT_FALSE(watch.late_bank(10 * kInterval));
  EXPECT_TRUE(watch.late_bank(10 * kInterval + 1));
}

TEST(RefreshWatch, OnTimeForEverIsNeverLate) {
  RefreshWatch watch = one_rank(8245.248);
  for (std::int64_t i = 1; i <= 1'000'000; ++i) {
    const auto clock = static_cast<Cycle>(static_cast<double>(i) * 8245.248);
    ASSERT_FALSE(watch.late_bank(clock)) << i;
    watch.refreshed(0, 1, clock);
  }
}

// An interval rounded up by 0.752 of a clock falls a whole interval behind after 10965 refreshes, and eight
// after 87,720: the average rate counts.
TEST(RefreshWatch, ARateThatIsSlightlyTooLowIsFoundInTime) {
  RefreshWatch watch = one_rank(8245.248);
  std::int64_t i = 1;
  for (; i <= 200'000 && !watch.late_bank(i * 8246); ++i) {
    watch.refreshed(0, 1, i * 8246);
  }
  EXPECT_NEAR(static_cast<double>(i), 8 * 8245.248 / 0.752, 10);
}

TEST(RefreshWatch, EachBankCounts) {
  RefreshWatch watch = one_rank();
  for (Cycle i = 1; i <= 9; ++i) {
    for (const std::size_t bank : {0U, 1U, 3U}) {
      watch.refreshed(bank, 4, i * kInterval);
    }
  }
  EXPECT_EQ(watch.late_bank(9 * kInterval + 1), 2U);
}

TEST(RefreshWatch, AtMostEightCountAheadOfTime) {
  RefreshWatch watch = one_rank();
  for (int i = 0; i < 20; ++i) {
    watch.refreshed(0, 1, 0);
  }
  EXPECT_FALSE(watch.late_bank((9 + 8) * kInterval));
  EXPECT_TRUE(watch.late_bank((9 + 8) * kInterval + 1));
}

TEST(RefreshWatch, FewerMayBePostponed) {
  RefreshWatch watch = one_rank(kInterval, 0);
  EXPECT_FALSE(watch.late_bank(kInterval));
  EXPECT_TRUE(watch.late_bank(kInterval + 1));
}

TEST(RefreshWatch, SelfRefreshStopsTheClockButForgivesNothing) {
  RefreshWatch watch({.ranks = 2, .banks = 4}, kInterval, 8);
  watch.refreshed(4, 1, 0);
  for (Cycle i = 1; i <= 90; ++i) {
    watch.refreshed(4, 1, i * kInterval);  // the other rank stays on time
  }
  RefreshWatch asleep = one_rank();
  asleep.asleep(0, 5 * kInterval + 1);  // five are owed
  EXPECT_FALSE(asleep.late_bank(90 * kInterval));
  asleep.awake(0, 90 * kInterval);
  EXPECT_FALSE(asleep.late_bank(94 * kInterval)) << "three more may be";
  EXPECT_TRUE(asleep.late_bank(94 * kInterval + 1));
  EXPECT_EQ(watch.late_bank(90 * kInterval), 0U) << "a rank that is awake is not excused by another";
}

}  // namespace
}  // namespace kvsim::model::legality
