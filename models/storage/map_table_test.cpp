// SPDX-License-Identifier: Apache-2.0
#include "models/storage/map_table.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "models/storage/map_cache.h"
#include "traces/record/spread.h"

namespace kvsim::model {
namespace {

TEST(MapTable, KnowsNothingAtFirst) {
  const MapTable map(5000);
  EXPECT_EQ(map.find(0), kNowhere);
  EXPECT_EQ(map.run(0, 5000), (UnitRun{0, kNowhere, 5000}));
}

TEST(MapTable, StretchesInOnePieceTakeNoTable) {
  MapTable map(10 * kMapPageUnits);
  const std::size_t empty = map.memory();
  for (Unit at = 0; at < 10 * kMapPageUnits; at += 8) {
    map.set({at, 70'000 + at, 8});
  }
  EXPECT_EQ(map.memory(), empty);
  EXPECT_EQ(map.run(0, 10 * kMapPageUnits), (UnitRun{0, 70'000, 10 * kMapPageUnits}));
  map.set({100, 5, 1});
  EXPECT_GT(map.memory(), empty);
  map.set({0, 0, kMapPageUnits});
  EXPECT_EQ(map.memory(), empty) << "a page that is written anew as a whole lies in one piece again";
}

/// Against a plain array, with short and long runs, forgotten ones among them.
TEST(MapTable, IsAnArray) {
  constexpr Unit kUnits = 3 * kMapPageUnits + 77;
  MapTable map(kUnits);
  std::vector<Unit> truth(kUnits, kNowhere);
  trace::SplitMix64 random(1);
  const auto below = [&random](std::uint64_t limit) { return static_cast<Unit>(random.below(limit)); };
  for (int step = 0; step < 3000; ++step) {
    const Unit first = below(kUnits);
    const Unit count = 1 + below(std::min<Unit>(kUnits - first, step % 7 == 0 ? kUnits : 20));
    const Unit physical = below(5) == 0 ? kNowhere : below(1'000'000);
    map.set({first, physical, count});
    for (Unit i = 0; i < count; ++i) {
      truth[first + i] = physical == kNowhere ? kNowhere : physical + i;
    }
    const Unit at = below(kUnits);
    ASSERT_EQ(map.find(at), truth[at]);
    const UnitRun run = map.run(at, kUnits - at);
    ASSERT_GE(run.count, 1U);
    for (Unit i = 0; i < run.count; ++i) {
      ASSERT_EQ(truth[at + i], run.physical == kNowhere ? kNowhere : run.physical + i);
    }
    if (at + run.count < kUnits) {
      const Unit next = truth[at + run.count];
      ASSERT_NE(next, run.physical == kNowhere ? kNowhere : run.physical + run.count) << "not the longest";
    }
  }
}

TEST(MapCache, DropsWhatWasNotUsedLongest) {
  MapCache cache(10, 3, 100);
  EXPECT_FALSE(cache.use(1));
  EXPECT_FALSE(cache.use(2));
  EXPECT_FALSE(cache.use(3));
  EXPECT_TRUE(cache.use(1));
  EXPECT_FALSE(cache.use(4));
  EXPECT_FALSE(cache.holds(2));
  EXPECT_TRUE(cache.holds(1));
  EXPECT_TRUE(cache.use(3));
  EXPECT_FALSE(cache.use(2));
  EXPECT_FALSE(cache.holds(1));
}

/// Against a list in order of use.
TEST(MapCache, IsAList) {
  MapCache cache(50, 8, 100);
  std::vector<std::uint32_t> order;
  std::uint64_t seed = 2;
  for (int step = 0; step < 5000; ++step) {
    const auto page = static_cast<std::uint32_t>(trace::spread(seed++) % 50);
    const auto found = std::find(order.begin(), order.end(), page);
    const bool held = found != order.end();
    if (held) {
      order.erase(found);
    } else if (order.size() == 8) {
      order.pop_back();
    }
    order.insert(order.begin(), page);
    ASSERT_EQ(cache.use(page), held);
  }
}

TEST(MapCache, CountsChangesAndNamesEachPageOnce) {
  MapCache cache(10, 3, 4);
  for (const std::uint32_t page : {7U, 2U, 7U}) {
    cache.note_change(page);
    EXPECT_FALSE(cache.is_journal_full());
  }
  cache.note_change(7);
  EXPECT_TRUE(cache.is_journal_full());
  EXPECT_EQ(cache.take_changed(), (std::vector<std::uint32_t>{7, 2}));
  EXPECT_FALSE(cache.is_journal_full());
  cache.note_change(2);
  EXPECT_EQ(cache.take_changed(), std::vector<std::uint32_t>{2});
}

}  // namespace
}  // namespace kvsim::model
