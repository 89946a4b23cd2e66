// SPDX-License-Identifier: Apache-2.0
#include "models/dram/clock_timing.h"

#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "configs/spec/catalogue.h"
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
  EXPECT_EQ(t.write_to_precharge, 18 + 1 + 8 + 39);  // WL + 1 + BL/2 + tWR
  EXPECT_EQ(t.read_to_write, 40 + 8 + 2 - 18);       // RL + tDQSCK + BL/2 + tWPRE - WL
  EXPECT_EQ(t.write_to_read, 18 + 1 + 8 + 22);       // WL + 1 + BL/2 + tWTR
  EXPECT_EQ(t.rank_switch, 4);
  EXPECT_EQ(t.tRFCab, 592);  // 280 ns is 591.4
  EXPECT_EQ(t.tRFCpb, 296);
  EXPECT_EQ(t.tREFI, 8245);  // 8245.2: rounded up, refreshes would come late
}

// JESD209-4's formulas with the memspec's RL 28, tDQSCK 6, WL 14, tWR 29, tWTR 16.
TEST(ClockTiming, OfLpddr4CountsDqssOnce) {
  const ClockTiming t = clock_timing(config::load_dram_part("lpddr4-3200"), true);
  EXPECT_EQ(t.write_to_precharge, 52);  // 14 + 1 + 8 + 29
  EXPECT_EQ(t.write_to_read, 39);       // 14 + 1 + 8 + 16
  EXPECT_EQ(t.read_to_write, 30);       // 28 + 6 + 8 + 0 - 14 + 2
}

// JESD209-3's with RL 12, tDQSCK 3, WL 9, tWR 12, tWTR 6 at 800 MHz.
TEST(ClockTiming, OfLpddr3CountsDqssOnce) {
  config::DramPartSpec part = config::load_dram_part("lpddr3_1600");
  part.timing.read_latency = {{}, 15};
  part.timing.write_latency = {{}, 10};
  part.timing.tWR = {{}, 12};
  part.timing.tWTR = {{}, 6};
  const ClockTiming t = clock_timing(part, true);
  EXPECT_EQ(t.write_to_precharge, 9 + 1 + 4 + 12);
  EXPECT_EQ(t.write_to_read, 9 + 1 + 4 + 6);
  EXPECT_EQ(t.read_to_write, 12 + 3 + 4 + 1 - 9);
}

TEST(ClockTiming, OfLpddr5CountsTheSlowClock) {
  const ClockTiming t = clock_timing(testing::lpddr5_device().dram, true);
  EXPECT_EQ(command_clock(testing::lpddr5_device().dram), 600_MHz);
  EXPECT_EQ(t.burst, 2);  // 16 beats, eight a clock
  EXPECT_EQ(t.tRCD, 11);  // 10.8
  EXPECT_EQ(t.tCCD, 2);
  EXPECT_EQ(t.tCCD_L, 4);
  EXPECT_EQ(t.read_to_precharge, 2 + 3);
  EXPECT_EQ(t.write_to_precharge, 7 + 2 + 1 + 21);  // WL + BL/n_min + 1 + tWR, 34 ns
  EXPECT_EQ(t.write_to_read, 7 + 2 + 8);            // WL + BL/n_min + tWTR_S, 12 ns is 7.2
  EXPECT_EQ(t.write_to_read_L, 7 + 4 + 8);          // WL + BL/n_max + tWTR_L
  EXPECT_EQ(t.read_to_write, 15 + 4 - 7);           // RL + tWCK2DQO + BL/n_max - WL
}

TEST(ClockTiming, OfLpddr5WithoutGroupsHoldsTheBusForTheBurst) {
  const ClockTiming t = clock_timing(config::load_dram_part("lpddr5_6400_16gb_8bank"), true);
  EXPECT_EQ(t.burst, 4);
  EXPECT_EQ(t.read_to_write, 18 + 4 - 9);
  EXPECT_EQ(t.write_to_read, 9 + 4 + 10);  // 12 ns is 9.6
}

TEST(ClockTiming, OfDdr5HasLongPreambles) {
  const ClockTiming t = clock_timing(config::load_dram_part("ddr5_4800"), true);
  EXPECT_EQ(t.write_to_precharge, 34 + 8 + 72);  // CWL + BL/2 + tWR, 30 ns
  EXPECT_EQ(t.write_to_read, 34 + 8 + 6);        // and tWTR_S, 2.5 ns
  EXPECT_EQ(t.write_to_read_L, 34 + 8 + 24);     // and tWTR_L, 10 ns
  EXPECT_EQ(t.read_to_write, 36 + 8 + 2 + 2 - 34);
}

TEST(ClockTiming, RefreshesNeverComeLateOnAverage) {
  for (const std::string& id : config::catalogue_ids("dram")) {
    const config::DramPartSpec part = config::load_dram_part(id);
    if (part.psram) {
      continue;
    }
    const ClockTiming t = clock_timing(part, true);
    const CommandClock clock(command_clock(part));
    EXPECT_LE(clock.time(t.tREFI), duration(part.timing.tREFI, command_clock(part))) << id;
    EXPECT_GT(clock.time(t.tREFI + 1), duration(part.timing.tREFI, command_clock(part)) - 1_ps) << id;
  }
}

TEST(CommandClock, WholeCyclesAreRoundedDown) {
  const CommandClock clock(1_GHz);
  EXPECT_EQ(clock.whole_cycles(999_ps), 0);
  EXPECT_EQ(clock.whole_cycles(18_ns), 18);
  EXPECT_EQ(clock.whole_cycles(19_ns - 1_ps), 18);
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
  EXPECT_EQ(clock_timing(part, true).write_to_read, 19 + 8 + 8);
  part.timing.tWTR = {10_ns, 8};
  EXPECT_EQ(clock_timing(part, true).write_to_read, 19 + 8 + 22);
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
