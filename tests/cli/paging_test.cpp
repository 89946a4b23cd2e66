// SPDX-License-Identifier: Apache-2.0
// `kvsim run` with weights that are larger than memory.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/process.h"

namespace kvsim::testing {
namespace {

using ::testing::HasSubstr;

TEST(PagingCli, WithoutStorageMappedWeightsThatDoNotFitEndTheRun) {
  const Outcome outcome = kvsim({"run", "scenarios/rk3588_4gb_llama8b.yaml", "--set", "memory.weights=mapped",
                                 "--set", "device.storage=none", "--format", "json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\"fits\": false"));
  EXPECT_THAT(outcome.out, HasSubstr("\"limit\": \"page cache\""));
  EXPECT_THAT(outcome.out, HasSubstr("runs only by paging weights"));
  EXPECT_THAT(outcome.out, HasSubstr("\"latency\": null"));
}

/// 4.6 GiB of weights in 3.5 GiB: most of a scan in order has left before it comes again.
TEST(PagingCli, WithStorageTheyAreReadAgainForEachToken) {
  const std::vector<std::string> arguments = {"run",   "scenarios/rk3588_4gb_llama8b.yaml",
                                              "--set", "memory.weights=mapped",
                                              "--set", "workload.prompt=16",
                                              "--set", "workload.generate=3"};
  const Outcome text = kvsim(arguments);
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("PAGES: "));
  std::vector<std::string> as_json = arguments;
  as_json.insert(as_json.end(), {"--format", "json"});
  const auto json = nlohmann::json::parse(kvsim(as_json).out);
  EXPECT_TRUE(json["verdict"]["fits"]);
  EXPECT_TRUE(json["verdict"]["pages"]);
  EXPECT_EQ(json["verdict"]["limit"], "page cache");
  const auto& storage = json["storage"];
  const double read = storage["read_bytes_per_token"];
  EXPECT_GT(read, 2e9);
  EXPECT_LT(read, 6e9);
  EXPECT_GT(storage["major_faults_per_token"], 1000);
  EXPECT_GT(storage["stall_share"], 0.9);
  const double seconds = 1 / json["throughput"]["decode_mean_tokens_per_s"].get<double>();
  EXPECT_GT(read / seconds, 100e6);
  EXPECT_LT(read / seconds, 280e6) << "no faster than the part reads in order";
}

}  // namespace
}  // namespace kvsim::testing
