// SPDX-License-Identifier: Apache-2.0
#include "models/clocks/clock_domain.h"

#include <vector>

#include <gtest/gtest.h>

namespace kvsim::model {
namespace {

using namespace kvsim::literals;
using config::ClockGovernor;

config::ClockDomainSpec big(ClockGovernor governor) {
  config::ClockDomainSpec spec;
  spec.name = "big";
  spec.governor = governor;
  spec.opps = {
      {408_MHz, Volts(0.675)}, {1200_MHz, Volts(0.7)}, {1800_MHz, Volts(0.85)}, {2400_MHz, Volts(1)}};
  return spec;
}

/// A cap on "heat" (0 to 3), or a load of the busiest core, and where the domain is afterwards.
struct Step {
  std::optional<std::size_t> cap;
  std::optional<double> load;
  std::size_t point;
};
Step capped(std::size_t cap, std::size_t point) {
  return {cap, {}, point};
}
Step loaded(double load, std::size_t point) {
  return {{}, load, point};
}

void play(ClockDomain domain, const std::vector<Step>& steps) {
  int number = 0;
  for (const Step& step : steps) {
    const std::size_t before = domain.point();
    const bool changed =
        step.cap ? domain.cap(ClockLimit::heat, *step.cap) : domain.sample({.busiest = *step.load});
    EXPECT_EQ(domain.point(), step.point) << "step " << number;
    EXPECT_EQ(changed, before != domain.point()) << "step " << number;
    ++number;
  }
}

TEST(ClockDomain, PerformanceFollowsItsCap) {
  play(ClockDomain(big(ClockGovernor::performance)),
       {loaded(0, 3), capped(2, 2), capped(1, 1), loaded(1, 1), capped(3, 3), loaded(0.1, 3), capped(0, 0),
        capped(1, 1), capped(9, 3), loaded(0, 3)});
}

TEST(ClockDomain, PowersaveStaysBelow) {
  play(ClockDomain(big(ClockGovernor::powersave)),
       {loaded(0, 0), loaded(1, 0), capped(2, 0), capped(0, 0), capped(3, 0), loaded(0.5, 0), loaded(1, 0),
        capped(1, 0), loaded(1, 0), capped(3, 0)});
}

TEST(ClockDomain, UserspaceStaysWhereItIsPinned) {
  config::ClockDomainSpec spec = big(ClockGovernor::userspace);
  spec.pinned = 1800_MHz;
  play(ClockDomain(spec), {loaded(0, 2), loaded(1, 2), capped(1, 1), loaded(1, 1), capped(0, 0), capped(2, 2),
                           capped(3, 2), loaded(0, 2), capped(1, 1), capped(3, 2)});
}

TEST(ClockDomain, OndemandWaitsForItsNextLook) {
  play(ClockDomain(big(ClockGovernor::ondemand)),
       {loaded(1, 3), loaded(0.5, 1),  // 408 + 996 = 1404 MHz
        loaded(0.7, 2),                // 1802 MHz
        loaded(0.81, 3), capped(1, 1), capped(3, 1), loaded(0.9, 3), loaded(0, 0), capped(2, 0), loaded(1, 2),
        capped(3, 2), loaded(1, 3)});
}

TEST(ClockDomain, SchedutilCountsInTheHighestClock) {
  play(ClockDomain(big(ClockGovernor::schedutil)),
       {loaded(1, 3),    // 1024
        loaded(0.5, 2),  // 512: 1500 MHz
        loaded(0.5, 1),  // 384: 1125 MHz
        loaded(1, 2),    // 512: 1500 MHz
        loaded(1, 3),    // 768: 2250 MHz
        capped(1, 1), loaded(1, 1), capped(3, 1), loaded(1, 2), loaded(0.1, 0), loaded(1, 1)});
}

TEST(ClockDomain, FloorsOfAStatus) {
  config::ClockDomainSpec spec = big(ClockGovernor::dmc_ondemand);
  spec.up_threshold = 40;
  spec.floors = {{"normal", 1200_MHz}, {"performance", 2400_MHz}};
  spec.status = "normal";
  ClockDomain domain(spec);
  domain.sample({.busiest = 0});
  EXPECT_EQ(domain.clock(), 1200_MHz);
  EXPECT_TRUE(domain.set_status("performance"));
  EXPECT_EQ(domain.clock(), 2400_MHz);
  EXPECT_FALSE(domain.set_status(""));  // no floor; the governor has not looked yet
  EXPECT_TRUE(domain.sample({.busiest = 0}));
  EXPECT_EQ(domain.clock(), 408_MHz);
  domain.cap(ClockLimit::heat, 0);
  EXPECT_FALSE(domain.set_status("normal"));  // heat goes before floors
}

TEST(ClockDomain, TheTightestCapIsTheReason) {
  ClockDomain domain(big(ClockGovernor::performance));
  EXPECT_EQ(domain.limit(), ClockLimit::none);
  domain.cap(ClockLimit::heat, 2);
  EXPECT_EQ(domain.limit(), ClockLimit::heat);
  domain.cap(ClockLimit::over_current, 1);
  EXPECT_EQ(domain.limit(), ClockLimit::over_current);
  domain.cap(ClockLimit::over_current, 3);
  EXPECT_EQ(domain.limit(), ClockLimit::heat);
  domain.cap(ClockLimit::heat, 3);
  EXPECT_EQ(domain.limit(), ClockLimit::none);
  EXPECT_EQ(domain.switches(), 4);
  EXPECT_EQ(ClockDomain(big(ClockGovernor::powersave)).limit(), ClockLimit::governor);
}

}  // namespace
}  // namespace kvsim::model
