// SPDX-License-Identifier: Apache-2.0
#include "models/board/board.h"

#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "models/board/board_parts.h"

namespace kvsim::model {
namespace {

using namespace kvsim::literals;
using config::ClockGovernor;
using config::ClockKind;
using config::PowerKind;

constexpr Picoseconds kSecond = 1000_ms;

/// Four cores of 0.72 W each at the top and a DRAM, in one lump of 20 J/K with 8 K/W to ambient.
config::DeviceSpec small_device() {
  config::DeviceSpec device;
  device.dram.standard = config::DramStandard::ddr5;  // whose refresh has one step, at 85 C
  config::ClockDomainSpec big;
  big.name = "big";
  big.cores = 4;
  big.opps = {{600_MHz, Volts(0.675)}, {1200_MHz, Volts(0.7)}, {1800_MHz, Volts(0.85)}, {2400_MHz, Volts(1)}};
  big.switch_stall = 40_us;
  big.power_coefficient = Farads(300e-12);
  config::ClockDomainSpec ddr;
  ddr.name = "ddr";
  ddr.kind = ClockKind::dram;
  ddr.opps = {
      {528_MHz, Volts(0.675)}, {1068_MHz, Volts(0.725)}, {1560_MHz, Volts(0.8)}, {2112_MHz, Volts(0.875)}};
  ddr.bytes_per_clock = 4_B;
  device.clocks = config::ClocksSpec{{big, ddr}};
  config::ThermalSpec thermal;
  thermal.ambient = Celsius(30);
  thermal.case_name = "bare";
  thermal.cases = {{.name = "bare",
                    .nodes = {{.name = "soc", .capacity = JoulesPerKelvin(20), .foster = {}}},
                    .links = {{.from = "soc", .to = "ambient", .resistance = KelvinPerWatt(8)}},
                    .fan = {}}};
  thermal.sensors = {{.name = "soc", .node = "soc", .resolution = Celsius(0.001)}};
  thermal.dram_node = "soc";
  device.thermal = thermal;
  config::PowerSpec power;
  power.parts = {{.name = "cores",
                  .kind = PowerKind::logic,
                  .rail = "cpu",
                  .node = "soc",
                  .domain = "big",
                  .cores = 4,
                  .capacitance = Farads(300e-12),
                  .leakage = {},
                  .leakage_doubles = Celsius(25),
                  .idle = {},
                  .active = {}},
                 {.name = "memory", .kind = PowerKind::dram, .rail = "ddr", .node = "soc"},
                 {.name = "rest", .kind = PowerKind::board, .rail = "io", .node = "soc", .idle = Watts(0.5)}};
  device.power = power;
  return device;
}

Activity working(double busy, Watts dram = Watts(0.4)) {
  return {.domains = {{busy, busy, 1}, {}}, .channel_load = {0.3, 0.1}, .dram = dram, .storage = 0};
}

/// All changes on the way.
std::vector<Changes> run(Board& board, const Activity& activity, Picoseconds time) {
  std::vector<Changes> all;
  const Picoseconds end = board.now() + time;
  while (board.now() < end) {
    Changes changes = board.advance(activity, end - board.now());
    if (changes.any()) {
      all.push_back(changes);
    }
  }
  return all;
}

void add_zone(config::DeviceSpec& device, config::ThermalGovernor governor,
              std::vector<config::TripSpec> trips) {
  config::ThermalZoneSpec zone;
  zone.name = "soc";
  zone.sensor = "soc";
  zone.governor = governor;
  zone.polling = kSecond;
  zone.passive_polling = 100_ms;
  zone.trips = std::move(trips);
  zone.cooling = {{"big", 1024}};
  device.thermal->zones = {zone};
}

constexpr config::TripSpec passive(double at, double hysteresis = 0) {
  return {config::TripKind::passive, Celsius(at), Celsius(hysteresis)};
}

TEST(Board, ConstantPowerIsTheNetworksExponential) {
  Board board(small_device());
  EXPECT_TRUE(run(board, working(1), 100 * kSecond).empty());
  const double power = 4 * 0.72 + 0.4 + 0.5;
  EXPECT_NEAR(board.power().count(), power, 1e-12);
  EXPECT_NEAR(board.energy().count(), power * 100, 1e-9);
  EXPECT_NEAR(board.temperature(0).count(), 30 + power * 8 * -std::expm1(-100.0 / 160), 1e-9);
}

TEST(Board, EnergyOfRailsIsHeatOfNodes) {
  config::DeviceSpec device = small_device();
  device.power->parts[0].leakage = Watts(0.2);
  add_zone(device, config::ThermalGovernor::step_wise, {passive(50, 1)});
  Board board(device);
  run(board, working(1), 300 * kSecond);
  run(board, working(0.2), 100 * kSecond);
  const BoardState state = board.state();
  Joules rails;
  for (const RailState& rail : state.rails) {
    rails += rail.energy;
  }
  const double total = state.energy.count();
  EXPECT_NEAR(rails.count(), total, 1e-12 * total);
  EXPECT_NEAR(board.network().put_in().count(), total, 1e-9 * total);
  EXPECT_NEAR((board.network().stored() + board.network().given_off()).count(), total, 1e-6 * total);
}

/// The same, whichever way the time is cut.
TEST(Board, PiecesMakeTheWhole) {
  config::DeviceSpec device = small_device();
  device.power->parts[0].leakage = Watts(0.3);
  device.clocks->domains[0].governor = ClockGovernor::schedutil;
  device.clocks->domains[1].governor = ClockGovernor::dmc_ondemand;
  device.clocks->domains[1].up_threshold = 40;
  device.clocks->domains[1].sampling = 50_ms;
  add_zone(device, config::ThermalGovernor::power_allocator, {passive(40), passive(50)});
  device.thermal->zones[0].sustainable_power = Watts(1);
  Board whole(device);
  Board pieces(device);
  const std::vector<Changes> expected = run(whole, working(1), 500 * kSecond);
  std::vector<Changes> got;
  Random random(5);
  while (pieces.now() < 500 * kSecond) {
    const Picoseconds piece(static_cast<std::int64_t>(1 + random.below(30'000'000'000)));
    Changes changes = pieces.advance(working(1), std::min(piece, 500 * kSecond - pieces.now()));
    if (changes.any()) {
      got.push_back(changes);
    }
  }
  ASSERT_EQ(got.size(), expected.size());
  ASSERT_GT(got.size(), 3U);
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].clocks.size(), expected[i].clocks.size()) << i;
    for (std::size_t j = 0; j < got[i].clocks.size(); ++j) {
      EXPECT_EQ(got[i].clocks[j].to, expected[i].clocks[j].to);
    }
  }
  EXPECT_NEAR(whole.temperature(0).count(), pieces.temperature(0).count(), 1e-8);
  EXPECT_NEAR(whole.energy().count(), pieces.energy().count(), 1e-7);
}

TEST(Board, GovernorsChangeClocksAndTellTheStall) {
  config::DeviceSpec device = small_device();
  device.clocks->domains[0].governor = ClockGovernor::ondemand;
  Board board(device);
  Changes changes = board.advance(working(0), kSecond);
  EXPECT_EQ(changes.elapsed, 10_ms);
  ASSERT_EQ(changes.clocks.size(), 1U);
  EXPECT_EQ(changes.clocks[0].to, 600_MHz);
  EXPECT_EQ(changes.clocks[0].limit, ClockLimit::governor);
  EXPECT_EQ(changes.stall, 40_us);
  changes = board.advance(working(1), kSecond);
  EXPECT_EQ(changes.elapsed, 10_ms);
  EXPECT_EQ(changes.clocks[0].to, 2400_MHz);
  EXPECT_EQ(changes.clocks[0].limit, ClockLimit::none);
}

TEST(Board, TheDramFollowsItsBusiestChannelEvery50ms) {
  config::DeviceSpec device = small_device();
  config::ClockDomainSpec& ddr = device.clocks->domains[1];
  ddr.governor = ClockGovernor::dmc_ondemand;
  ddr.up_threshold = 40;
  ddr.sampling = 50_ms;
  Board board(device);
  Activity activity = working(1);
  activity.channel_load = {0.05, 0.10, 0, 0};
  Changes changes = board.advance(activity, kSecond);
  EXPECT_EQ(changes.elapsed, 50_ms);
  EXPECT_EQ(changes.clocks.at(0).to, 1068_MHz);
  // Half of the window at 20 %, half at 70 %: 45 % is above the threshold.
  activity.channel_load = {0.2, 0, 0, 0};
  EXPECT_EQ(board.advance(activity, 25_ms).elapsed, 25_ms);
  activity.channel_load = {0.7, 0, 0, 0};
  changes = board.advance(activity, kSecond);
  EXPECT_EQ(changes.elapsed, 25_ms);
  EXPECT_EQ(changes.clocks.at(0).to, 2112_MHz);
}

TEST(Board, BwmonCountsBytesOfTheChannel) {
  config::DeviceSpec device = small_device();
  config::ClockDomainSpec& ddr = device.clocks->domains[1];
  ddr.governor = ClockGovernor::bwmon;
  ddr.sampling = 4_ms;
  ddr.down_samples = 2;
  Board board(device);
  Activity activity = working(1);
  activity.channel_load = {0.5, 0.1};  // 2112 MHz x 4 B x 0.5: 1056 MHz' worth
  const Changes changes = board.advance(activity, kSecond);
  EXPECT_EQ(changes.elapsed, 8_ms);
  EXPECT_EQ(changes.clocks.at(0).to, 1068_MHz);
}

TEST(Board, StepWiseHoldsItsTrip) {
  config::DeviceSpec device = small_device();
  add_zone(device, config::ThermalGovernor::step_wise, {passive(45, 1)});
  Board board(device);
  const std::vector<Changes> changes = run(board, working(1), 600 * kSecond);
  ASSERT_FALSE(changes.empty());
  EXPECT_EQ(changes[0].clocks.at(0).limit, ClockLimit::heat);
  EXPECT_NEAR(board.temperature(0).count(), 45, 1.5);
  run(board, working(0), 600 * kSecond);
  EXPECT_EQ(board.domain(0).clock(), 2400_MHz);
}

TEST(Board, PowerAllocatorComesToItsTarget) {
  config::DeviceSpec device = small_device();
  add_zone(device, config::ThermalGovernor::power_allocator, {passive(40), passive(50)});
  device.thermal->zones[0].sustainable_power = Watts(1.6);
  Board board(device);
  run(board, working(1), 900 * kSecond);
  EXPECT_NEAR(board.temperature(0).count(), 50, 1);
  EXPECT_LT(board.domain(0).clock(), 2400_MHz);
}

TEST(Board, CapsOfATemperatureAreApartFromHeat) {
  config::DeviceSpec device = small_device();
  device.thermal->caps = {{"soc", "big", Celsius(45), Celsius(5), 1900_MHz, kSecond}};
  Board board(device);
  const std::vector<Changes> changes = run(board, working(1), 600 * kSecond);
  ASSERT_FALSE(changes.empty());
  EXPECT_EQ(changes[0].clocks.at(0).to, 1800_MHz);
  EXPECT_EQ(changes[0].clocks.at(0).limit, ClockLimit::temperature_cap);
}

TEST(Board, OverCurrentSlowsDownAColdDevice) {
  config::DeviceSpec device = small_device();
  config::PowerLimitSpec limit;
  limit.name = "oc";
  limit.rail = "cpu";
  limit.limit = Watts(2);
  limit.window = 5_ms;
  limit.release = 0.5;
  limit.domains = {"big"};
  device.power->limits = {limit};
  Board board(device);
  const Changes first = board.advance(working(1), kSecond);
  EXPECT_EQ(first.elapsed, 5_ms);
  EXPECT_EQ(first.clocks.at(0).to, 1800_MHz);
  EXPECT_EQ(first.clocks.at(0).limit, ClockLimit::over_current);
  EXPECT_TRUE(run(board, working(1), kSecond).empty());  // 1.56 W: below the limit and not below its release
  EXPECT_LT(board.temperature(0), Celsius(31));
  EXPECT_EQ(board.state().over_current_alarms, 1U);
  const Changes back = board.advance(working(0.1), kSecond);
  EXPECT_EQ(back.clocks.at(0).to, 2400_MHz);
}

TEST(Board, ACriticalTripWithAnEquilibriumIsNoRunaway) {
  config::DeviceSpec device = small_device();
  add_zone(device, config::ThermalGovernor::none, {{config::TripKind::critical, Celsius(50), Celsius(0)}});
  Board board(device);
  const std::vector<Changes> changes = run(board, working(1), 600 * kSecond);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_TRUE(changes[0].went_down);
  const BoardState state = board.state();
  EXPECT_FALSE(state.runaway);
  ASSERT_TRUE(state.down_at.has_value());
  EXPECT_EQ(state.power, Watts(0));
  EXPECT_LT(board.temperature(0), Celsius(50));
}

TEST(Board, LeakageWithoutEquilibriumRunsAway) {
  config::DeviceSpec device = small_device();
  device.power->parts[0].leakage = Watts(0.8);
  device.power->parts[0].leakage_doubles = Celsius(20);
  Board board(device);
  run(board, working(1), 3600 * kSecond);
  EXPECT_TRUE(board.state().down_at.has_value());
  EXPECT_TRUE(board.state().runaway);
  // With less it comes to rest.
  device.power->parts[0].leakage = Watts(0.05);
  Board calm(device);
  run(calm, working(1), 3600 * kSecond);
  EXPECT_FALSE(calm.state().down_at.has_value());
}

TEST(Board, RefreshFollowsTheDramsTemperature) {
  config::DeviceSpec device = small_device();
  device.dram.standard = config::DramStandard::lpddr4x;
  device.thermal->ambient = Celsius(60);
  Board board(device);
  EXPECT_EQ(board.refresh_rate(), 1);
  const std::vector<Changes> changes = run(board, working(1), 3600 * kSecond);  // rests at 90 C
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].refresh_rate, 2);
  EXPECT_EQ(board.refresh_rate(), 2);
}

TEST(Board, SettlesWhereItWouldRest) {
  Board settled(small_device());
  settled.settle(working(0.3));
  Board waited(small_device());
  run(waited, working(0.3), 20'000 * kSecond);
  EXPECT_NEAR(settled.temperature(0).count(), waited.temperature(0).count(), 1e-6);
}

TEST(Board, SettlesClocksToo) {
  config::DeviceSpec device = small_device();
  device.clocks->domains[0].governor = ClockGovernor::ondemand;
  device.clocks->domains[1].governor = ClockGovernor::dmc_ondemand;
  device.clocks->domains[1].up_threshold = 40;
  Board board(device);
  Activity idle = working(0.01);
  idle.channel_load = {0.01, 0};
  board.settle(idle);
  EXPECT_EQ(board.domain(0).clock(), 600_MHz);
  EXPECT_EQ(board.domain(1).clock(), 528_MHz);
  EXPECT_TRUE(run(board, idle, 60 * kSecond).empty());
}

/// Votes of a domain's clock reach the DRAM at its next look.
TEST(Board, VotesFollowTheOtherDomain) {
  config::DeviceSpec device = small_device();
  device.clocks->domains[0].governor = ClockGovernor::ondemand;
  device.clocks->domains[1].governor = ClockGovernor::tegra_votes;
  device.clocks->domains[1].sampling = 10_ms;
  device.clocks->domains[1].votes = {{"big", 1200_MHz, 1000_MHz}, {"big", 2400_MHz, 1600_MHz}};
  Board board(device);
  board.settle(working(0));
  EXPECT_EQ(board.domain(1).clock(), 528_MHz);
  const Changes changes = board.advance(working(1), kSecond);
  ASSERT_EQ(changes.clocks.size(), 2U);
  EXPECT_EQ(changes.clocks[0].to, 2400_MHz);
  EXPECT_EQ(changes.clocks[1].to, 2112_MHz);
}

TEST(Board, AFanCools) {
  config::DeviceSpec device = small_device();
  config::FanSpec fan;
  fan.node = "soc";
  fan.sensor = "soc";
  fan.points = {{0, KelvinPerWatt(1000)}, {1, KelvinPerWatt(4)}};
  fan.trips = {{Celsius(45), 1}};
  fan.spin_up = 2 * kSecond;
  device.thermal->cases[0].fan = fan;
  Board board(device);
  EXPECT_EQ(board.state().fan_speed, 0);
  Celsius hottest;
  for (int i = 0; i < 600; ++i) {
    run(board, working(1), kSecond);
    hottest = std::max(hottest, board.temperature(0));
  }
  EXPECT_GE(hottest, Celsius(45));
  EXPECT_LT(hottest, Celsius(46));
}

TEST(Board, ClocksAloneWillDo) {
  config::DeviceSpec device = small_device();
  device.thermal.reset();
  device.power.reset();
  device.clocks->domains[0].governor = ClockGovernor::ondemand;
  Board board(device);
  EXPECT_EQ(board.advance(working(0), kSecond).clocks.at(0).to, 600_MHz);
  EXPECT_EQ(board.power(), Watts(0));
}

TEST(Board, ReadingsAreMultiplesOfTheResolution) {
  EXPECT_EQ(sensor_reading({"a", "soc", Celsius(1)}, Celsius(44.6)), Celsius(45));
  EXPECT_EQ(sensor_reading({"a", "soc", Celsius(0.5)}, Celsius(44.7)), Celsius(44.5));
}

}  // namespace
}  // namespace kvsim::model
