// SPDX-License-Identifier: Apache-2.0
// exact, train and auto agree, on the main scenario cut short: two layers, a small vocabulary, few tokens.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/process.h"

namespace kvsim::testing {
namespace {

nlohmann::json run_set(const std::string& fidelity, const std::vector<std::string>& settings) {
  std::vector<std::string> arguments = {
      "run", "scenarios/rk3588_llama8b.yaml", "--fidelity", fidelity, "--format", "json"};
  for (const std::string& setting : settings) {
    arguments.insert(arguments.end(), {"--set", setting});
  }
  const Outcome outcome = kvsim(arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out);
}

nlohmann::json run(const std::string& fidelity, const std::vector<std::string>& settings = {}) {
  std::vector<std::string> all = {"model.layers=2", "model.vocabulary=4096", "workload.prompt=16",
                                  "workload.generate=4"};
  all.insert(all.end(), settings.begin(), settings.end());
  return run_set(fidelity, all);
}

/// The plain scenario, run once.
const nlohmann::json& plain(const std::string& fidelity) {
  static std::map<std::string, nlohmann::json> results;
  const auto found = results.find(fidelity);
  return found != results.end() ? found->second : results.emplace(fidelity, run(fidelity)).first->second;
}

std::map<std::string, double> shares(const nlohmann::json& result) {
  std::map<std::string, double> parts;
  for (const auto& part : result["breakdown"]) {
    parts[part["part"]] = part["share"];
  }
  return parts;
}

TEST(Fidelity, ExactTrainAndAutoAgreeWithinOnePercent) {
  const nlohmann::json exact = plain("exact");
  const double token = exact["latency"]["itl_ms"]["p50"];
  for (const char* fidelity : {"train", "auto"}) {
    const nlohmann::json other = plain(fidelity);
    EXPECT_NEAR(other["latency"]["itl_ms"]["p50"], token, 0.01 * token) << fidelity;
    EXPECT_NEAR(other["latency"]["ttft_ms"], exact["latency"]["ttft_ms"],
                0.01 * exact["latency"]["ttft_ms"].get<double>())
        << fidelity;
    const auto expected = shares(exact);
    for (const auto& [part, share] : shares(other)) {
      // Samples settle in time; what stalled them, refresh or another row, varies more.
      EXPECT_NEAR(share, expected.at(part), std::string(fidelity) == "auto" ? 0.015 : 0.01)
          << fidelity << ": " << part;
    }
  }
}

// A small model's tensors are few times the cache: what operators leave there for others, and which of them
// pay for writing it back, decides times and bytes.
TEST(Fidelity, AutoLeavesTheCacheToTheNextOperatorAsTrainDoes) {
  for (const char* device : {"raspberry_pi_5", "rk3588_lpddr5"}) {
    const std::vector<std::string> settings = {std::string("device=") + device, "model=qwen2_5_0_5b",
                                               "engine.weights=Q4_0", "workload.prompt=64",
                                               "workload.generate=8"};
    const nlohmann::json train = run_set("train", settings);
    const nlohmann::json sampled = run_set("auto", settings);
    const double token = train["latency"]["itl_ms"]["p50"];
    EXPECT_NEAR(sampled["latency"]["itl_ms"]["p50"], token, 0.01 * token) << device;
    EXPECT_NEAR(sampled["latency"]["ttft_ms"], train["latency"]["ttft_ms"],
                0.01 * train["latency"]["ttft_ms"].get<double>())
        << device;
    const double written = train["dram"]["write_gbs"];
    EXPECT_NEAR(sampled["dram"]["write_gbs"], written, 0.05 * written) << device;
    for (std::size_t i = 0; i < train["operators"].size(); ++i) {
      const double expected = train["operators"][i]["time_ms"];
      EXPECT_NEAR(sampled["operators"][i]["time_ms"], expected, std::max(0.02 * expected, 1e-3 * 8 * token))
          << device << ": " << train["operators"][i]["operator"];
    }
  }
}

// Which experts a token takes decides addresses alone in decode, and in a prompt how many rows go to each.
TEST(Fidelity, AutoTakesOperatorsOfOtherExpertsForAlike) {
  const std::vector<std::string> settings = {"model=qwen3_30b_a3b",   "model.layers=3",
                                             "model.vocabulary=4096", "engine.weights=Q3_K_M",
                                             "workload.prompt=24",    "workload.generate=40"};
  const nlohmann::json train = run_set("train", settings);
  const nlohmann::json sampled = run_set("auto", settings);
  EXPECT_LT(sampled["fidelity"]["simulated_share"], 0.45) << "of other experts, measured again";
  const double token = train["latency"]["itl_ms"]["p50"];
  EXPECT_NEAR(sampled["latency"]["itl_ms"]["p50"], token, 0.01 * token);
  EXPECT_NEAR(sampled["latency"]["ttft_ms"], train["latency"]["ttft_ms"],
              0.01 * train["latency"]["ttft_ms"].get<double>());
  for (std::size_t i = 0; i < train["operators"].size(); ++i) {
    const double expected = train["operators"][i]["time_ms"];
    EXPECT_NEAR(sampled["operators"][i]["time_ms"], expected, std::max(0.02 * expected, 1e-3 * 40 * token))
        << train["operators"][i]["operator"];
  }
}

TEST(Fidelity, OperatorsAddUpToTheTokens) {
  for (const char* fidelity : {"train", "auto"}) {
    const nlohmann::json result = run(fidelity);
    double time = 0;
    double bytes = 0;
    for (const auto& op : result["operators"]) {
      time += op["time_ms"].get<double>();
      bytes += op["read_bytes"].get<double>();
      EXPECT_NEAR(
          op["row_hit"].get<double>() + op["row_miss"].get<double>() + op["row_conflict"].get<double>(),
          op["read_bytes"].get<double>() + op["written_bytes"].get<double>() > 0 ? 1 : 0, 1e-9)
          << fidelity << ' ' << op["operator"];
    }
    const double tokens = 4e3 / result["throughput"]["decode_mean_tokens_per_s"].get<double>();
    EXPECT_NEAR(time, tokens, 1e-6 * tokens) << fidelity;
    EXPECT_NEAR(bytes / 1e6 / tokens, result["dram"]["read_gbs"], 1e-6 * bytes / 1e6 / tokens) << fidelity;
  }
}

TEST(Fidelity, BreakdownAddsUpToAllOfTheTime) {
  for (const char* fidelity : {"exact", "train", "auto"}) {
    double sum = 0;
    for (const auto& [part, share] : shares(plain(fidelity))) {
      EXPECT_GE(share, 0) << part;
      sum += share;
    }
    EXPECT_NEAR(sum, 1, 1e-9) << fidelity;
  }
}

TEST(Fidelity, EnergyAgreesWithinTwoPercent) {
  const nlohmann::json exact = plain("exact")["dram"]["energy"];
  const double total = exact["mj_per_token"];
  for (const char* fidelity : {"train", "auto"}) {
    const nlohmann::json other = plain(fidelity)["dram"]["energy"];
    EXPECT_NEAR(other["average_mw"], exact["average_mw"], 0.02 * exact["average_mw"].get<double>())
        << fidelity;
    for (const char* kind : {"by_command", "background"}) {
      for (const auto& [part, energy] : exact[kind].items()) {
        EXPECT_NEAR(other[kind][part], energy, 0.005 * total) << fidelity << ": " << part;
      }
    }
  }
}

/// With 10 mW in every state of a rank and free commands, eight ranks draw 80 mW whatever was sampled.
TEST(Fidelity, BackgroundFollowsSimulatedTime) {
  std::vector<std::string> settings = {"device.dram.rails=none", "workload.prompt=2", "workload.generate=1"};
  for (const char* free : {"activate", "read_burst", "write_burst", "refresh_all", "refresh_bank"}) {
    settings.push_back(std::string("device.dram.energy.") + free + "=0 nJ");
  }
  for (const char* state :
       {"active_standby", "precharge_standby", "active_power_down", "precharge_power_down", "self_refresh"}) {
    settings.push_back(std::string("device.dram.energy.") + state + "=10 mW");
  }
  for (const char* fidelity : {"exact", "train", "auto"}) {
    const nlohmann::json result = run(fidelity, settings);
    EXPECT_NEAR(result["dram"]["energy"]["average_mw"], 80, 1e-3) << fidelity;
    EXPECT_NEAR(result["dram"]["energy"]["rail_mw"]["total"], 80, 1e-3) << fidelity;
    const double token_s = 1 / result["throughput"]["decode_mean_tokens_per_s"].get<double>();
    EXPECT_NEAR(result["dram"]["energy"]["mj_per_token"], 80 * token_s, 1e-3) << fidelity;
  }
}

TEST(Fidelity, PowerDownSavesEnergyInARun) {
  const nlohmann::json awake = plain("auto")["dram"]["energy"]["background"];
  const nlohmann::json asleep =
      run("auto", {"device.controller.power_down=50 ns"})["dram"]["energy"]["background"];
  EXPECT_EQ(awake["active_power_down"], 0.0);
  EXPECT_GT(asleep["active_power_down"], 0.0);
  EXPECT_LT(asleep["active_standby"], awake["active_standby"].get<double>());
}

}  // namespace
}  // namespace kvsim::testing
