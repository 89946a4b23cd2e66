// SPDX-License-Identifier: Apache-2.0
#include "models/thermal/fan.h"

#include <gtest/gtest.h>

#include "models/thermal/firmware_limit.h"

namespace kvsim::model {
namespace {

using namespace kvsim::literals;

/// Raspberry Pi 5: 50, 60, 67.5 and 75 C, 5 C of hysteresis; two seconds to full speed.
config::FanSpec pi_fan() {
  config::FanSpec spec;
  spec.points = {{0, KelvinPerWatt(8)}, {0.5, KelvinPerWatt(4)}, {1, KelvinPerWatt(3)}};
  spec.trips = {{Celsius(50), 0.3}, {Celsius(60), 0.5}, {Celsius(67.5), 0.7}, {Celsius(75), 1}};
  spec.hysteresis = Celsius(5);
  spec.spin_up = 2000_ms;
  return spec;
}

TEST(Fan, FollowsItsTripsWithHysteresis) {
  const config::FanSpec spec = pi_fan();
  Fan fan(spec);
  const std::pair<double, double> sequence[] = {
      {49.9, 0}, {50, 0.3}, {45, 0.3},   {44.9, 0},   {61, 0.5}, {55.5, 0.5}, {54.9, 0.3},
      {80, 1},   {70, 1},   {69.9, 0.7}, {62.4, 0.5}, {44, 0},   {67.4, 0.5}, {67.5, 0.7}};
  for (const auto& [reading, speed] : sequence) {
    fan.poll(Celsius(reading));
    EXPECT_EQ(fan.target(), speed) << reading;
  }
}

TEST(Fan, TakesTimeToSpinUp) {
  const config::FanSpec spec = pi_fan();
  Fan fan(spec);
  fan.poll(Celsius(90));
  EXPECT_EQ(fan.speed(), 0);
  fan.advance(500_ms);
  EXPECT_NEAR(fan.speed(), 0.25, 1e-12);
  EXPECT_NEAR(fan.resistance().count(), 6, 1e-12);
  fan.advance(1000_ms);
  EXPECT_NEAR(fan.resistance().count(), 3.5, 1e-12);
  fan.advance(1000_ms);
  EXPECT_EQ(fan.speed(), 1);
  fan.poll(Celsius(30));
  fan.advance(1000_ms);
  EXPECT_NEAR(fan.speed(), 0.5, 1e-12);
}

TEST(Fan, WithoutSpinUpIsThereAtOnce) {
  config::FanSpec spec = pi_fan();
  spec.spin_up = 0_ps;
  Fan fan(spec);
  fan.poll(Celsius(60));
  fan.advance(0_ps);
  EXPECT_EQ(fan.speed(), 0.5);
  EXPECT_EQ(fan.resistance(), KelvinPerWatt(4));
}

TEST(RaspberryPiLimit, GoesStepByStep) {
  RaspberryPiLimit limit(Celsius(80), Celsius(85), Celsius(1), 9);
  const std::pair<double, std::size_t> sequence[] = {
      {79, 0}, {80, 1}, {81, 2}, {81, 3},   {79.5, 3}, {78.9, 2}, {80, 3}, {85, 9},
      {84, 9}, {70, 8}, {70, 7}, {79.2, 7}, {81, 8},   {82.5, 9}, {83, 9}, {60, 8}};
  for (const auto& [temperature, steps] : sequence) {
    EXPECT_EQ(limit.poll(Celsius(temperature)), steps) << temperature;
  }
}

TEST(TemperatureCap, HoldsDownToItsHysteresis) {
  TemperatureCap cap(Celsius(85), Celsius(5));
  const std::pair<double, bool> sequence[] = {{84, false},   {85, false}, {85.1, true}, {84, true},
                                              {80, true},    {79, false}, {83, false},  {90, true},
                                              {79.9, false}, {86, true}};
  for (const auto& [temperature, holds] : sequence) {
    EXPECT_EQ(cap.poll(Celsius(temperature)), holds) << temperature;
  }
}

}  // namespace
}  // namespace kvsim::model
