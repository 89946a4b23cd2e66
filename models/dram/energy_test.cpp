// SPDX-License-Identifier: Apache-2.0
// Energy of a channel against closed forms, and the state of a rank against what it was told.
#include "models/dram/energy.h"

#include <numeric>

#include <gtest/gtest.h>

#include "configs/spec/resolve.h"
#include "models/dram/load_curve.h"
#include "models/dram/request_player.h"
#include "models/testing/channel_bench.h"
#include "models/testing/test_device.h"

namespace kvsim::model {
namespace {

using namespace literals;
using config::RefreshMode;
using testing::ChannelBench;

// --- the state of a rank
// -----------------------------------------------------------------------------------------------------

TEST(RankBackground, IsActiveWhileAnyBankIsOpen) {
  RankBackground rank;
  rank.open(10);
  rank.open(20);
  rank.close(30);
  EXPECT_EQ(rank.times(35), (BackgroundTimes{25, 10, 0, 0, 0}));
  rank.close(50);
  EXPECT_EQ(rank.times(60), (BackgroundTimes{40, 20, 0, 0, 0}));
  rank.open(70);
  EXPECT_EQ(rank.times(100), (BackgroundTimes{70, 30, 0, 0, 0}));
}

TEST(RankBackground, ARowThatWillCloseIsOpenUntilThen) {
  RankBackground rank;
  rank.open(10);
  rank.close(90);  // told at 20
  EXPECT_EQ(rank.times(50), (BackgroundTimes{40, 10, 0, 0, 0}));
  rank.open(40);
  rank.close(60);
  EXPECT_EQ(rank.times(100), (BackgroundTimes{80, 20, 0, 0, 0}));
}

TEST(RankBackground, SleepsInItsState) {
  RankBackground rank;
  rank.open(10);
  rank.power_down(20);
  rank.wake(50);
  rank.close(55);
  rank.power_down(60);
  rank.wake(100);
  rank.self_refresh(110);
  EXPECT_EQ(rank.times(200), (BackgroundTimes{15, 25, 30, 40, 90}));
}

TEST(RankBackground, ToldOutOfOrderKeepsTheSum) {
  RankBackground rank;
  rank.open(100);
  rank.close(150);
  rank.open(200);
  rank.open(190);
  rank.close(210);
  rank.close(220);
  const BackgroundTimes times = rank.times(300);
  EXPECT_EQ(std::accumulate(times.begin(), times.end(), std::int64_t{0}), 300);
  EXPECT_EQ(times, (BackgroundTimes{70, 230, 0, 0, 0}));
}

// --- energy of an activity
// -------------------------------------------------------------------------------------------------------

TEST(Energy, IsCountTimesFigure) {
  const config::DramEnergy figures = testing::device().dram.energy.value();
  const DramActivity activity{.activates = 3,
                              .reads = 5,
                              .writes = 7,
                              .refreshes_all = 2,
                              .refreshes_bank = 4,
                              .background = {1_ms, 2_ms, 3_ms, 4_ms, 5_ms}};
  const EnergyAccount account = energy_of(figures, activity);
  const double wanted[] = {3e-9, 7.5e-9, 8.75e-9, 48e-9, 40e-6, 64e-6, 36e-6, 24e-6, 5e-6};
  for (std::size_t i = 0; i < kEnergyParts; ++i) {
    EXPECT_NEAR(account.parts[i].count(), wanted[i], 1e-15) << to_string(static_cast<EnergyPart>(i));
  }
  EXPECT_NEAR(account.background().count(), 169e-6, 1e-12);
  EXPECT_NEAR(account.total().count(), 169e-6 + 67.25e-9, 1e-15);
}

TEST(Energy, OfRailsAddsUp) {
  const config::DramPartSpec part = config::load_dram_part("lpddr4x_4224_8gb");
  const DramActivity activity{.activates = 1000,
                              .reads = 50000,
                              .writes = 20000,
                              .refreshes_bank = 700,
                              .background = {1_ms, 200_us, 100_us, 50_us, 1_ms}};
  double sum = 0;
  for (const Rail& rail : rails_of(part)) {
    sum += energy_of(rail.energy, activity).total().count();
  }
  ASSERT_EQ(rails_of(part).size(), 3U);
  const double total = energy_of(part.energy.value(), activity).total().count();
  EXPECT_NEAR(sum, total, 1e-3 * total);
  EXPECT_EQ(rails_of(config::load_dram_part("lpddr5_6400_16gb")).front().name, "total");
}

// --- channels
// --------------------------------------------------------------------------------------------------------------------

Cycle second(const config::DeviceSpec& device) {
  return command_clock(device.dram).count();
}

double millijoules(const config::DeviceSpec& device, const ChannelBench& bench, Cycle until) {
  return energy_of(device.dram.energy.value(), bench.activity(until)).total().count() * 1e3;
}

// 32 mW of each rank, and 1 s / 3.904 us refreshes of 20 nJ, or eight times as many of 2 nJ.
TEST(ChannelEnergy, AnIdleSecondIsStandbyAndRefresh) {
  for (const RefreshMode mode : {RefreshMode::none, RefreshMode::all_bank, RefreshMode::per_bank}) {
    config::DeviceSpec device = testing::device();
    device.controller.refresh = mode;
    ChannelBench bench(device);
    bench.idle_until(second(device));
    const double refreshes = 2 * 1 / 3.904e-6;
    const double refresh =
        mode == RefreshMode::none ? 0 : refreshes * (mode == RefreshMode::all_bank ? 20e-9 : 8 * 2e-9);
    EXPECT_NEAR(millijoules(device, bench, second(device)), 64 + refresh * 1e3, 0.01);
  }
}

// A read opens a bank; its rank stays active until a refresh closes it, or sleeps with it open.
TEST(ChannelEnergy, AnOpenRowCostsUntilItIsClosed) {
  config::DeviceSpec device = testing::without_refresh(testing::plain_device());
  ChannelBench bench(device);
  bench.read(1000, 0, 5);
  bench.run();
  const DramActivity until = bench.activity(11'000);
  const CommandClock clock(command_clock(device.dram));
  EXPECT_EQ(until.activates, 1);
  EXPECT_EQ(until.reads, 1);
  const Cycle opened = bench.clocks(Command::activate).front();
  EXPECT_EQ(until.background[0], clock.time(11'000 - opened));
  EXPECT_EQ(until.background[1], clock.time(opened));
}

TEST(ChannelEnergy, SleepIsCheap) {
  config::DeviceSpec device = testing::plain_device();
  device.controller.refresh = RefreshMode::all_bank;
  device.controller.self_refresh = 10_us;
  ChannelBench asleep(device);
  asleep.read(0, 0, 5);
  asleep.run();
  asleep.idle_until(second(device));
  // 10 us and a little awake; then 1 mW.
  EXPECT_NEAR(millijoules(device, asleep, second(device)), 1.0, 0.001);

  device.controller.self_refresh.reset();
  device.controller.power_down = 100_ns;
  ChannelBench down(device);
  down.read(0, 0, 5);
  down.run();
  down.idle_until(second(device));
  // Of each 3.904 us it wakes for a refresh: tXP, 280 ns and 100 ns more at most, at 32 mW in place of 6 mW.
  const double refreshes = 1e3 * 20e-9 / 3.904e-6;
  EXPECT_GT(millijoules(device, down, second(device)), 6 + 26 * 280 / 3904.0 + refreshes);
  EXPECT_LT(millijoules(device, down, second(device)), 6 + 26 * 400 / 3904.0 + refreshes + 0.01);
}

TEST(ChannelEnergy, MaskedWritesAreBursts) {
  const config::DeviceSpec device = testing::without_refresh(testing::plain_device());
  ChannelBench bench(device);
  bench.add({.arrival = 0, .row = 1, .bursts = 2, .access = trace::Access::write, .masked = true});
  bench.run();
  EXPECT_EQ(bench.activity(10'000).writes, 2);
}

TEST(ChannelEnergy, IdlingInStepsIsIdlingAtOnce) {
  config::DeviceSpec device = testing::device();
  device.controller.power_down = 500_ns;
  device.controller.self_refresh = 30_us;
  const auto idle = [&](Cycle step) {
    ChannelBench bench(device);
    bench.read(100, 3, 5);
    bench.run();
    for (Cycle at = 1000; at < 200'000; at += step) {
      bench.idle_until(at);
    }
    bench.idle_until(200'000);
    bench.read(210'000, 3, 5);
    bench.run();
    return bench.log();
  };
  EXPECT_EQ(idle(200'000), idle(333));
}

// --- streams
// ---------------------------------------------------------------------------------------------------------------------

PlayResult play(const config::DeviceSpec& device, std::int64_t requests,
                std::vector<DramActivity>* samples = nullptr) {
  RequestPlayer player(device.dram, device.controller, Decisions::bursts);
  if (samples != nullptr) {
    player.sample_activity(10_us, samples);
  }
  PatternSource source({.requests = requests, .read_share = 0.75, .capacity = 1_GiB});
  return player.play(source);
}

// 64 B are two bursts; rows of 2 KiB are opened once each by a stream in order, without refresh.
TEST(StreamEnergy, InOrderIsItsClosedForm) {
  config::DeviceSpec device = testing::without_refresh(testing::plain_device());
  RequestPlayer player(device.dram, device.controller, Decisions::bursts);
  PatternSource source({.requests = 32 * 1000, .capacity = 1_GiB});
  const PlayResult result = player.play(source);
  const EnergyAccount account = energy_of(device.dram.energy.value(), result.activity);
  EXPECT_NEAR(account.part(EnergyPart::read).count(), 64'000 * 1.5e-9, 1e-12);
  EXPECT_NEAR(account.part(EnergyPart::activate).count(), 1000 * 1e-9, 1e-12);
  EXPECT_EQ(account.part(EnergyPart::write).count(), 0);
  EXPECT_EQ(account.part(EnergyPart::refresh).count(), 0);
  const double active = 40e-3 * seconds(result.elapsed);
  EXPECT_NEAR(account.background().count(), active, 1e-4 * active);
  EXPECT_NEAR(picojoules_per_bit(account.total(), result.moved),
              (64'000 * 1.5e-9 + 1e-6 + active) * 1e12 / (32'000 * 512), 0.01);
}

TEST(StreamEnergy, SamplesLeadToTheSumAndChangeNothing) {
  config::DeviceSpec device = testing::device();
  device.controller.power_down = 50_ns;
  std::vector<DramActivity> samples;
  const PlayResult with = play(device, 200'000, &samples);
  const PlayResult without = play(device, 200'000);
  EXPECT_EQ(with.elapsed, without.elapsed);
  EXPECT_EQ(with.activity, without.activity);
  ASSERT_EQ(samples.size(), static_cast<std::size_t>(with.elapsed.count() / 10'000'000));
  DramActivity before;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const DramActivity step = samples[i] - before;
    before = samples[i];
    Picoseconds time;
    for (const Picoseconds each : step.background) {
      time += each;
    }
    ASSERT_NEAR(time.as_double(), 8 * 10e6, 8 * 600) << "interval " << i;  // four channels of two ranks
    ASSERT_GT(step.reads, 0);
  }
  const DramActivity rest = with.activity - before;
  EXPECT_GE(rest.reads, 0);
  EXPECT_LT(rest.reads, with.activity.reads / 10);
}

}  // namespace
}  // namespace kvsim::model
