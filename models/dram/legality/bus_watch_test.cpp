// SPDX-License-Identifier: Apache-2.0
// Do commands and data share their buses only one after the other?
#include "models/dram/legality/bus_watch.h"

#include <gtest/gtest.h>

#include "models/dram/legality/test_parts.h"

namespace kvsim::model::legality {
namespace {

using config::DramStandard;
using enum Command;

CommandBus bus_of(DramStandard standard) {
  return CommandBus(rule_table(test_part(standard), {}));
}

TEST(CommandBus, AClockIsThatOfTheLastEdge) {
  CommandBus bus = bus_of(DramStandard::lpddr4);
  EXPECT_FALSE(bus.put(activate, 3));   // 0 to 3
  EXPECT_FALSE(bus.put(precharge, 5));  // 4 to 5
  EXPECT_FALSE(bus.put(read, 9));       // 6 to 9
  EXPECT_TRUE(bus.put(write, 12));      // 9 to 12
  EXPECT_TRUE(bus.put(precharge, 12));
  EXPECT_FALSE(bus.put(refresh_all, 14));
}

TEST(CommandBus, NoTwoCommandsEndTogetherInAnyStandard) {
  for (const TestPart& part : test_parts()) {
    CommandBus bus(rule_table(part.part, {}));
    EXPECT_FALSE(bus.put(precharge, 100)) << part.name;
    EXPECT_TRUE(bus.put(precharge, 100)) << part.name;
  }
}

TEST(CommandBus, Lpddr5NeedsAClockForTheFirstHalfOfAnActivate) {
  CommandBus bus = bus_of(DramStandard::lpddr5);
  for (Cycle clock = 100; clock <= 107; ++clock) {
    EXPECT_FALSE(bus.put(read, clock));
  }
  EXPECT_EQ(bus.put(activate, 108)->rule, "ACT-1 on the command bus") << "eight clocks are full";
}

TEST(CommandBus, Lpddr5FindsTheFirstHalfAClockAmongTheEightBefore) {
  CommandBus bus = bus_of(DramStandard::lpddr5);
  for (const Cycle clock : {102, 103, 104, 105, 106, 107}) {
    EXPECT_FALSE(bus.put(read, clock));
  }
  EXPECT_FALSE(bus.put(activate, 108));  // takes 100
  EXPECT_FALSE(bus.put(activate, 109));  // takes 101
  EXPECT_TRUE(bus.put(activate, 110)) << "102 to 109 are taken";
}

struct DataBusTest : ::testing::Test {
  RuleTable table = rule_table(test_part(DramStandard::lpddr4), {});  // latencies 34 and 15, burst 8, tRTRS 4
  DataBus bus{table};
};

TEST_F(DataBusTest, BurstsOfARankFollowWithoutAGap) {
  EXPECT_FALSE(bus.put(read, 100, 0));
  EXPECT_FALSE(bus.put(read, 108, 0));
  EXPECT_EQ(bus.put(read, 115, 0)->gap, -1);
}

TEST_F(DataBusTest, RanksKeepTheirDistance) {
  EXPECT_FALSE(bus.put(read, 100, 0));
  EXPECT_FALSE(bus.put(read, 112, 1));
  EXPECT_EQ(bus.put(read, 123, 0)->gap, 3);
}

// The read's latency is the longer: a write may be asked for after a read and its data come first.
TEST_F(DataBusTest, TheOrderOfDataIsNotThatOfCommands) {
  EXPECT_FALSE(bus.put(read, 100, 0));  // 134 to 141
  DataBus late = bus;
  EXPECT_FALSE(bus.put(write, 134 - 8 - 4 - 15, 1));
  EXPECT_EQ(late.put(write, 134 - 8 - 4 - 15 + 1, 1)->gap, 3);
  DataBus behind = bus;
  EXPECT_FALSE(behind.put(write, 142 + 4 - 15, 1));
  EXPECT_EQ(bus.put(write, 142 + 3 - 15, 1)->gap, 3);
}

}  // namespace
}  // namespace kvsim::model::legality
