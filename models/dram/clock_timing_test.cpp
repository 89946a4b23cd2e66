// SPDX-License-Identifier: Apache-2.0
#include "models/dram/clock_timing.h"

#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "configs/spec/device_spec.h"
#include "configs/spec/resolve.h"
#include "models/testing/test_device.h"

namespace kvsim::model {
namespace {

using namespace literals;

constexpr Cycle kTrillion = 1'000'000'000'000;

TEST(CommandClock, CycleAndTimeAreInverse) {
  Random random(1);
  for (const Hertz frequency :
       {Hertz(600'000'000), Hertz(1'600'000'000), Hertz(2'112'000'000), Hertz(2'133'333'333)}) {
    const CommandClock clock(frequency);
    EXPECT_EQ(clock.time(0), Picoseconds(0));
    for (int i = 0; i < 10'000; ++i) {
      const auto cycle = static_cast<Cycle>(random.below(kTrillion));
      ASSERT_EQ(clock.cycle_at(clock.time(cycle)), cycle);
      ASSERT_EQ(clock.cycle_at(clock.time(cycle) + 1_ps), cycle + 1);
    }
  }
}

// Eight minutes of simulated time: a period rounded to picoseconds would be off by half a second.
TEST(CommandClock, DoesNotDrift) {
  const CommandClock clock(Hertz(2'112'000'000));
  const double exact = 1e12 * 1e12 / 2.112e9;
  EXPECT_NEAR(clock.time(kTrillion).as_double() / exact, 1.0, 1e-6);
  EXPECT_EQ(clock.time(kTrillion) - clock.time(kTrillion - 1000), clock.time(1000));
}

TEST(CommandClock, RoundsTimingsUp) {
  const CommandClock clock(1_GHz);
  EXPECT_EQ(clock.cycles(0_ns), 0);
  EXPECT_EQ(clock.cycles(1_ps), 1);
  EXPECT_EQ(clock.cycles(18_ns), 18);
  EXPECT_EQ(clock.cycles(18_ns + 1_ps), 19);
}

// Every term worked out by hand from the nanoseconds at 2112 MHz (0.473485 ns) and JESD209-4's rules.
TEST(ClockTiming, OfLpddr4x) {
  const ClockTiming t = clock_timing(testing::device().dram, true);
  EXPECT_EQ(t.burst, 8);
  EXPECT_EQ(t.read_latency, 40);
  EXPECT_EQ(t.write_latency, 19);
  EXPECT_EQ(t.tRCD, 39);  // 18 ns is 38.02 cycles
  EXPECT_EQ(t.tRPpb, 39);
  EXPECT_EQ(t.tRPab, 45);  // 21 ns
  EXPECT_EQ(t.tRAS, 89);   // 42 ns
  EXPECT_EQ(t.tRRD, 22);   // 10 ns
  EXPECT_EQ(t.tFAW, 85);   // 40 ns
  EXPECT_EQ(t.tCCD, 8);
  EXPECT_EQ(t.tCCD_L, 8);
  EXPECT_EQ(t.read_to_precharge, 8 + 16 - 8);        // BL/2 + max(8, tRTP) - 8, tRTP of 7.5 ns is 16 cycles
  EXPECT_EQ(t.write_to_precharge, 19 + 8 + 1 + 39);  // WL + BL/2 + 1 + tWR
  EXPECT_EQ(t.read_to_write, 40 + 8 + 2 - 19);       // RL + BL/2 + preamble and idle - WL
  EXPECT_EQ(t.write_to_read, 19 + 8 + 1 + 22);       // WL + BL/2 + 1 + tWTR
  EXPECT_EQ(t.rank_switch, 4);
  EXPECT_EQ(t.tRFCab, 592);  // 280 ns is 591.4
  EXPECT_EQ(t.tRFCpb, 296);
  EXPECT_EQ(t.tREFI, 8246);
}

TEST(ClockTiming, OfLpddr5CountsTheSlowClock) {
  const ClockTiming t = clock_timing(testing::lpddr5_device().dram, true);
  EXPECT_EQ(command_clock(testing::lpddr5_device().dram), 600_MHz);
  EXPECT_EQ(t.burst, 2);  // 16 beats, eight a clock
  EXPECT_EQ(t.tRCD, 11);  // 10.8
  EXPECT_EQ(t.tCCD, 2);
  EXPECT_EQ(t.tCCD_L, 4);
  EXPECT_EQ(t.read_to_precharge, 2 + 3);
}

TEST(ClockTiming, OfDdr4CountsRecoveryFromTheLastBeat) {
  const ClockTiming t = clock_timing(config::load_dram_part("ddr4_3200"), true);
  EXPECT_EQ(t.burst, 4);
  EXPECT_EQ(t.read_to_precharge, 12);            // tRTP, burst and all
  EXPECT_EQ(t.write_to_precharge, 16 + 4 + 24);  // CWL + BL/2 + tWR
  EXPECT_EQ(t.read_to_write, 22 + 4 + 2 - 16);   // CL + BL/2 + 2 - CWL
  EXPECT_EQ(t.write_to_read, 16 + 4 + 4);        // CWL + BL/2 + tWTR_S
  EXPECT_EQ(t.write_to_read_L, 16 + 4 + 12);     // and tWTR_L
}

TEST(ClockTiming, WithoutBankGroupsTheirTimingsDoNotCount) {
  config::DramPartSpec part = testing::device().dram;
  part.timing.tRRD_L = part.timing.tCCD_L = part.timing.tWTR_L = {100_ns, 0};
  const ClockTiming t = clock_timing(part, true);
  EXPECT_EQ(t.tRRD_L, t.tRRD);
  EXPECT_EQ(t.tCCD_L, t.tCCD);
  EXPECT_EQ(t.write_to_read_L, t.write_to_read);
}

TEST(ClockTiming, TheLargerOfTimeAndClocksCounts) {
  config::DramPartSpec part = testing::device().dram;
  part.timing.tWTR = {1_ns, 8};
  EXPECT_EQ(clock_timing(part, true).write_to_read, 19 + 8 + 1 + 8);
  part.timing.tWTR = {10_ns, 8};
  EXPECT_EQ(clock_timing(part, true).write_to_read, 19 + 8 + 1 + 22);
}

TEST(ClockTiming, WithoutTurnaroundDataFollowsData) {
  for (const config::DramPartSpec& part : {testing::device().dram, testing::lpddr5_device().dram}) {
    const ClockTiming t = clock_timing(part, false);
    EXPECT_EQ(t.read_to_write + t.write_latency, t.read_latency + t.burst);
    EXPECT_EQ(t.write_to_read + t.read_latency, t.write_latency + t.burst);
    EXPECT_EQ(t.rank_switch, 0);
    EXPECT_EQ(t.tRCD, clock_timing(part, true).tRCD);
  }
}

// The burst's bytes in the burst's cycles, on all channels, is the peak that the data sheet promises.
TEST(ClockTiming, PeakBandwidthIsChannelsTimesWidthTimesRate) {
  for (const config::DeviceSpec& device :
       {testing::device(), testing::plain_device(), testing::lpddr5_device()}) {
    const ClockTiming t = clock_timing(device.dram, true);
    const CommandClock clock(command_clock(device.dram));
    constexpr Cycle kBursts = 1'000'000;
    const Bytes moved = burst_bytes(device.dram) * (kBursts * device.controller.channels);
    const BytesPerSecond rate = moved / clock.time(kBursts * std::max(t.burst, t.tCCD));
    EXPECT_NEAR(ratio(rate, peak_bandwidth(device)), 1.0, 1e-4) << device.dram.name;
  }
}

}  // namespace
}  // namespace kvsim::model
