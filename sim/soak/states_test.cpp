// SPDX-License-Identifier: Apache-2.0
#include "sim/soak/states.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "configs/spec/dram_refresh.h"
#include "configs/spec/dram_temperature.h"
#include "configs/spec/resolve.h"

namespace kvsim::sim {
namespace {

config::RunSpec spec() {
  return config::restore_scenario(R"({"device": "rk3588_wifi", "model": "tinyllama_1_1b"})", {},
                                  "states_test")
      .spec;
}

Celsius band(const config::RunSpec& run, double temperature) {
  return States(run, Celsius(temperature)).cool(WindowState{}).dram_temperature;
}

TEST(States, MemoryThatIsRefreshedAlikeIsInOneState) {
  const config::RunSpec run = spec();
  std::set<Celsius> bands;
  for (int tenth = 200; tenth < 1200; ++tenth) {
    const Celsius temperature(tenth / 10.0 + 0.003);
    const Celsius stands = band(run, temperature.count());
    EXPECT_EQ(config::refresh_rate(run.device.dram, stands),
              config::refresh_rate(run.device.dram, temperature));
    EXPECT_EQ(config::timing_at(run.device.dram, stands), config::timing_at(run.device.dram, temperature));
    bands.insert(stands);
  }
  EXPECT_EQ(bands.size(), 6);  // steps at 25, 45, 85, 95 and 105 C
}

TEST(States, TheLikelyOnesAreOthersThanTheState) {
  const config::RunSpec run = spec();
  const States states(run, Celsius(40));
  WindowState slow = states.fastest();
  slow.clusters.front() = Hertz(408'000'000);
  slow.dram = Hertz(1'068'000'000);
  const std::vector<WindowState> likely = states.likely_after(slow);
  EXPECT_EQ(std::ranges::count(likely, slow), 0);
  EXPECT_TRUE(std::ranges::any_of(likely, [&](const WindowState& next) { return next.prefill; }));
  EXPECT_TRUE(std::ranges::any_of(likely, [&](const WindowState& next) { return next.dram < slow.dram; }));
  EXPECT_TRUE(std::ranges::any_of(likely, [&](const WindowState& next) { return next.dram > slow.dram; }));
  EXPECT_TRUE(std::ranges::any_of(
      likely, [&](const WindowState& next) { return next.dram_temperature > slow.dram_temperature; }));
}

TEST(States, MemoryTooHotToBeRefreshedByBankIsRefreshedWhole) {
  const config::RunSpec run = spec();
  ASSERT_EQ(run.device.controller.refresh, config::RefreshMode::per_bank);
  WindowState state = States(run, Celsius(90)).fastest();
  EXPECT_EQ(at_state(run, state).device.controller.refresh, config::RefreshMode::per_bank);
  state.dram_temperature = Celsius(96);
  const config::DeviceSpec hot = at_state(run, state).device;
  EXPECT_EQ(hot.controller.refresh, config::RefreshMode::all_bank);
  EXPECT_FALSE(config::refresh_problem(hot.dram, hot.controller));
}

}  // namespace
}  // namespace kvsim::sim
