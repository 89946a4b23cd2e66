// SPDX-License-Identifier: Apache-2.0
// `kvsim run` with streamed experts, and with a swap area.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/process.h"

namespace kvsim::testing {
namespace {

using ::testing::HasSubstr;
using Texts = std::vector<std::string>;

Texts with(Texts arguments, const Texts& changes) {
  for (const std::string& change : changes) {
    arguments.insert(arguments.end(), {"--set", change});
  }
  return arguments;
}

/// Two layers of Qwen3-30B-A3B, experts streamed.
Texts small(const Texts& changes = {}) {
  return with(with({"run", "scenarios/oneplus_15r_qwen3_30b.yaml"},
                   {"model={extends: qwen3_30b_a3b, layers: 2, vocabulary: 2048}", "workload.prompt=4",
                    "workload.generate=6", "engine.experts.cache=80 MiB"}),
              changes);
}

nlohmann::json run(Texts arguments) {
  arguments.insert(arguments.end(), {"--format", "json"});
  const Outcome outcome = kvsim(arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out);
}

double speed(const nlohmann::json& json) {
  return json["throughput"]["decode_mean_tokens_per_s"];
}

TEST(ExpertsCli, EveryFidelityReadsTheSameAndTakesAsLong) {
  const nlohmann::json exact = run(small({"run.fidelity=exact"}));
  const auto& storage = exact["storage"];
  EXPECT_GT(storage["read_bytes_per_token"], 1e6);
  EXPECT_GT(storage["experts"]["hit_share"], 0.1);
  EXPECT_GT(storage["stall_share"], 0.05);
  EXPECT_EQ(storage["experts"]["cache_bytes"], 80 << 20);
  for (const std::string fidelity : {"train", "auto"}) {
    const nlohmann::json other = run(small({"run.fidelity=" + fidelity}));
    EXPECT_EQ(other["storage"]["read_bytes_per_token"], storage["read_bytes_per_token"]);
    EXPECT_EQ(other["storage"]["experts"], storage["experts"]);
    EXPECT_NEAR(speed(other) / speed(exact), 1, 0.02) << fidelity;
  }
}

TEST(ExpertsCli, TheReportTellsOfTheCache) {
  const Outcome outcome = kvsim(small());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("FITS: "));
  EXPECT_THAT(outcome.out, HasSubstr("expert cache of 80.00 MiB: "));
  EXPECT_THAT(outcome.out, HasSubstr("expert cache"));
}

/// Nothing is read but what the cache lacks: with room for all, each expert once.
TEST(ExpertsCli, SpeedFollowsTheCache) {
  const double none = speed(run(small({"engine.experts.cache=0 MiB"})));
  const double some = speed(run(small({"engine.experts.cache=200 MiB"})));
  EXPECT_GT(some, 1.1 * none);
  const nlohmann::json mapped = run(small({"engine.experts={place: mapped}"}));
  EXPECT_TRUE(mapped["storage"].is_null());
  EXPECT_GT(speed(mapped), some);
}

TEST(ExpertsCli, ACacheThatMemoryDoesNotHoldEndsTheRun) {
  const nlohmann::json json = run(small({"engine.experts.cache=20 GiB"}));
  EXPECT_FALSE(json["verdict"]["fits"]);
  EXPECT_EQ(json["verdict"]["limit"], "memory");
  EXPECT_THAT(json["verdict"]["message"].get<std::string>(), HasSubstr("'expert cache'"));
}

TEST(ExpertsCli, AReplayIsTheRun) {
  const TemporaryFolder folder;
  const std::string recording = folder.path("t.kvt");
  Texts arguments = small();
  arguments.insert(arguments.end(), {"--record", recording, "--format", "csv"});
  const Outcome first = kvsim(arguments);
  EXPECT_EQ(first.exit_code, 0) << first.err;
  const Outcome again = kvsim({"replay", recording, "--format", "csv"});
  EXPECT_EQ(again.out, first.out);
  const Outcome elsewhere = kvsim({"replay", recording, "--device", "rk3588_16gb", "--set",
                                   "device.storage=nvme_sm2263xt_1tb", "--format", "json"});
  EXPECT_EQ(elsewhere.exit_code, 0) << elsewhere.err;
  EXPECT_EQ(nlohmann::json::parse(elsewhere.out)["storage"]["part"], "nvme_sm2263xt_1tb");
}

/// 1.2 GB of anonymous memory in 0.9: dead, or swapped.
TEST(SwapCli, AnonymousMemoryThatDoesNotFitIsSwapped) {
  const Texts arguments = with(
      {"run", "scenarios/rk3588_4gb_tinyllama.yaml"},
      {"engine.weights=Q8_0", "memory.weights=anonymous", "device.os.reserve=3000 MiB",
       "device.storage=nvme_sm2263xt_1tb", "workload.prompt=8", "workload.cached=0", "workload.generate=3"});
  EXPECT_FALSE(run(arguments)["verdict"]["fits"]);
  const nlohmann::json json = run(with(arguments, {"device.os.swap=2 GiB"}));
  EXPECT_TRUE(json["verdict"]["fits"]);
  EXPECT_TRUE(json["verdict"]["pages"]);
  EXPECT_EQ(json["verdict"]["limit"], "memory");
  EXPECT_THAT(json["verdict"]["message"].get<std::string>(), HasSubstr("is swapped to"));
  EXPECT_GT(json["storage"]["read_bytes_per_token"], 0.3e9);
  EXPECT_LT(json["storage"]["read_bytes_per_token"], 1.4e9);
  EXPECT_GT(json["storage"]["major_faults_per_token"], 1000);
  EXPECT_GT(json["storage"]["stall_share"], 0.5);
  EXPECT_GT(json["storage"]["write_bytes_per_token"], 0);
  EXPECT_NEAR(json["storage"]["waf"].get<double>(), 1, 0.1)
      << "written in order; some is in the drive's buffer";
  EXPECT_GT(json["storage"]["days_to_endurance"], 1);
  const nlohmann::json little = run(with(arguments, {"device.os.swap=100 MiB"}));
  EXPECT_FALSE(little["verdict"]["fits"]) << "memory and area together are too small";
}

}  // namespace
}  // namespace kvsim::testing
