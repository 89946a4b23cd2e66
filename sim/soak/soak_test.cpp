// SPDX-License-Identifier: Apache-2.0
#include "sim/soak/soak.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/error.h"
#include "configs/spec/resolve.h"
#include "sim/report/soak_report.h"

namespace kvsim::sim {
namespace {

using namespace kvsim::literals;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// A board of one lump that four cores heat, and a model of two small layers.
constexpr const char* kScenario = R"(
device:
  extends: rk3588
  clocks:
    domains:
      - name: big
        kind: cpu
        cluster: 0
        cores: 4
        opps: [{clock: 1000 MHz, voltage: 0.7 V}, {clock: 1500 MHz, voltage: 0.8 V}, {clock: 2300 MHz, voltage: 1.0 V}]
      - name: dmc
        kind: dram
        cores: 4
        opps: [{clock: 528 MHz, voltage: 0.7 V}, {clock: 2112 MHz, voltage: 0.9 V}]
        governor: DMC_GOVERNOR
        sampling: 50 ms
        up_threshold: 40
  thermal:
    ambient: 30 C
    case: bare
    cases:
      - name: bare
        nodes: [{name: soc, capacity: 2 J/K}]
        links: [{from: soc, resistance: 10 K/W}]
    sensors: [{name: soc, node: soc}]
    zones:
      - name: soc
        sensor: soc
        governor: step_wise
        polling: 1 s
        passive_polling: 100 ms
        trips: [{kind: passive, at: TRIP C, hysteresis: 2 C}, {kind: critical, at: 150 C, hysteresis: 0 C}]
        cooling: [{domain: big}]
    caps: []
    dram_node: soc
  power:
    parts:
      - {name: big, kind: logic, rail: big, node: soc, domain: big, cores: 4, capacitance: 500 pF}
      - {name: dram, kind: dram, rail: dram, node: soc}
      - {name: board, kind: board, rail: board, node: soc, idle: 0.5 W}
    limits: []
model:
  name: small
  layers: 2
  width: 512
  heads: 8
  kv_heads: 4
  head_dim: 64
  ffn: 2048
  vocabulary: 4096
  context: 1024
engine: {weights: Q8_0}
workload: {prompt: 16, generate: 32}
soak:
  duration: DURATION
  sample: 100 ms
)";

class SoakTest : public ::testing::Test {
 protected:
  config::RunSpec spec(const std::string& trip, const std::string& governor, const std::string& duration,
                       const config::Overrides& overrides = {}) {
    std::string text = kScenario;
    for (const auto& [from, to] : {std::pair<std::string, std::string>{"TRIP", trip},
                                   {"DMC_GOVERNOR", governor},
                                   {"DURATION", duration}}) {
      text.replace(text.find(from), from.size(), to);
    }
    const auto path = std::filesystem::path(::testing::TempDir()) / "soak_test.yaml";
    std::ofstream(path) << text;
    return config::load_scenario(path, overrides).spec;
  }
  static SoakRecord run(const config::RunSpec& spec) {
    return run_soak(
        spec, [](double) {}, nullptr);
  }
};

TEST_F(SoakTest, WithoutHeatAndGovernorsTokensTakeWhatAWindowSays) {
  const SoakRecord soak = run(spec("140", "performance", "3 s"));
  EXPECT_TRUE(soak.causes.empty());
  EXPECT_EQ(soak.windows, 2);  // prefill and decode
  EXPECT_NEAR(soak.steady, soak.first_minute, 0.02 * soak.first_minute);
  EXPECT_GT(soak.answers, 1);
  EXPECT_EQ(soak.time, 3000_ms);
}

TEST_F(SoakTest, EnergyIsTheSumOfTheRailsOverTheTimeline) {
  const SoakRecord soak = run(spec("140", "performance", "2 s"));
  double sum = 0;
  Picoseconds before;
  for (const TimelineRow& row : soak.timeline) {
    for (const Watts rail : row.rails) {
      sum += rail.count() * seconds(row.at - before);
    }
    before = row.at;
  }
  EXPECT_EQ(before, soak.time);
  EXPECT_NEAR(sum, soak.energy.count(), 1e-6 * soak.energy.count());
}

TEST_F(SoakTest, HeatSlowsItDownAndIsNamed) {
  const SoakRecord soak = run(spec("50", "performance", "60 s"));
  ASSERT_FALSE(soak.causes.empty());
  EXPECT_EQ(soak.causes.front().cause, "heat");
  EXPECT_GT(soak.causes.front().first_at, Picoseconds());
  EXPECT_LT(soak.steady, 0.97 * soak.timeline.front().tokens_per_second);
  double hottest = 0;
  for (const TimelineRow& row : soak.timeline) {
    hottest = std::max(hottest, row.board.nodes.front().temperature.count());
  }
  EXPECT_LT(hottest, 56);
}

TEST_F(SoakTest, AGovernorsRampCostsTheFirstTokens) {
  const SoakRecord soak = run(spec("140", "dmc_ondemand", "2 s", {config::Override("soak.pause=500 ms")}));
  ASSERT_FALSE(soak.causes.empty());
  EXPECT_EQ(soak.causes.front().cause, "governor");
  EXPECT_GT(soak.inter_token->max, soak.inter_token->p50);
}

TEST_F(SoakTest, ARuleShortensAndPauses) {
  config::RunSpec paused = spec("140", "performance", "60 s");
  paused.soak->rules = {
      {.sensor = "soc", .above = Celsius(50), .below = Celsius(45), .set = "", .pause = true}};
  const SoakRecord rest = run(paused);
  EXPECT_GT(rest.paused_share, 0.1);
  EXPECT_LT(rest.end.nodes.front().temperature.count(), 55);
  config::RunSpec fewer = spec("140", "performance", "60 s");
  fewer.soak->rules = {{.sensor = "soc",
                        .above = Celsius(50),
                        .below = Celsius(45),
                        .set = "workload.threads=1",
                        .pause = false}};
  const SoakRecord slow = run(fewer);
  EXPECT_EQ(slow.causes.front().cause, "rules");
}

TEST_F(SoakTest, EqualRunsAreEqualByteForByte) {
  const config::RunSpec same = spec("50", "dmc_ondemand", "5 s");
  nlohmann::ordered_json a, b;
  add_soak(a, run(same));
  add_soak(b, run(same));
  EXPECT_EQ(a.dump(), b.dump());
}

TEST_F(SoakTest, TokensOneByOneAgreeWithWindowsThatAreReused) {
  config::RunSpec reused = spec("50", "performance", "25 ms");
  config::RunSpec each = reused;
  each.soak->reuse = false;
  const SoakRecord a = run(reused);
  const SoakRecord b = run(each);
  EXPECT_NEAR(a.inter_token->p50.as_double(), b.inter_token->p50.as_double(),
              0.02 * b.inter_token->p50.as_double());
  EXPECT_GT(b.windows, b.tokens);
}

TEST_F(SoakTest, ADeviceWithoutClocksIsRefused) {
  config::RunSpec bare = spec("140", "performance", "1 s");
  bare.device.clocks.reset();
  EXPECT_THAT([&] { static_cast<void>(run(bare)); }, ThrowsMessage<UserError>(HasSubstr("has no clocks")));
  config::RunSpec rule = spec("140", "performance", "1 s");
  rule.soak->rules = {
      {.sensor = "gpu", .above = Celsius(50), .below = Celsius(45), .set = "", .pause = true}};
  EXPECT_THAT([&] { static_cast<void>(run(rule)); },
              ThrowsMessage<UserError>(HasSubstr("'gpu' is no sensor of rk3588 (changed); known: soc")));
}

}  // namespace
}  // namespace kvsim::sim
