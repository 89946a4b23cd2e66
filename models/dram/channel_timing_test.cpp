// SPDX-License-Identifier: Apache-2.0
// Is each gap between commands and data exactly what the timings add up to?
#include <vector>

#include <gtest/gtest.h>

#include "models/dram/channel.h"
#include "models/testing/channel_bench.h"
#include "models/testing/test_device.h"

namespace kvsim::model {
namespace {

using namespace literals;
using testing::ChannelBench;
using testing::without_refresh;

constexpr std::uint16_t kOtherRank = 8;  // first bank of rank 1

config::DeviceSpec device() {
  return without_refresh(testing::device());
}

TEST(ChannelTiming, ReadOfAClosedBank) {
  ChannelBench bench(device());
  bench.read(1000, 0, 5);
  bench.run();
  const ClockTiming& t = bench.timing();
  const Served& served = bench.served(0);
  EXPECT_EQ(served.data_start, 1000 + t.tRCD + t.read_latency);
  EXPECT_EQ(served.data_end, served.data_start + t.burst);
  EXPECT_EQ(served.unhindered, 1000 + t.read_latency);
  EXPECT_EQ(served.row_state, RowState::miss);
  EXPECT_EQ(served.held_by, Owner::row);
  EXPECT_TRUE(served.last);
}

TEST(ChannelTiming, ReadOfAnOpenRow) {
  ChannelBench bench(device());
  bench.read(1000, 0, 5);
  bench.read(5000, 0, 5);
  bench.run();
  const Served& served = bench.served(1);
  EXPECT_EQ(served.data_start, 5000 + bench.timing().read_latency);
  EXPECT_EQ(served.data_start, served.unhindered);
  EXPECT_EQ(served.row_state, RowState::hit);
}

TEST(ChannelTiming, ReadOfAnotherRow) {
  ChannelBench bench(device());
  bench.read(1000, 0, 5);
  bench.read(5000, 0, 6);
  bench.run();
  const ClockTiming& t = bench.timing();
  const Served& served = bench.served(1);
  EXPECT_EQ(served.data_start, 5000 + t.tRPpb + t.tRCD + t.read_latency);
  EXPECT_EQ(served.row_state, RowState::conflict);
  EXPECT_EQ(served.held_by, Owner::row);
}

TEST(ChannelTiming, AnotherRowWaitsUntilAYoungRowMayClose) {
  ChannelBench bench(device());
  bench.read(1000, 0, 5);
  bench.read(1010, 0, 6);
  bench.run();
  const ClockTiming& t = bench.timing();
  EXPECT_EQ(bench.served(1).data_start, 1000 + t.tRAS + t.tRPpb + t.tRCD + t.read_latency);
}

TEST(ChannelTiming, Writes) {
  ChannelBench bench(device());
  bench.write(1000, 0, 5);
  bench.write(5000, 0, 5);
  bench.write(9000, 0, 6);
  bench.run();
  const ClockTiming& t = bench.timing();
  EXPECT_EQ(bench.served(0).data_start, 1000 + t.tRCD + t.write_latency);
  EXPECT_EQ(bench.served(1).data_start, 5000 + t.write_latency);
  EXPECT_EQ(bench.served(2).data_start, 9000 + t.tRPpb + t.tRCD + t.write_latency);
}

TEST(ChannelTiming, ClosingAWrittenRowWaitsForItsRecovery) {
  ChannelBench bench(device());
  bench.write(1000, 0, 5, 8);
  bench.write(1010, 0, 6);
  bench.run();
  const ClockTiming& t = bench.timing();
  const Cycle last_write = 1000 + t.tRCD + 7 * t.tCCD;
  EXPECT_EQ(bench.served(1).data_start,
            last_write + t.write_to_precharge + t.tRPpb + t.tRCD + t.write_latency);
}

TEST(ChannelTiming, HitsFollowEachOtherWithoutAGap) {
  ChannelBench bench(device());
  for (int i = 0; i < 50; ++i) {
    bench.read(1000, 0, 5);
  }
  bench.run();
  for (std::size_t i = 1; i < bench.served().size(); ++i) {
    ASSERT_EQ(bench.served()[i].data_start - bench.served()[i - 1].data_start, bench.timing().tCCD);
  }
}

TEST(ChannelTiming, BankGroupsAlternateFasterThanOneGroupRepeats) {
  for (const bool same_group : {true, false}) {
    ChannelBench bench(without_refresh(testing::lpddr5_device()));
    const std::uint16_t other = same_group ? 1 : 4;  // four banks a group
    bench.read(1000, 0, 5);
    bench.read(1000, other, 5);
    for (int i = 0; i < 40; ++i) {
      bench.read(2000, i % 2 == 0 ? std::uint16_t{0} : other, 5);
    }
    bench.run();
    const ClockTiming& t = bench.timing();
    EXPECT_EQ(bench.served(41).data_start - bench.served(2).data_start,
              39 * (same_group ? t.tCCD_L : t.tCCD));
  }
}

TEST(ChannelTiming, RowsOfOneBankAreBoundByTheRowCycle) {
  ChannelBench bench(device());
  for (std::uint32_t row = 0; row < 40; ++row) {
    bench.read(1000, 3, row, 2);
  }
  bench.run();
  const ClockTiming& t = bench.timing();
  const std::vector<Cycle> activates = bench.clocks(Command::activate);
  ASSERT_EQ(activates.size(), 40U);
  for (std::size_t i = 1; i < activates.size(); ++i) {
    ASSERT_EQ(activates[i] - activates[i - 1], t.tRAS + t.tRPpb);
  }
  EXPECT_EQ(bench.counters().row_misses, 1);
  EXPECT_EQ(bench.counters().row_conflicts, 39);
}

TEST(ChannelTiming, LongVisitsToRowsOfOneBankEndWithReadToPrecharge) {
  constexpr int kBursts = 16;
  ChannelBench bench(device());
  for (std::uint32_t row = 0; row < 40; ++row) {
    bench.read(1000, 3, row, kBursts);
  }
  bench.run();
  const ClockTiming& t = bench.timing();
  const std::vector<Cycle> activates = bench.clocks(Command::activate);
  for (std::size_t i = 1; i < activates.size(); ++i) {
    ASSERT_EQ(activates[i] - activates[i - 1],
              t.tRCD + (kBursts - 1) * t.tCCD + t.read_to_precharge + t.tRPpb);
  }
}

TEST(ChannelTiming, ActivatesOfOneRankKeepTheirDistance) {
  ChannelBench bench(device());
  for (std::uint16_t bank = 0; bank < 4; ++bank) {
    bench.read(1000, bank, 1);
  }
  bench.run();
  const Cycle tRRD = bench.timing().tRRD;
  EXPECT_EQ(bench.clocks(Command::activate),
            (std::vector<Cycle>{1000, 1000 + tRRD, 1000 + 2 * tRRD, 1000 + 3 * tRRD}));
}

TEST(ChannelTiming, AWindowHoldsFourActivatesOfARank) {
  config::DeviceSpec fast = device();
  fast.dram.timing.tRRD = {4_ns, 0};  // so that four of them leave the window unfilled
  ChannelBench bench(fast);
  for (std::uint32_t row = 0; row < 20; ++row) {
    for (std::uint16_t bank = 0; bank < 8; ++bank) {
      bench.read(1000, bank, row);
    }
  }
  bench.run();
  const std::vector<Cycle> activates = bench.clocks(Command::activate);
  ASSERT_EQ(activates.size(), 160U);
  for (std::size_t i = 4; i < activates.size(); ++i) {
    ASSERT_GE(activates[i] - activates[i - 4], bench.timing().tFAW);
  }
  // The window, not the banks, is the bound: four rows a window all along, but for the column commands
  // between.
  const double windows = static_cast<double>(activates.back() - activates.front()) / (156.0 / 4);
  EXPECT_NEAR(windows / static_cast<double>(bench.timing().tFAW), 1.0, 0.05);
}

TEST(ChannelTiming, TwoRanksHaveAWindowEach) {
  config::DeviceSpec fast = device();
  fast.dram.timing.tRRD = {4_ns, 0};
  ChannelBench bench(fast);
  for (const std::uint16_t bank : {0, 1, 2, 3, 8, 9, 10, 11}) {
    bench.read(1000, bank, 1);
  }
  bench.run();
  const std::vector<Cycle> activates = bench.clocks(Command::activate);
  ASSERT_EQ(activates.size(), 8U);
  EXPECT_LT(activates.back() - activates.front(), bench.timing().tFAW);
}

TEST(ChannelTiming, AWriteAfterAReadWaitsForTheBusToTurn) {
  ChannelBench bench(device());
  bench.read(1000, 0, 5);
  bench.write(1001, 0, 5);
  bench.run();
  const ClockTiming& t = bench.timing();
  EXPECT_EQ(bench.clocks(Command::write).at(0) - bench.clocks(Command::read).at(0), t.read_to_write);
  EXPECT_EQ(bench.served(1).held_by, Owner::turnaround);
}

TEST(ChannelTiming, AReadAfterAWriteWaitsForTheBusToTurn) {
  ChannelBench bench(device());
  bench.write(1000, 0, 5);
  bench.read(1001 + bench.timing().tRCD, 0, 5);
  bench.run();
  const ClockTiming& t = bench.timing();
  EXPECT_EQ(bench.clocks(Command::read).at(0) - bench.clocks(Command::write).at(0), t.write_to_read);
  EXPECT_EQ(bench.served(1).held_by, Owner::turnaround);
}

TEST(ChannelTiming, TheOtherRankIsReadAfterAGapOnTheBus) {
  ChannelBench bench(device());
  bench.read(1000, 0, 5);
  bench.read(1000, kOtherRank, 5);
  bench.read(5000, 0, 5);
  bench.read(5000, kOtherRank, 5);
  bench.run();
  EXPECT_EQ(bench.served(3).data_start - bench.served(2).data_end, bench.timing().rank_switch);
  EXPECT_EQ(bench.served(3).held_by, Owner::turnaround);
}

TEST(ChannelTiming, AReadOfTheOtherRankNeedsNoWriteRecovery) {
  ChannelBench bench(device());
  bench.read(1000, kOtherRank, 5);
  bench.write(5000, 0, 5);
  bench.read(5001 + bench.timing().tRCD, kOtherRank, 5);
  bench.run();
  const ClockTiming& t = bench.timing();
  EXPECT_LT(bench.clocks(Command::read).at(1) - bench.clocks(Command::write).at(0), t.write_to_read);
  EXPECT_GE(bench.served(2).data_start - bench.served(1).data_end, t.rank_switch);
}

TEST(ChannelTiming, WithoutTurnaroundDataOfBothDirectionsIsGapless) {
  config::DeviceSpec free = device();
  free.controller.turnaround = false;
  free.controller.write_high = 1;  // a write goes at once,
  free.controller.write_low = 0;   // and then reads again
  ChannelBench bench(free);
  bench.read(1000, 0, 5);
  bench.read(1000, kOtherRank, 5);
  for (int i = 0; i < 20; ++i) {
    const std::uint16_t bank = i % 3 == 0 ? 0 : kOtherRank;
    bench.read(2000 + 16 * i, bank, 5);
    bench.write(2000 + 16 * i, bank, 5);
  }
  bench.run();
  for (std::size_t i = 3; i < bench.served().size(); ++i) {
    ASSERT_EQ(bench.served()[i].data_start, bench.served()[i - 1].data_end) << i;
  }
}

// Command edges: an activate takes four, so the one that comes with an arrival at 0 ends at 4 at the
// earliest.
TEST(ChannelTiming, CommandsShareTheCommandBus) {
  ChannelBench bench(device());
  bench.read(0, 0, 1);
  bench.read(0, kOtherRank, 1);
  bench.run();
  EXPECT_EQ(bench.clocks(Command::activate), (std::vector<Cycle>{4, 8}));
}

}  // namespace
}  // namespace kvsim::model
