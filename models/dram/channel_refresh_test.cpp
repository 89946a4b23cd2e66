// SPDX-License-Identifier: Apache-2.0
// Does refresh come as often, and cost as much, as the timings say?
#include <gtest/gtest.h>

#include "configs/spec/resolve.h"
#include "models/dram/channel.h"
#include "models/testing/channel_bench.h"
#include "models/testing/test_device.h"

namespace kvsim::model {
namespace {

using config::RefreshMode;
using testing::ChannelBench;

config::DeviceSpec device(RefreshMode refresh, std::int64_t ranks) {
  config::DeviceSpec d = testing::device();
  d.controller.refresh = refresh;
  d.controller.ranks = ranks;
  return d;
}

constexpr std::uint16_t kRunBursts = 16;
constexpr int kRuns = 20'000;  // some three hundred refresh intervals

/// Share of the time that the data bus moved data, over `banks` open rows that are read in turn.
double busy(ChannelBench& bench, std::uint16_t banks) {
  for (int i = 0; i < kRuns; ++i) {
    bench.read(i, static_cast<std::uint16_t>(i % banks), 1, kRunBursts);
  }
  bench.run();
  const Cycle elapsed = bench.served().back().data_end - bench.served().front().data_start;
  return static_cast<double>(kRuns * kRunBursts * bench.timing().burst) / static_cast<double>(elapsed);
}

// From the last read before a refresh to the first one after it, the bus moves that last read's data and is
// idle for the rest.
TEST(ChannelRefresh, AllBankCostsItsClosedForm) {
  ChannelBench bench(device(RefreshMode::all_bank, 1));
  const ClockTiming& t = bench.timing();
  const Cycle gap = t.read_to_precharge + t.tRPab + t.tRFCab + t.tRCD - t.tCCD;
  EXPECT_NEAR(busy(bench, 1), 1.0 - static_cast<double>(gap) / static_cast<double>(t.tREFI), 0.001);
}

TEST(ChannelRefresh, PerBankCostsItsClosedFormWhenOneBankIsUsed) {
  ChannelBench bench(device(RefreshMode::per_bank, 1));
  const ClockTiming& t = bench.timing();
  const Cycle gap = t.read_to_precharge + t.tRPpb + t.tRFCpb + t.tRCD - t.tCCD;
  EXPECT_NEAR(busy(bench, 1), 1.0 - static_cast<double>(gap) / static_cast<double>(t.tREFI), 0.001);
}

TEST(ChannelRefresh, PerBankIsHiddenBehindOtherBanks) {
  ChannelBench bench(device(RefreshMode::per_bank, 1));
  EXPECT_GT(busy(bench, 4), 0.995);
}

TEST(ChannelRefresh, NoneCostsNothing) {
  ChannelBench bench(device(RefreshMode::none, 1));
  EXPECT_EQ(busy(bench, 1), 1.0);
  EXPECT_EQ(bench.counters().refreshes, 0);
}

class RefreshCount : public ::testing::TestWithParam<std::tuple<RefreshMode, int>> {};

// All that happens in a second is a read at its end: the controller catches up with a second of refreshes.
TEST_P(RefreshCount, OverASecondIsWithinOne) {
  const auto [mode, ranks] = GetParam();
  ChannelBench bench(device(mode, ranks));
  const Cycle second = command_clock(device(mode, ranks).dram).count();
  bench.read(second, 0, 1);
  bench.run();
  const auto banks = mode == RefreshMode::per_bank ? testing::device().dram.banks : 1;
  const Cycle interval = bench.timing().tREFI / banks;
  const double expected = ranks * static_cast<double>(second) / static_cast<double>(interval);
  EXPECT_NEAR(static_cast<double>(bench.counters().refreshes), expected, ranks);
}

INSTANTIATE_TEST_SUITE_P(Modes, RefreshCount,
                         ::testing::Combine(::testing::Values(RefreshMode::all_bank, RefreshMode::per_bank),
                                            ::testing::Values(1, 2)));

TEST(ChannelRefresh, ComesAsOftenUnderLoad) {
  for (const RefreshMode mode : {RefreshMode::all_bank, RefreshMode::per_bank}) {
    ChannelBench bench(device(mode, 2));
    busy(bench, 16);
    const Cycle elapsed = bench.served().back().data_end;
    const Cycle banks = mode == RefreshMode::per_bank ? testing::device().dram.banks : 1;
    const Cycle interval = bench.timing().tREFI / banks;
    const double expected = 2.0 * static_cast<double>(elapsed) / static_cast<double>(interval);
    EXPECT_NEAR(static_cast<double>(bench.counters().refreshes), expected, 2.0);
  }
}

TEST(ChannelRefresh, BanksTakeTurns) {
  ChannelBench bench(device(RefreshMode::per_bank, 1));
  busy(bench, 8);
  std::uint16_t expected = 0;
  for (const IssuedCommand& issued : bench.log()) {
    if (issued.command == Command::refresh_bank) {
      ASSERT_EQ(issued.bank, expected);
      expected = static_cast<std::uint16_t>((expected + 1) % testing::device().dram.banks);
    }
  }
}

// Refreshes of a part whose banks are refreshed some at a time: first banks in turn, as often as its standard
// says, and every bank of a set closed before.
void expect_sets(const config::DramPartSpec& part, double refreshes_per_tREFI, std::uint16_t sets) {
  config::DeviceSpec d = device(RefreshMode::per_bank, 1);
  d.dram = part;
  ChannelBench bench(d);
  busy(bench, static_cast<std::uint16_t>(part.banks));
  std::uint16_t expected = 0;
  std::vector<bool> open(static_cast<std::size_t>(part.banks));
  std::int64_t refreshes = 0;
  for (const IssuedCommand& issued : bench.log()) {
    if (issued.command == Command::activate || issued.command == Command::precharge) {
      open[issued.bank] = issued.command == Command::activate;
    } else if (issued.command == Command::refresh_bank) {
      ASSERT_EQ(issued.bank, expected);
      for (std::size_t bank = expected; bank < open.size(); bank += sets) {
        ASSERT_FALSE(open[bank]) << bank;
      }
      expected = static_cast<std::uint16_t>((expected + 1) % sets);
      ++refreshes;
    }
  }
  const double due = static_cast<double>(bench.served().back().data_end) * refreshes_per_tREFI /
                     static_cast<double>(bench.timing().tREFI);
  EXPECT_GT(static_cast<double>(refreshes), due - 2);
  EXPECT_LT(static_cast<double>(refreshes), due * 1.003 + 1);  // intervals are rounded down to clocks
}

TEST(ChannelRefresh, OfLpddr5TakesTwoBanks) {
  expect_sets(config::load_dram_part("lpddr5_6400_16gb"), 8, 8);
  expect_sets(config::load_dram_part("lpddr5_6400_16gb_8bank"), 8, 8);
}

TEST(ChannelRefresh, OfDdr5TakesABankOfEveryGroupTwiceATime) {
  expect_sets(config::load_dram_part("ddr5_4800"), 8, 4);
}

TEST(ChannelRefresh, RanksDoNotStandStillTogether) {
  ChannelBench bench(device(RefreshMode::all_bank, 2));
  busy(bench, 16);
  const std::vector<Cycle> clocks = bench.clocks(Command::refresh_all);
  ASSERT_GT(clocks.size(), 100U);
  for (std::size_t i = 1; i < clocks.size(); ++i) {
    ASSERT_GT(clocks[i] - clocks[i - 1], bench.timing().tRFCab);
  }
}

// --- whose fault is the wait?
// -----------------------------------------------------------------------------------

/// Owner of the wait of a read of `row` that arrives `after` cycles after the first refresh's due time, where
/// row 5 was open before.
Owner owner_of_wait(Cycle after, std::uint32_t row) {
  ChannelBench bench(device(RefreshMode::all_bank, 1));
  const Cycle due = bench.timing().tREFI;
  bench.read(due - 1000, 0, 5);
  const std::uint32_t tag = bench.read(due + after, 0, row);
  bench.run();
  EXPECT_EQ(bench.counters().refreshes, 1);
  return bench.served(tag).held_by;
}

TEST(ChannelRefresh, OwnsTheWaitForItsEnd) {
  EXPECT_EQ(owner_of_wait(300, 5), Owner::refresh);
  EXPECT_EQ(owner_of_wait(300, 6), Owner::refresh);
}

TEST(ChannelRefresh, OwnsOpeningItsRowAgainButNoOtherRow) {
  EXPECT_EQ(owner_of_wait(3000, 5), Owner::refresh);
  EXPECT_EQ(owner_of_wait(3000, 6), Owner::row);
}

}  // namespace
}  // namespace kvsim::model
