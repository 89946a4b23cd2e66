// SPDX-License-Identifier: Apache-2.0
// When are rows closed, refreshes postponed, and ranks sent to sleep?
#include <vector>

#include <gtest/gtest.h>

#include "models/dram/channel.h"
#include "models/testing/channel_bench.h"
#include "models/testing/test_device.h"

namespace kvsim::model {
namespace {

using namespace literals;
using config::RefreshMode;
using testing::ChannelBench;
using testing::without_refresh;

constexpr Cycle kFarOff = 1'000'000;

TEST(ClosedPage, ARowClosesWithItsLastHit) {
  config::DeviceSpec d = without_refresh(testing::device());
  d.controller.page_policy = config::PagePolicy::closed;
  ChannelBench bench(d);
  bench.read(1000, 0, 5);
  bench.read(1000, 0, 5);
  bench.read(5000, 0, 6);
  bench.run();
  EXPECT_EQ(bench.clocks(Command::read).size(), 1U);
  EXPECT_EQ(bench.clocks(Command::read_auto_precharge).size(), 2U);
  EXPECT_EQ(bench.clocks(Command::precharge).size(), 0U);
  EXPECT_EQ(bench.served(2).row_state, RowState::miss);
}

TEST(ClosedPage, TheNextRowWaitsForRecoveryAndPrecharge) {
  config::DeviceSpec d = without_refresh(testing::device());
  d.controller.page_policy = config::PagePolicy::closed;
  ChannelBench bench(d);
  bench.write(1000, 0, 5);
  bench.write(1001, 0, 6);
  bench.run();
  const ClockTiming& t = bench.timing();
  EXPECT_EQ(bench.clocks(Command::activate).at(1), 1000 + t.tRCD + t.write_to_precharge + t.tRPpb);
}

TEST(AdaptivePage, ARowClosesAfterItsTimeout) {
  config::DeviceSpec d = without_refresh(testing::device());
  d.controller.page_policy = config::PagePolicy::adaptive;
  d.controller.page_timeout = 1_us;  // 2112 clocks
  ChannelBench bench(d);
  bench.read(1000, 0, 5);
  bench.read(2000, 0, 5);  // in time
  bench.read(8000, 0, 5);  // too late
  bench.run();
  EXPECT_EQ(bench.clocks(Command::precharge), (std::vector<Cycle>{2000 + 2112}));
  EXPECT_EQ(bench.served(1).row_state, RowState::hit);
  EXPECT_EQ(bench.served(2).row_state, RowState::miss);
}

config::DeviceSpec refreshing(std::int64_t postponed) {
  config::DeviceSpec d = testing::device();
  d.controller.refresh = RefreshMode::all_bank;
  d.controller.ranks = 1;
  d.controller.postponed_refreshes = postponed;
  return d;
}

TEST(PostponedRefresh, WaitsWhileRequestsDo) {
  ChannelBench bench(refreshing(4));
  const Cycle tREFI = bench.timing().tREFI;
  for (int i = 0; i < 3000; ++i) {  // until the third refresh is due
    bench.read(0, 0, 1);
  }
  bench.read(10 * tREFI, 0, 1);
  bench.run();
  const std::vector<Cycle> refreshes = bench.clocks(Command::refresh_all);
  const Cycle busy_until = bench.served(2999).data_end;
  ASSERT_GT(busy_until, 2 * tREFI);
  EXPECT_GE(refreshes.at(0), busy_until - bench.timing().read_latency - bench.timing().burst);
  EXPECT_LE(refreshes.at(1), refreshes.at(0) + bench.timing().tRFCab) << "made up for when idle";
  EXPECT_EQ(refreshes.size(), 9U) << "the tenth is due with the last read, and waits for it";
}

TEST(PostponedRefresh, WaitsNoLongerThanItMay) {
  ChannelBench bench(refreshing(4));
  const Cycle tREFI = bench.timing().tREFI;
  for (int i = 0; i < 10'000; ++i) {
    bench.read(0, 0, 1);
  }
  bench.run();
  const std::vector<Cycle> refreshes = bench.clocks(Command::refresh_all);
  ASSERT_GT(refreshes.size(), 2U);
  for (std::size_t i = 0; i < refreshes.size(); ++i) {
    EXPECT_LE(refreshes[i], static_cast<Cycle>(i + 5) * tREFI);
  }
  EXPECT_GT(refreshes[0], 4 * tREFI);
}

TEST(Temperature, HalvesTheRefreshIntervalWhenHot) {
  for (const auto& [celsius, rate] : {std::pair{45.0, 1}, {90.0, 2}, {100.0, 4}}) {
    config::DeviceSpec d = refreshing(0);
    d.controller.temperature = Celsius(celsius);
    ChannelBench bench(d);
    bench.read(kFarOff, 0, 1);
    bench.run();
    EXPECT_NEAR(static_cast<double>(bench.counters().refreshes),
                static_cast<double>(rate * kFarOff / bench.timing().tREFI), 1.0);
  }
}

TEST(PowerDown, ComesAfterIdleTimeAndEndsWithARequest) {
  config::DeviceSpec d = without_refresh(testing::one_rank_device());
  d.controller.power_down = 1_us;
  ChannelBench bench(d);
  bench.read(1000, 0, 5);
  bench.read(kFarOff, 0, 5);
  bench.run();
  const ClockTiming& t = bench.timing();
  EXPECT_EQ(bench.clocks(Command::power_down_enter), (std::vector<Cycle>{bench.served(0).data_end + 2112}));
  EXPECT_EQ(bench.clocks(Command::power_down_exit), (std::vector<Cycle>{kFarOff}));
  EXPECT_EQ(bench.served(1).data_start, kFarOff + t.tXP + t.read_latency);
}

TEST(PowerDown, IsLeftForRefreshes) {
  config::DeviceSpec d = refreshing(0);
  d.controller.power_down = 500_ns;
  ChannelBench bench(d);
  bench.read(1000, 0, 5);
  bench.read(kFarOff, 0, 5);
  bench.run();
  const auto expected = static_cast<std::size_t>(kFarOff / bench.timing().tREFI);
  EXPECT_NEAR(static_cast<double>(bench.clocks(Command::refresh_all).size()), static_cast<double>(expected),
              1);
  EXPECT_GE(bench.clocks(Command::power_down_exit).size(), expected);
}

TEST(SelfRefresh, NeedsNoRefreshesAndEndsWithARequest) {
  config::DeviceSpec d = refreshing(0);
  d.controller.power_down = 500_ns;
  d.controller.self_refresh = 10_us;
  ChannelBench bench(d);
  bench.read(1000, 0, 5);
  bench.read(kFarOff, 0, 5);
  bench.run();
  const ClockTiming& t = bench.timing();
  EXPECT_EQ(bench.clocks(Command::self_refresh_enter).size(), 1U);
  EXPECT_EQ(bench.clocks(Command::self_refresh_exit), (std::vector<Cycle>{kFarOff}));
  EXPECT_LE(bench.clocks(Command::refresh_all).size(), 5U);
  EXPECT_GE(bench.served(1).data_start, kFarOff + t.tXSR + t.tRCD + t.read_latency);
}

TEST(BankQueue, HoldsAsManyRequestsOfEachBankOfBothKinds) {
  config::DeviceSpec d = without_refresh(testing::device());
  d.controller.queue = config::QueueKind::bank;
  d.controller.read_queue = 2;
  ChannelBench bench(d);
  bench.read(1000, 0, 1);
  bench.write(1050, 0, 2);
  bench.read(1051, 0, 1);  // seen: hits the open row before the write opens its own
  bench.run();
  EXPECT_EQ(bench.order(), (std::vector<std::uint32_t>{0, 2, 1}));
}

TEST(MaskedWrite, KeepsItsDistanceInABank) {
  ChannelBench bench(without_refresh(testing::device()));
  bench.write(1000, 0, 5);
  bench.add({.arrival = 1000, .row = 5, .bank = 0, .access = trace::Access::write, .masked = true});
  bench.run();
  EXPECT_EQ(bench.clocks(Command::masked_write).at(0) - bench.clocks(Command::write).at(0),
            bench.timing().tCCDMW);
}

TEST(Activates, AreNotHeldUpByReadsThatCanWait) {
  ChannelBench bench(without_refresh(testing::device()));
  const ClockTiming& t = bench.timing();
  // Bank 0 could be read one clock before bank 3 may be opened; then the activate would come three late.
  for (std::uint16_t bank = 0; bank < 4; ++bank) {
    bench.read(1000, bank, 1);
  }
  bench.run();
  const std::vector<Cycle> activates = bench.clocks(Command::activate);
  for (std::size_t i = 1; i < activates.size(); ++i) {
    EXPECT_EQ(activates[i] - activates[i - 1], t.tRRD);
  }
}

}  // namespace
}  // namespace kvsim::model
