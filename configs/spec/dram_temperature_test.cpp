// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/dram_temperature.h"

#include <gtest/gtest.h>

#include "configs/spec/catalogue.h"
#include "configs/spec/resolve.h"

namespace kvsim::config {
namespace {

using namespace kvsim::literals;

double rate_at(DramStandard standard, double celsius) {
  DramPartSpec part;
  part.standard = standard;
  return refresh_rate(part, Celsius(celsius));
}

TEST(RefreshRate, FollowsMr4InEveryLpddr) {
  for (const DramStandard standard : {DramStandard::lpddr3, DramStandard::lpddr4, DramStandard::lpddr4x,
                                      DramStandard::lpddr5, DramStandard::lpddr5x}) {
    EXPECT_EQ(rate_at(standard, -40), 0.25);
    EXPECT_EQ(rate_at(standard, 24.9), 0.25);
    EXPECT_EQ(rate_at(standard, 25), 0.5);
    EXPECT_EQ(rate_at(standard, 44.9), 0.5);
    EXPECT_EQ(rate_at(standard, 45), 1);
    EXPECT_EQ(rate_at(standard, 85), 1);
    EXPECT_EQ(rate_at(standard, 85.1), 2);
    EXPECT_EQ(rate_at(standard, 95), 2);
    EXPECT_EQ(rate_at(standard, 95.1), 4);
    EXPECT_EQ(rate_at(standard, 125), 4);
  }
}

TEST(RefreshRate, DdrIsNeverRefreshedMoreSeldom) {
  for (const DramStandard standard : {DramStandard::ddr4, DramStandard::ddr5}) {
    EXPECT_EQ(rate_at(standard, -40), 1);
    EXPECT_EQ(rate_at(standard, 85), 1);
    EXPECT_EQ(rate_at(standard, 85.1), 2);
    EXPECT_EQ(rate_at(standard, 95), 2);
  }
  EXPECT_EQ(rate_at(DramStandard::ddr4, 95.1), 4);
  EXPECT_EQ(rate_at(DramStandard::ddr4, 105), 4);
  EXPECT_EQ(rate_at(DramStandard::ddr4, 105.1), 8);
  EXPECT_EQ(rate_at(DramStandard::ddr5, 110), 2);
}

TEST(RefreshRate, IsOneInEveryDeviceAsShipped) {
  for (const std::string& id : catalogue_ids("devices")) {
    const DeviceSpec device = load_device(id);
    EXPECT_EQ(refresh_rate(device.dram, device.controller.temperature), 1) << id;
    EXPECT_EQ(timing_at(device.dram, device.controller.temperature), device.dram.timing) << id;
  }
}

TEST(TimingAt, AddsTheDeratingAbove105C) {
  const DramPartSpec part = load_dram_part("lpddr4x_4266_8gb");
  EXPECT_EQ(timing_at(part, Celsius(105)), part.timing);
  DramTiming expected = part.timing;
  expected.tRCD.time += 1875_ps;
  expected.tRPpb.time += 1875_ps;
  expected.tRPab.time += 1875_ps;
  expected.tRAS.time += 1875_ps;
  expected.tRRD.time += 1875_ps;
  expected.tRRD_L.time += 1875_ps;
  EXPECT_EQ(timing_at(part, Celsius(106)), expected);
}

TEST(TimingAt, AddsItToClocksToo) {
  const DramPartSpec part = load_dram_part("lpddr4-3200");
  const DramTiming hot = timing_at(part, Celsius(110));
  EXPECT_EQ(duration(hot.tRCD, command_clock(part)), 18'125_ps + 1875_ps);  // 29 tCK of 625 ps
  EXPECT_EQ(duration(hot.tRRD, command_clock(part)), 10_ns + 1875_ps);
  EXPECT_EQ(hot.tFAW, part.timing.tFAW);
  EXPECT_EQ(hot.tRFCab, part.timing.tRFCab);
}

TEST(TimingAt, LeavesDdrAsItIs) {
  for (const char* id : {"ddr4_3200", "ddr5_4800"}) {
    const DramPartSpec part = load_dram_part(id);
    EXPECT_EQ(timing_at(part, Celsius(125)), part.timing) << id;
  }
}

}  // namespace
}  // namespace kvsim::config
