// SPDX-License-Identifier: Apache-2.0
// exact, train and auto agree, on the main scenario cut short: two layers, a small vocabulary, few tokens.
#include <array>
#include <cmath>
#include <map>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/process.h"

namespace kvsim::testing {
namespace {

nlohmann::json run(const std::string& fidelity) {
  const Outcome outcome = kvsim({"run", "scenarios/rk3588_llama8b.yaml", "--set", "model.layers=2", "--set",
                                 "model.vocabulary=4096", "--set", "workload.prompt=16", "--set",
                                 "workload.generate=4", "--fidelity", fidelity, "--format", "json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out);
}

std::map<std::string, double> shares(const nlohmann::json& result) {
  std::map<std::string, double> parts;
  for (const auto& part : result["breakdown"]) {
    parts[part["part"]] = part["share"];
  }
  return parts;
}

TEST(Fidelity, ExactTrainAndAutoAgreeWithinOnePercent) {
  const nlohmann::json exact = run("exact");
  const double token = exact["latency"]["itl_ms"]["p50"];
  for (const char* fidelity : {"train", "auto"}) {
    const nlohmann::json other = run(fidelity);
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
    for (const auto& [part, share] : shares(run(fidelity))) {
      EXPECT_GE(share, 0) << part;
      sum += share;
    }
    EXPECT_NEAR(sum, 1, 1e-9) << fidelity;
  }
}

}  // namespace
}  // namespace kvsim::testing
