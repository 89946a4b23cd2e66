// SPDX-License-Identifier: Apache-2.0
// exact, train and auto agree, on the main scenario cut short: two layers, a small vocabulary, few tokens.
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

nlohmann::json run(const std::string& fidelity, const std::vector<std::string>& settings = {}) {
  std::vector<std::string> arguments = {
      "run", "scenarios/rk3588_llama8b.yaml", "--fidelity", fidelity, "--format", "json"};
  std::vector<std::string> all = {"model.layers=2", "model.vocabulary=4096", "workload.prompt=16",
                                  "workload.generate=4"};
  all.insert(all.end(), settings.begin(), settings.end());
  for (const std::string& setting : all) {
    arguments.insert(arguments.end(), {"--set", setting});
  }
  const Outcome outcome = kvsim(arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out);
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
      EXPECT_NEAR(share, expected.at(part), 0.01) << fidelity << ": " << part;
    }
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
