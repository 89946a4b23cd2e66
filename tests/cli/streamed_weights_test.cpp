// SPDX-License-Identifier: Apache-2.0
// `kvsim run` with weights that are streamed, locked, or pushed out by other programs.
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

struct StreamedWeights : ::testing::Test {
  Texts with(const Texts& changes) const {
    Texts arguments = {"run", scenario};
    for (const std::string& change : changes) {
      arguments.insert(arguments.end(), {"--set", change});
    }
    return arguments;
  }
  nlohmann::json run(const Texts& changes) const {
    Texts arguments = with(changes);
    arguments.insert(arguments.end(), {"--format", "json"});
    const Outcome outcome = kvsim(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }
  static double item(const nlohmann::json& json, const std::string& name) {
    for (const auto& each : json["memory"]["items"]) {
      if (each["name"] == name) {
        return each["bytes"];
      }
    }
    return 0;
  }

  TemporaryFolder folder;
  std::string scenario = folder.file("small.yaml",
                                     "device: rk3588\n"
                                     "model: {extends: tinyllama_1_1b, layers: 3, vocabulary: 2048}\n"
                                     "engine: {weights: Q4_0}\n"
                                     "workload: {prompt: 4, generate: 3, threads: 2}\n");
};

TEST_F(StreamedWeights, LockedBytesAreNotReadAndBuffersAreInTheBudget) {
  const nlohmann::json none = run({"memory.weights=streamed"});
  EXPECT_TRUE(none["verdict"]["fits"]);
  EXPECT_FALSE(none["verdict"]["pages"]);
  EXPECT_EQ(item(none, "weights, locked"), 0);
  EXPECT_EQ(item(none, "weights, buffers"), none["storage"]["layers"]["buffer_bytes"]);
  EXPECT_GT(none["storage"]["stall_share"], 0.2);
  EXPECT_EQ(none["storage"]["major_faults_per_token"], 0);
  const nlohmann::json some = run({"memory.weights=streamed", "memory.locked=8 MiB"});
  EXPECT_EQ(item(some, "weights, locked"), 8 << 20);
  EXPECT_EQ(some["storage"]["layers"]["locked_bytes"], 8 << 20);
  const double saved = none["storage"]["read_bytes_per_token"].get<double>() -
                       some["storage"]["read_bytes_per_token"].get<double>();
  EXPECT_NEAR(saved, 8 << 20, 8192) << "a block at the cut";
  EXPECT_GT(some["storage"]["hit_share"], none["storage"]["hit_share"]);
  EXPECT_LT(some["latency"]["itl_ms"]["p50"], none["latency"]["itl_ms"]["p50"]);
}

TEST_F(StreamedWeights, EveryFidelityReadsTheSame) {
  const nlohmann::json trains = run({"memory.weights=streamed", "run.fidelity=train"});
  const nlohmann::json sampled = run({"memory.weights=streamed"});
  EXPECT_EQ(trains["storage"]["read_bytes_per_token"], sampled["storage"]["read_bytes_per_token"]);
  const double p50 = trains["latency"]["itl_ms"]["p50"];
  EXPECT_NEAR(sampled["latency"]["itl_ms"]["p50"].get<double>() / p50, 1, 0.02);
}

TEST_F(StreamedWeights, TheReportTellsOfThem) {
  const Outcome outcome = kvsim(with({"memory.weights=streamed", "memory.locked=8 MiB"}));
  EXPECT_THAT(outcome.out, HasSubstr("layer by layer"));
  EXPECT_THAT(outcome.out, HasSubstr("while others are computed; 8.00 MiB stay in memory"));
}

TEST_F(StreamedWeights, MoreThanMemoryCannotBeLocked) {
  for (const std::string how : {"mapped", "streamed"}) {
    const Outcome outcome =
        kvsim({"run", "scenarios/rk3588_4gb_llama8b.yaml", "--set", "memory.weights=" + how, "--set",
               "memory.locked=4 GiB", "--set", "device.storage=emmc_foresee_sld64g", "--format", "json"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("\"fits\": false"));
    EXPECT_THAT(outcome.out, HasSubstr("\"limit\": \"memory\""));
    EXPECT_THAT(outcome.out, HasSubstr("for 'weights, locked' would bring"));
  }
}

/// There is room for all weights, which an idle system never loses; another program's file takes some of it.
TEST_F(StreamedWeights, OtherProgramsPushWeightsOut) {
  const Texts tight = {"device=rk3588_4gb", "device.storage=nvme_sm2263xt_1tb", "device.os.reserve=3764 MiB",
                       "workload.generate=32"};
  EXPECT_TRUE(run(tight)["storage"].is_null());
  Texts beside = tight;
  beside.emplace_back("device.os.readers=[{file: 64 MiB, bytes: 4 MiB, every: 10 ms, order: random}]");
  const nlohmann::json json = run(beside);
  EXPECT_TRUE(json["verdict"]["pages"]);
  EXPECT_THAT(json["verdict"]["message"].get<std::string>(),
              HasSubstr("other programs' files push weights out"));
  EXPECT_GT(json["storage"]["read_bytes_per_token"], 0);
  EXPECT_GT(json["storage"]["others_read_bytes_per_token"], 0);
  EXPECT_EQ(json["storage"]["cliff_tokens"], 0);
}

TEST_F(StreamedWeights, OtherProgramsAreTold) {
  const std::string readers = "device.os.readers=[{file: 20 GiB, bytes: 4 MiB, every: 1 ms}]";
  const nlohmann::json beside = run({readers});
  EXPECT_TRUE(beside["storage"].is_null()) << "nothing is pushed out";
  const Outcome streamed = kvsim(with({readers, "memory.weights=streamed"}));
  EXPECT_THAT(streamed.out, HasSubstr("device.os.readers has no effect"));
  const Outcome without = kvsim(with({readers, "device.storage=none"}));
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_THAT(without.err, HasSubstr("device.os.readers"));
}

}  // namespace
}  // namespace kvsim::testing
