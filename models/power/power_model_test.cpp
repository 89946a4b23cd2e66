// SPDX-License-Identifier: Apache-2.0
#include "models/power/power_model.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "models/power/power_limit.h"

namespace kvsim::model {
namespace {

using namespace kvsim::literals;
using config::PowerKind;

TEST(Power, DynamicIsCapacitanceTimesVoltageSquaredTimesClock) {
  // A Cortex-A76 of RK3588 as the device tree has it: 300 uW / MHz / V^2, 2.4 GHz at 1 V.
  EXPECT_NEAR(dynamic_power(Farads(300e-12), Volts(1), 2400_MHz, 1).count(), 0.72, 1e-12);
  EXPECT_NEAR(dynamic_power(Farads(300e-12), Volts(0.675), 1200_MHz, 4).count(), 0.65610, 1e-9);
  EXPECT_EQ(dynamic_power(Farads(300e-12), Volts(1), 2400_MHz, 0), Watts(0));
}

TEST(Power, LeakageDoubles) {
  EXPECT_NEAR(leakage_power(Watts(0.2), 1, Celsius(20), Celsius(25)).count(), 0.2, 1e-12);
  EXPECT_NEAR(leakage_power(Watts(0.2), 1, Celsius(20), Celsius(85)).count(), 1.6, 1e-12);
  EXPECT_NEAR(leakage_power(Watts(0.2), 0.75, Celsius(20), Celsius(5)).count(), 0.075, 1e-12);
  EXPECT_EQ(leakage_power(Watts(0), 1, Celsius(0), Celsius(85)), Watts(0));
}

config::PowerSpec small_device() {
  config::PowerSpec spec;
  spec.parts = {
      {.name = "cores",
       .kind = PowerKind::logic,
       .rail = "cpu",
       .node = "soc",
       .domain = "big",
       .cores = 4,
       .capacitance = Farads(300e-12),
       .leakage = Watts(0.1),
       .leakage_doubles = Celsius(30),
       .idle = Watts(0.05),
       .active = {}},
      {.name = "memory", .kind = PowerKind::dram, .rail = "ddr", .node = "dram", .idle = Watts(0.1)},
      {.name = "flash",
       .kind = PowerKind::storage,
       .rail = "io",
       .node = "board",
       .idle = Watts(0.01),
       .active = Watts(0.5)},
      {.name = "rest", .kind = PowerKind::board, .rail = "io", .node = "board", .idle = Watts(1)}};
  return spec;
}

TEST(PowerModel, EveryKindFollowsItsOwn) {
  const PowerModel model(small_device(), {{0, 0}, {0, 1}, {0, 2}, {0, 2}});
  EXPECT_THAT(model.rails(), ::testing::ElementsAre("cpu", "ddr", "io"));
  const std::vector<DomainPower> domains = {{2400_MHz, Volts(0.9), Volts(1), 0.5, 0.8}};
  const std::vector<Celsius> nodes = {Celsius(55), Celsius(40), Celsius(30)};
  std::vector<Watts> parts;
  model.compute({.domains = domains, .nodes = nodes, .dram = Watts(0.7), .storage = 0.25}, parts);
  EXPECT_NEAR(parts[0].count(), 0.05 + 4 * 0.5 * 0.8 * 300e-12 * 0.81 * 2.4e9 + 0.1 * 0.9 * 2, 1e-12);
  EXPECT_NEAR(parts[1].count(), 0.8, 1e-12);
  EXPECT_NEAR(parts[2].count(), 0.135, 1e-12);
  EXPECT_NEAR(parts[3].count(), 1, 1e-12);
  std::vector<Watts> heat(3);
  model.heat(parts, heat);
  EXPECT_NEAR(heat[2].count(), 1.135, 1e-12);
}

TEST(EnergyMeter, RailsSumUpToTheTotal) {
  const PowerModel model(small_device(), {{0, 0}, {0, 1}, {0, 2}, {0, 2}});
  EnergyMeter meter(3);
  Random random(3);
  double expected = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::vector<Watts> parts;
    double power = 0;
    for (int part = 0; part < 4; ++part) {
      parts.push_back(Watts(static_cast<double>(random.below(1000)) / 100));
      power += parts.back().count();
    }
    const Picoseconds time(static_cast<std::int64_t>(random.below(1'000'000'000'000)));
    meter.set(model, parts);
    meter.advance(time);
    EXPECT_NEAR(meter.power().count(), power, 1e-12);
    expected += power * seconds(time);
  }
  const Joules rails = meter.energy(0) + meter.energy(1) + meter.energy(2);
  EXPECT_NEAR(rails.count(), meter.energy().count(), 1e-12 * expected);
  EXPECT_NEAR(meter.energy().count(), expected, 1e-12 * expected);
}

TEST(PowerLimit, StepsByHand) {
  config::PowerLimitSpec spec;
  spec.limit = Watts(10);
  spec.release = 0.8;
  PowerLimit limit(spec, 3);
  const std::pair<double, std::size_t> sequence[] = {
      {9, 0},  {10, 0}, {10.1, 1}, {9, 1}, {8, 1}, {7.9, 0}, {12, 1}, {12, 2},
      {12, 3}, {12, 3}, {8.1, 3},  {1, 2}, {1, 1}, {1, 0},   {1, 0},  {10.1, 1}};
  for (const auto& [average, steps] : sequence) {
    EXPECT_EQ(limit.window(Watts(average)), steps) << average;
  }
  EXPECT_EQ(limit.alarms(), 6U);
}

}  // namespace
}  // namespace kvsim::model
