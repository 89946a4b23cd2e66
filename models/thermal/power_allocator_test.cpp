// SPDX-License-Identifier: Apache-2.0
#include "models/thermal/power_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvsim::model {
namespace {

using ::testing::ElementsAre;
using Points = std::vector<std::size_t>;

/// Rockchip's zone: 75 and 85 C, 2100 mW. So k_po = 2100 x 1024 / 10000 = 215, k_pu = 430, k_i = 43.
AllocatorSpec rockchip() {
  return {
      .switch_on = Celsius(75), .target = Celsius(85), .period_ms = 20, .sustainable_power = 2100, .pid = {}};
}

std::vector<PowerActor> big_and_little() {
  return {{.core_power = {100, 300, 700}, .cores = 4}, {.core_power = {50, 100, 150}, .cores = 4}};
}

struct Poll {
  double temperature;
  std::vector<ActorLoad> loads;
  std::vector<Milliwatts> granted;
  Points points;
};

void expect(PowerAllocator& governor, const Poll& poll) {
  const Points points = governor.poll(Celsius(poll.temperature), poll.loads);
  EXPECT_EQ(points, poll.points) << poll.temperature;
  if (governor.is_active()) {
    EXPECT_EQ(governor.granted(), poll.granted) << poll.temperature;
  }
}

TEST(DivvyUp, GivesInProportionAndNoneTooMuch) {
  EXPECT_THAT(divvy_up(std::vector<Milliwatts>{100, 300}, std::vector<Milliwatts>{1000, 1000}, 200),
              ElementsAre(50, 150));
  // The second takes 150 of its 300; the first has room for 900 and gets what is over.
  EXPECT_THAT(divvy_up(std::vector<Milliwatts>{100, 300}, std::vector<Milliwatts>{1000, 150}, 400),
              ElementsAre(250, 150));
  // 300 are over; there is room for 100 and 50.
  EXPECT_THAT(divvy_up(std::vector<Milliwatts>{0, 0, 700}, std::vector<Milliwatts>{100, 50, 400}, 700),
              ElementsAre(100, 50, 400));
  // 30 are over, in rooms of 100 and 50: two thirds and one.
  EXPECT_THAT(divvy_up(std::vector<Milliwatts>{0, 0, 430}, std::vector<Milliwatts>{100, 50, 400}, 430),
              ElementsAre(20, 10, 400));
  EXPECT_THAT(divvy_up(std::vector<Milliwatts>{0, 0}, std::vector<Milliwatts>{100, 50}, 400),
              ElementsAre(0, 0));
  EXPECT_THAT(divvy_up(std::vector<Milliwatts>{1, 2}, std::vector<Milliwatts>{9, 9}, 5), ElementsAre(2, 3));
}

/// All cores at work all the time.
TEST(PowerAllocator, OneSequenceByHand) {
  PowerAllocator governor(rockchip(), big_and_little());
  const std::vector<ActorLoad> top = {{2, 400}, {2, 400}};
  const std::vector<ActorLoad> low = {{1, 400}, {0, 400}};
  expect(governor, {74.999, top, {}, {2, 2}});
  // 2100 + 430 x 10000 / 1024 = 6299 mW, more than the 3400 that all take.
  expect(governor, {75, top, {2800, 600}, {2, 2}});
  // No error: 2100 mW, of 2800 + 600 asked for; 1729 / 4 = 432 and 371 / 4 = 92 mW for a core.
  expect(governor, {85, top, {1729, 371}, {1, 0}});
  // 2100 - 252 (proportional 210, integral 42), of 1200 + 200 asked for.
  expect(governor, {86, low, {1584, 264}, {1, 0}});
  expect(governor, {86, low, {1548, 258}, {1, 0}});
  // Below the target nothing is summed up, and what was stays: 2100 + 420 - 84.
  expect(governor, {84, low, {2087, 348}, {1, 0}});
  // Below the start all is forgotten.
  expect(governor, {74, low, {}, {2, 2}});
  expect(governor, {85, top, {1729, 371}, {1, 0}});
}

struct Case {
  double temperature;
  std::vector<ActorLoad> loads;
  Milliwatts budget;
  Points points;
};

TEST(PowerAllocator, FirstPollsByHand) {
  const Case cases[] = {
      // One busy big core: 2100 mW are more than it can take.
      {85, {{2, 100}, {2, 0}}, 2100, {2, 0}},
      // Four busy big cores and idle little ones: what is over goes to these, whose load counts as 1 %.
      {75, {{2, 400}, {2, 0}}, 3400, {2, 2}},
      // Nobody asks: nobody is granted anything.
      {85, {{2, 0}, {2, 0}}, 2100, {0, 0}},
      // 85.5: 2100 - (215 x 500 + 43 x 500) x 1000 / 1024 / 1000 = 2100 - 126.
      {85.5, {{2, 400}, {2, 400}}, 1974, {1, 0}},
      // 90: 2100 - 1050 - 210 (rounded up to 1260); 840 x 28 / 34 = 692 / 4 = 173.
      {90, {{2, 400}, {2, 400}}, 840, {0, 0}},
      // 95: nothing left.
      {95, {{2, 400}, {2, 400}}, 0, {0, 0}},
      // 80: 2100 + 430 x 5000 / 1024 = 4199, at most 3400.
      {80, {{2, 400}, {2, 400}}, 3400, {2, 2}},
      // 83: 2100 + 839 = 2939; 2420 / 4 = 605 and 519 / 4 = 129.
      {83, {{2, 400}, {2, 400}}, 2939, {1, 1}},
      // 84: 2100 + 419 = 2519, of 700 x 2 + 150 x 4 = 2000: 1763 / 2 = 881, 756 capped to 600.
      {84, {{2, 200}, {2, 400}}, 2519, {2, 2}},
      // Little cores alone: 600 of 2100, the big ones get the rest.
      {85, {{2, 0}, {2, 400}}, 2100, {2, 2}},
      // At a slower clock requests are smaller, shares of them are not: 1800 and 300 mW.
      {85, {{1, 400}, {0, 400}}, 2100, {1, 0}},
  };
  for (const Case& each : cases) {
    PowerAllocator governor(rockchip(), big_and_little());
    EXPECT_EQ(governor.poll(Celsius(each.temperature), each.loads), each.points) << each.temperature;
    EXPECT_EQ(governor.budget(), each.budget) << each.temperature;
  }
}

TEST(PowerAllocator, WeightsMultiplyWishes) {
  std::vector<PowerActor> actors = big_and_little();
  actors[1].weight = 2048;
  PowerAllocator governor(rockchip(), actors);
  governor.poll(Celsius(85), std::vector<ActorLoad>{{2, 400}, {2, 400}});
  // 2800 to 1200; the second would get 630 and takes 600, the first has the 30.
  EXPECT_THAT(governor.granted(), ElementsAre(1500, 600));
}

TEST(PowerAllocator, EstimatesWhatIsNotGiven) {
  AllocatorSpec spec = rockchip();
  spec.sustainable_power = 0;
  PowerAllocator governor(spec, big_and_little());
  governor.poll(Celsius(85), std::vector<ActorLoad>{{2, 400}, {2, 400}});
  EXPECT_EQ(governor.budget(), 600);  // the least of all: 4 x 100 + 4 x 50
}

TEST(PowerAllocator, TakesGivenConstants) {
  AllocatorSpec spec = rockchip();
  spec.pid = {.k_po = 1000, .k_pu = 500, .k_i = 0, .k_d = 0, .integral_cutoff = Celsius(0)};
  PowerAllocator governor(spec, big_and_little());
  const std::vector<ActorLoad> loads = {{2, 400}, {2, 400}};
  governor.poll(Celsius(86), loads);
  EXPECT_EQ(governor.budget(), 1100);
  governor.poll(Celsius(84), loads);
  EXPECT_EQ(governor.budget(), 2600);
}

}  // namespace
}  // namespace kvsim::model
