// SPDX-License-Identifier: Apache-2.0
#include "models/thermal/step_wise.h"

#include <gtest/gtest.h>

namespace kvsim::model {
namespace {

using States = std::vector<std::size_t>;
using Temperatures = std::vector<double>;

/// A passive trip at 85 C with 2 C of hysteresis, and a critical one that must not matter.
std::vector<config::TripSpec> one_trip() {
  return {{config::TripKind::passive, Celsius(85), Celsius(2)},
          {config::TripKind::critical, Celsius(115), Celsius(0)}};
}

States play(StepWise governor, const Temperatures& temperatures) {
  States states;
  for (const double temperature : temperatures) {
    states.push_back(governor.poll(Celsius(temperature)).front());
  }
  return states;
}

struct Pattern {
  Temperatures temperatures;
  States states;
};

/// By hand, by the rules of gov_step_wise.c: rising above a trip one step more, falling above it one less
/// but not below 1, steady as before; below it falling one less, else as before.
TEST(StepWise, SequencesByHand) {
  const Pattern patterns[] = {
      {{70, 75, 80, 84, 84.9}, {0, 0, 0, 0, 0}},
      {{80, 85, 86, 87, 88, 89}, {0, 1, 2, 3, 4, 5}},
      {{80, 86, 87, 88, 89, 90, 91, 92}, {0, 1, 2, 3, 4, 5, 5, 5}},
      {{80, 86, 86, 86, 86}, {0, 1, 1, 1, 1}},
      {{80, 86, 87, 86, 85.5, 85.2}, {0, 1, 2, 1, 1, 1}},
      {{80, 86, 87, 88, 84, 83.5}, {0, 1, 2, 3, 2, 1}},
      {{80, 86, 87, 88, 82, 81, 80, 79}, {0, 1, 2, 3, 2, 1, 0, 0}},
      {{80, 86, 87, 82, 82, 82}, {0, 1, 2, 1, 1, 1}},
      {{80, 86, 87, 82, 82.5, 82.9}, {0, 1, 2, 1, 1, 1}},
      {{90, 90, 91, 91, 90}, {1, 1, 2, 2, 1}},
      {{84, 84.5, 84.9, 85, 84.9, 85.1, 84.9}, {0, 0, 0, 1, 1, 2, 1}},
      {{80, 86, 82, 86, 82, 86}, {0, 1, 0, 1, 0, 1}},
  };
  for (const Pattern& pattern : patterns) {
    EXPECT_EQ(play(StepWise(one_trip(), {5}), pattern.temperatures), pattern.states)
        << ::testing::PrintToString(pattern.temperatures);
  }
}

TEST(StepWise, TheTripThatAsksForMoreDecides) {
  const std::vector<config::TripSpec> trips = {{config::TripKind::passive, Celsius(70), Celsius(0)},
                                               {config::TripKind::passive, Celsius(80), Celsius(0)}};
  EXPECT_EQ(play(StepWise(trips, {4}), {60, 71, 72, 81, 82, 79, 75, 69, 68}),
            (States{0, 1, 2, 3, 4, 3, 2, 1, 0}));
}

TEST(StepWise, DevicesEndWhereTheirStatesDo) {
  StepWise governor(one_trip(), {1, 3, 0});
  States last;
  for (const double temperature : {80.0, 86.0, 87.0, 88.0, 89.0}) {
    last = governor.poll(Celsius(temperature));
  }
  EXPECT_EQ(last, (States{1, 3, 0}));
  EXPECT_TRUE(governor.is_active());
  governor.poll(Celsius(84));
  EXPECT_TRUE(governor.is_active());
  governor.poll(Celsius(82.9));
  EXPECT_FALSE(governor.is_active());
}

}  // namespace
}  // namespace kvsim::model
