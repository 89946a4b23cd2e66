// SPDX-License-Identifier: Apache-2.0
#include "models/clocks/governors.h"

#include <vector>

#include <gtest/gtest.h>

#include "configs/error/test_support.h"

namespace kvsim::model {
namespace {

using namespace kvsim::literals;

OppTable table_of(std::initializer_list<int> megahertz) {
  std::vector<config::OppSpec> points;
  for (const int clock : megahertz) {
    points.push_back({Hertz(clock * 1'000'000LL), Volts(0.7)});
  }
  return OppTable(points);
}

/// RK3588's little cores.
OppTable little() {
  return table_of({408, 600, 816, 1008, 1200, 1416, 1608, 1800});
}
/// RK3588's LPDDR4X.
OppTable dram() {
  return table_of({528, 1068, 1560, 2112});
}

TEST(OppTable, MustRise) {
  EXPECT_EQ(message_of([] {
              OppTable({{1_GHz, Volts(0.8)}, {1_GHz, Volts(0.9)}});
            }),
            "operating points must rise: 1 GHz at 0.9 V follows 1 GHz at 0.8 V");
  EXPECT_EQ(message_of([] {
              OppTable({{1_GHz, Volts(0.8)}, {2_GHz, Volts(0.7)}});
            }),
            "operating points must rise: 2 GHz at 0.7 V follows 1 GHz at 0.8 V");
  EXPECT_EQ(message_of([] { OppTable({}); }), "a clock domain has no operating points");
}

TEST(OppTable, FindsPoints) {
  const OppTable table = dram();
  EXPECT_EQ(table.at_least(528_MHz), 0U);
  EXPECT_EQ(table.at_least(529_MHz), 1U);
  EXPECT_EQ(table.at_least(9000_MHz), 3U);
  EXPECT_EQ(table.at_most(2111_MHz), 2U);
  EXPECT_EQ(table.at_most(1_MHz), 0U);
  EXPECT_EQ(table.closest(798_MHz), 0U);  // in the middle
  EXPECT_EQ(table.closest(799_MHz), 1U);
  EXPECT_EQ(table.closest(1_MHz), 0U);
  EXPECT_EQ(table.closest(9000_MHz), 3U);
}

struct OndemandCase {
  std::int64_t percent;
  std::size_t point;
};

/// 408 MHz + percent of 1392 MHz, to the closest point; above 80 % the top.
TEST(Ondemand, ByHand) {
  const OndemandCase cases[] = {{0, 0},  {6, 0},  {7, 1},  {10, 1}, {20, 1}, {30, 2}, {43, 3},
                                {50, 3}, {60, 4}, {66, 5}, {75, 5}, {80, 6}, {81, 7}, {100, 7}};
  for (const OndemandCase& each : cases) {
    EXPECT_EQ(ondemand(little(), {0, 7}, each.percent, 80), each.point) << each.percent;
  }
  EXPECT_EQ(ondemand(little(), {0, 4}, 90, 80), 4U);
  EXPECT_EQ(ondemand(little(), {0, 4}, 75, 80), 4U);
  EXPECT_EQ(ondemand(little(), {2, 7}, 0, 80), 2U);
  EXPECT_EQ(ondemand(little(), {0, 7}, 94, 95), 7U);  // 1716 MHz
  EXPECT_EQ(ondemand(little(), {0, 7}, 90, 95), 6U);  // 1661 MHz
}

struct SchedutilCase {
  std::int64_t utilisation;
  std::size_t point;
};

/// 1800 MHz x 1.25 x utilisation / 1024, to the point at or above.
TEST(Schedutil, ByHand) {
  const SchedutilCase cases[] = {{0, 0},   {100, 0}, {186, 0}, {187, 1}, {273, 1}, {274, 2}, {400, 3},
                                 {512, 4}, {600, 5}, {700, 6}, {731, 6}, {732, 7}, {819, 7}, {1024, 7}};
  for (const SchedutilCase& each : cases) {
    EXPECT_EQ(schedutil(little(), {0, 7}, each.utilisation), each.point) << each.utilisation;
  }
  EXPECT_EQ(schedutil(little(), {0, 3}, 1024), 3U);
  EXPECT_EQ(schedutil(little(), {2, 7}, 0), 2U);
}

TEST(Schedutil, UtilisationIsOfTheHighestClock) {
  EXPECT_EQ(utilisation(little(), 7, 1), 1024);
  EXPECT_EQ(utilisation(little(), 7, 0.5), 512);
  EXPECT_EQ(utilisation(little(), 4, 1), 683);  // 1200 / 1800
  EXPECT_EQ(utilisation(little(), 0, 0.25), 58);
  EXPECT_EQ(utilisation(little(), 0, 0), 0);
}

struct DmcCase {
  std::size_t now;
  double load;
  std::size_t point;
};

/// Above 40 % the top; above 20 % as it is; else load x clock / 0.30.
TEST(DmcOndemand, ByHand) {
  const DmcCase cases[] = {{3, 0.41, 3}, {0, 0.41, 3}, {0, 1, 3},    {3, 0.40, 3},
                           {1, 0.40, 1}, {1, 0.30, 1}, {0, 0.21, 0}, {3, 0.20, 2},  // 1408 MHz
                           {3, 0.10, 1},                                            // 704 MHz
                           {3, 0.05, 0},                                            // 352 MHz
                           {2, 0.20, 1},                                            // 1040 MHz
                           {2, 0.15, 1},                                            // 780 MHz
                           {2, 0.10, 0},                                            // 520 MHz
                           {1, 0.20, 1},                                            // 712 MHz
                           {3, 0, 0}};
  for (const DmcCase& each : cases) {
    EXPECT_EQ(dmc_ondemand(dram(), {0, 3}, each.now, each.load, {}), each.point)
        << each.now << " " << each.load;
  }
  EXPECT_EQ(dmc_ondemand(dram(), {2, 3}, 3, 0, {}), 2U);    // a status' floor
  EXPECT_EQ(dmc_ondemand(dram(), {2, 3}, 0, 0.3, {}), 2U);  // and when it would stay
  EXPECT_EQ(dmc_ondemand(dram(), {0, 2}, 0, 0.9, {}), 2U);  // a cap
}

TEST(DmcOndemand, OtherThresholds) {
  const OndemandTuning tuning{.up_threshold = 90, .down_differential = 5};  // devfreq's defaults
  EXPECT_EQ(dmc_ondemand(dram(), {0, 3}, 1, 0.91, tuning), 3U);
  EXPECT_EQ(dmc_ondemand(dram(), {0, 3}, 1, 0.86, tuning), 1U);
  EXPECT_EQ(dmc_ondemand(dram(), {0, 3}, 3, 0.84, tuning), 3U);  // 2112 x 84 / 88 = 2016 MHz
  EXPECT_EQ(dmc_ondemand(dram(), {0, 3}, 3, 0.64, tuning), 2U);  // 1536 MHz
}

/// Orin: the CPU's clock asks for 816, 1632, 3200 and 6400 kB/s x 1000 of the memory.
TEST(TegraVotes, ByHand) {
  const OppTable table = table_of({204, 665, 1600, 2133, 3199});
  const auto votes = [](Hertz clock) {
    return std::vector<ClockVote>{{clock, 115_MHz, 204_MHz},
                                  {clock, 500_MHz, 408_MHz},
                                  {clock, 900_MHz, 800_MHz},
                                  {clock, 1500_MHz, 1600_MHz}};
  };
  const std::pair<Hertz, std::size_t> cases[] = {{100_MHz, 0},  {115_MHz, 0},  {499_MHz, 0},
                                                 {500_MHz, 1},  {899_MHz, 1},  {900_MHz, 2},
                                                 {1499_MHz, 2}, {1500_MHz, 2}, {2201_MHz, 2}};
  for (const auto& [clock, point] : cases) {
    EXPECT_EQ(tegra_votes(table, {0, 4}, votes(clock)), point) << clock.count();
  }
  EXPECT_EQ(tegra_votes(table, {3, 4}, votes(2201_MHz)), 3U);
  EXPECT_EQ(tegra_votes(table, {0, 1}, votes(2201_MHz)), 1U);
  EXPECT_EQ(tegra_votes(table, {0, 4}, {}), 0U);
  // The fastest wish of several domains.
  EXPECT_EQ(
      tegra_votes(table, {0, 4}, std::vector<ClockVote>{{1_GHz, 1_GHz, 205_MHz}, {1_GHz, 0_MHz, 2134_MHz}}),
      4U);
}

struct MonitorStep {
  double gigabytes;
  std::size_t point;
};

void play(const std::vector<MonitorStep>& steps, std::size_t start) {
  const OppTable table = table_of({200, 400, 800, 1600});  // 0.8, 1.6, 3.2 and 6.4 GB/s
  BandwidthMonitor monitor(4_B, 3);
  std::size_t now = start;
  for (const MonitorStep& step : steps) {
    now = monitor.sample(table, {0, 3}, now, BytesPerSecond(step.gigabytes * 1e9));
    EXPECT_EQ(now, step.point) << step.gigabytes;
  }
}

TEST(BandwidthMonitor, SequencesByHand) {
  play({{0.5, 0}, {0.8, 0}, {0.81, 1}}, 0);
  play({{6, 3}}, 0);
  play({{100, 3}}, 0);
  play({{3.2, 3}, {3.2, 3}, {3.2, 3}, {3.2, 3}}, 3);  // at the slower point's bandwidth: not calm
  play({{3.1, 3}, {3.1, 3}, {3.1, 2}}, 3);
  play({{0.1, 3}, {0.1, 3}, {0.1, 0}}, 3);
  play({{0.1, 3}, {1.5, 3}, {0.1, 1}}, 3);  // by the highest of the three
  play({{0.1, 3}, {0.1, 3}, {5, 3}, {0.1, 3}, {0.1, 3}, {0.1, 0}}, 3);
  play({{0.1, 3}, {0.1, 3}, {0.1, 0}, {0.9, 1}, {0.1, 1}, {0.1, 1}, {0.1, 0}}, 3);
  play({{1.7, 2}, {0.9, 2}, {0.9, 2}, {0.9, 1}}, 1);
  play({{0, 0}, {0, 0}, {0, 0}}, 0);
}

}  // namespace
}  // namespace kvsim::model
