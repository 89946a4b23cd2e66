// SPDX-License-Identifier: Apache-2.0
#include "models/thermal/rc_network.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "models/thermal/foster.h"
#include "models/thermal/thermal_network.h"

namespace kvsim::model {
namespace {

constexpr double kExact = 1e-9;
const std::vector<double> kSteps = {1e-6, 3e-5, 1e-3, 0.02, 1, 17, 100, 900, 3600};

Picoseconds time_of(double seconds) {
  return Picoseconds(std::llround(seconds * 1e12));
}

void expect_close(double expected, double got, double relative, const std::string& what) {
  EXPECT_LE(std::abs(got - expected), relative * std::abs(expected))
      << what << ": " << expected << " " << got;
}

TEST(RcNetwork, OneLumpIsAnExponential) {
  for (const double t : kSteps) {
    RcNetwork lump({JoulesPerKelvin(70)}, {{0, {}, KelvinPerWatt(1.5)}}, Celsius(0));
    lump.advance(std::vector{Watts(12)}, time_of(t));
    expect_close(12 * 1.5 * -std::expm1(-t / (70 * 1.5)), lump.temperature(0).count(), kExact, "heating");
    lump.set_temperature(0, Celsius(40));
    lump.advance(std::vector{Watts(0)}, time_of(t));
    expect_close(40 * std::exp(-t / (70 * 1.5)), lump.temperature(0).count(), kExact, "cooling");
  }
}

/// Two equal lumps with a link, each to ambient: the sum and the difference are independent exponentials.
TEST(RcNetwork, TwoLumpsHaveTwoModes) {
  for (const double t : kSteps) {
    RcNetwork pair({JoulesPerKelvin(20), JoulesPerKelvin(20)},
                   {{0, {}, KelvinPerWatt(4)}, {1, {}, KelvinPerWatt(4)}, {0, 1, KelvinPerWatt(0.5)}},
                   Celsius(0));
    pair.advance(std::vector{Watts(5), Watts(1)}, time_of(t));
    const double common = 1 / (20 * 4.0);
    const double opposed = (1 / 4.0 + 2 / 0.5) / 20;
    const double sum = 6 / 20.0 * -std::expm1(-common * t) / common;
    const double difference = 4 / 20.0 * -std::expm1(-opposed * t) / opposed;
    expect_close((sum + difference) / 2, pair.temperature(0).count(), kExact, "first");
    expect_close((sum - difference) / 2, pair.temperature(1).count(), t < 1e-4 ? 1e-8 : kExact, "second");
  }
}

TEST(RcNetwork, LadderAnswersAsTheFosterChain) {
  const std::vector<std::vector<config::FosterStageSpec>> chains = {
      {{KelvinPerWatt(1.53), time_of(100)}},
      {{KelvinPerWatt(0.81), time_of(50)}, {KelvinPerWatt(0.76), time_of(200)}},
      {{KelvinPerWatt(0.2), time_of(0.004)},
       {KelvinPerWatt(1.1), time_of(3)},
       {KelvinPerWatt(6), time_of(600)}},
      {{KelvinPerWatt(4), time_of(0.5)},
       {KelvinPerWatt(3), time_of(8)},
       {KelvinPerWatt(2), time_of(70)},
       {KelvinPerWatt(9), time_of(2000)}}};
  for (const auto& chain : chains) {
    for (const double t : kSteps) {
      config::ThermalCaseSpec spec;
      spec.nodes = {{.name = "soc", .capacity = {}, .foster = chain}};
      ThermalNetwork made = make_network(spec, Celsius(0));
      std::vector<Watts> power(made.network.size());
      power[0] = Watts(14);
      made.network.advance(power, time_of(t));
      double expected = 0;
      for (const auto& stage : chain) {
        expected += 14 * stage.resistance.count() * -std::expm1(-t / seconds(stage.time_constant));
      }
      expect_close(expected, made.network.temperature(0).count(), kExact, "chain");
    }
  }
}

/// A network of up to eight lumps in a row, with further links drawn at random.
struct RandomNetwork {
  explicit RandomNetwork(Random& random) {
    const std::size_t size = 1 + random.below(8);
    for (std::size_t i = 0; i < size; ++i) {
      capacities.push_back(JoulesPerKelvin(real(random, 0.01, 300)));
      links.push_back(
          {i, i + 1 < size ? std::optional(i + 1) : std::nullopt, KelvinPerWatt(real(random, 0.05, 20))});
      power.push_back(Watts(real(random, 0.01, 10)));
      const std::size_t other = random.below(size);
      if (other != i) {
        links.push_back({i, other, KelvinPerWatt(real(random, 0.5, 50))});
      }
    }
  }
  static double real(Random& random, double low, double high) {
    const double share = static_cast<double>(random.below(1'000'001)) / 1e6;
    return low * std::pow(high / low, share);
  }

  std::vector<JoulesPerKelvin> capacities;
  std::vector<RcLink> links;
  std::vector<Watts> power;
};

TEST(RcNetwork, AStepIsTheSumOfItsParts) {
  Random random(7);
  for (int i = 0; i < 200; ++i) {
    const RandomNetwork drawn(random);
    RcNetwork whole(drawn.capacities, drawn.links, Celsius(25));
    RcNetwork parts = whole;
    const double t = RandomNetwork::real(random, 1e-6, 3600);
    whole.advance(drawn.power, time_of(t * 7));
    for (int part = 0; part < 7; ++part) {
      parts.advance(drawn.power, time_of(t));
    }
    for (std::size_t node = 0; node < whole.size(); ++node) {
      EXPECT_NEAR(whole.temperature(node).count(), parts.temperature(node).count(),
                  1e-9 * whole.temperature(node).count());
    }
  }
}

TEST(RcNetwork, NoHeatIsLost) {
  Random random(11);
  for (int i = 0; i < 200; ++i) {
    const RandomNetwork drawn(random);
    RcNetwork network(drawn.capacities, drawn.links, Celsius(25));
    for (int step = 0; step < 50; ++step) {
      std::vector<Watts> power = drawn.power;
      power[random.below(power.size())] = Watts(RandomNetwork::real(random, 0.01, 30));
      network.advance(power, time_of(RandomNetwork::real(random, 1e-6, 3600)));
    }
    const double in = network.put_in().count();
    EXPECT_NEAR(in, (network.stored() + network.given_off()).count(), 1e-6 * in);
    EXPECT_GT(network.given_off().count(), 0);
  }
}

TEST(RcNetwork, ComesToRestWhereItIsSaid) {
  Random random(13);
  for (int i = 0; i < 50; ++i) {
    const RandomNetwork drawn(random);
    RcNetwork network(drawn.capacities, drawn.links, Celsius(25));
    const std::vector<Celsius> rest = network.steady(drawn.power);
    for (int hour = 0; hour < 4000; ++hour) {
      network.advance(drawn.power, time_of(3600));
    }
    for (std::size_t node = 0; node < network.size(); ++node) {
      EXPECT_NEAR(rest[node].count(), network.temperature(node).count(), 1e-6);
    }
  }
}

TEST(RcNetwork, AmbientAndResistanceMayChange) {
  RcNetwork lump({JoulesPerKelvin(10)}, {{0, {}, KelvinPerWatt(2)}}, Celsius(20));
  lump.settle(std::vector{Watts(5)});
  EXPECT_NEAR(lump.temperature(0).count(), 30, 1e-12);
  lump.set_ambient(Celsius(40));
  EXPECT_NEAR(lump.temperature(0).count(), 30, 1e-12);
  lump.advance(std::vector{Watts(5)}, time_of(3600));
  EXPECT_NEAR(lump.temperature(0).count(), 50, 1e-9);
  lump.set_resistance(0, KelvinPerWatt(1));
  lump.advance(std::vector{Watts(5)}, time_of(10));
  EXPECT_NEAR(lump.temperature(0).count(), 45 + 5 * std::exp(-1.0), 1e-9);
  EXPECT_NEAR(lump.put_in().count(), (lump.stored() + lump.given_off()).count(), 1e-6);
}

TEST(RcNetwork, RefusesWhatCannotCool) {
  EXPECT_THROW(RcNetwork({JoulesPerKelvin(1), JoulesPerKelvin(1)}, {{0, {}, KelvinPerWatt(1)}}, Celsius(0)),
               InternalError);
  EXPECT_THROW(RcNetwork({JoulesPerKelvin(1)}, {{0, {}, KelvinPerWatt(-1)}}, Celsius(0)), InternalError);
}

/// rise = R P 2^(rise / d) has solutions up to R P = d / (e ln 2).
TEST(Equilibrium, EndsWhereTheCurvesPart) {
  constexpr double kResistance = 5;
  constexpr double kDoubles = 20;
  const double most = kDoubles / (std::exp(1.0) * std::log(2.0)) / kResistance;
  const RcNetwork network({JoulesPerKelvin(1)}, {{0, {}, KelvinPerWatt(kResistance)}}, Celsius(30));
  const auto find = [&](double power) {
    return find_equilibrium(network, [&](const std::vector<Celsius>& at) {
      return std::vector{Watts(power * std::exp2((at[0].count() - 30) / kDoubles))};
    });
  };
  const auto rest = find(0.99 * most);
  ASSERT_TRUE(rest.has_value());
  const double rise = rest->front().count() - 30;
  EXPECT_NEAR(rise, kResistance * 0.99 * most * std::exp2(rise / kDoubles), 1e-6);
  EXPECT_LT(rise, kDoubles / std::log(2.0));
  EXPECT_FALSE(find(1.01 * most).has_value());
}

}  // namespace
}  // namespace kvsim::model
