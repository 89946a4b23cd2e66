// SPDX-License-Identifier: Apache-2.0
#include "traces/kv_cache/kv_lane.h"

#include <set>

#include <gtest/gtest.h>

#include "traces/record/spread.h"

namespace kvsim::trace {
namespace {

std::set<std::uint32_t> cells_of(const std::vector<CellRun>& runs) {
  std::set<std::uint32_t> cells;
  std::uint32_t next = 0;
  for (const CellRun& run : runs) {
    EXPECT_GT(run.count, 0U);
    EXPECT_TRUE(cells.empty() || run.first > next) << "in order, and runs that touch are one";
    next = run.first + run.count;
    for (std::uint32_t cell = run.first; cell < next; ++cell) {
      cells.insert(cell);
    }
  }
  return cells;
}

TEST(KvLane, RunsAreTheCellsInUseAfterAnyChange) {
  SplitMix64 random(11);
  KvLane lane;
  std::set<std::uint32_t> used;
  for (std::uint32_t token = 0; token < 3000; ++token) {
    if (used.empty() || random.below(2) == 0 || token < 100) {
      used.insert(lane.place(KvPoolKind::main, Token(token)).index);
    } else {
      const auto victim = std::next(used.begin(), static_cast<std::ptrdiff_t>(random.below(used.size())));
      lane.release({.pool = KvPoolKind::main, .index = *victim});
      used.erase(victim);
    }
    ASSERT_EQ(cells_of(lane.runs(KvPoolKind::main)), used);
    ASSERT_TRUE(lane.runs(KvPoolKind::wide).empty());
  }
}

TEST(KvLane, RunsEndWhereTokensAreForgotten) {
  KvLane lane;
  for (std::uint32_t token = 0; token < 8; ++token) {
    static_cast<void>(lane.place(KvPoolKind::main, Token(token)));
  }
  EXPECT_EQ(lane.runs(KvPoolKind::main), (std::vector<CellRun>{{.first = 0, .count = 8}}));
  lane.truncate(3);
  EXPECT_EQ(lane.runs(KvPoolKind::main), (std::vector<CellRun>{{.first = 0, .count = 3}}));
  lane.clear();
  EXPECT_TRUE(lane.runs(KvPoolKind::main).empty());
}

}  // namespace
}  // namespace kvsim::trace
