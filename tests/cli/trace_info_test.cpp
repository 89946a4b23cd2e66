// SPDX-License-Identifier: Apache-2.0
// `kvsim trace info` as a user meets it, on two decode tokens of a real engine.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/process.h"

namespace kvsim::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kTrace = "tests/data/micro_q40_repack_f16_p128.lackey.zst";
constexpr const char* kRegions = "tests/data/micro_q40_repack_f16_p128.regions.csv";

json info(std::vector<std::string> options) {
  std::vector<std::string> all = {"trace", "info", kTrace, "--format", "json"};
  all.insert(all.end(), options.begin(), options.end());
  const Outcome outcome = kvsim(all);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  return json::parse(outcome.out);
}

json region(const json& scope, const std::string& kind) {
  for (const json& each : scope["regions"]) {
    if (each["kind"] == kind) {
      return each;
    }
  }
  ADD_FAILURE() << "no region " << kind;
  return {};
}

/// 28 tensors of the layers, the embedding that is the output as well, and 9 norms; 130 and 131 cells of 4
/// layers x 2 x 128 F16 values, read once per query head, of which there are two to a KV head.
TEST(TraceInfo, CountsTheBytesOfARealEngine) {
  const json all = info({"--regions", kRegions});
  EXPECT_EQ(all["accesses"], 1'933'443);
  ASSERT_EQ(all["tokens"].size(), 2U);
  EXPECT_EQ(region(all, "W")["distinct_read_bytes"], 2'638'848);
  EXPECT_EQ(region(all, "KV")["distinct_read_bytes"], 268'288);
  const std::int64_t cell = 4 * 2 * 128 * 2;
  for (int i = 0; i < 2; ++i) {
    const json& token = all["tokens"][i];
    EXPECT_EQ(token["token"], 2 + i);
    EXPECT_EQ(region(token, "W")["distinct_read_bytes"], 2'638'848);
    EXPECT_EQ(region(token, "W")["write_bytes"], 0);
    EXPECT_EQ(region(token, "KV")["distinct_read_bytes"], (130 + i) * cell);
    EXPECT_EQ(region(token, "KV")["read_bytes"], 2 * (130 + i) * cell);
    EXPECT_EQ(region(token, "KV")["write_bytes"], cell);
  }
  EXPECT_EQ(region(all["tokens"][0], "KV")["distinct_lines"].get<int>() * 64, 266'240);
  std::int64_t accesses = 0;
  for (const json& token : all["tokens"]) {
    accesses += token["accesses"].get<std::int64_t>();
  }
  EXPECT_EQ(accesses, 1'933'443);
}

/// Fills of an independent LRU model in MB; 0.10 of write-backs with 1 MiB.
TEST(TraceInfo, CountsTheFillsOfARealEngine) {
  const json all =
      info({"--cache", "256KiB", "--cache", "1 MiB,ways=16", "--cache", "4MiB", "--cache", "16MiB"});
  const json& caches = all["tokens"][0]["caches"];
  ASSERT_EQ(caches.size(), 4U);
  const double expected[] = {3.29, 3.20, 3.18, 3.18};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(caches[i]["fill_bytes"].get<double>() / 1e6, expected[i], 0.005) << i;
    EXPECT_EQ(caches[i]["ways"], 16);
  }
  EXPECT_NEAR(caches[1]["write_back_bytes"].get<double>() / 1e6, 0.10, 0.005);
  EXPECT_EQ(caches[3]["fills"], all["tokens"][0]["distinct_lines"]);  // all of it fits
  EXPECT_EQ(
      all["caches"][0]["fills"].get<std::int64_t>(),
      caches[0]["fills"].get<std::int64_t>() + all["tokens"][1]["caches"][0]["fills"].get<std::int64_t>());
}

TEST(TraceInfo, ATraceNeedsNeitherRegionsNorTokens) {
  const Outcome outcome = kvsim({"trace", "info", "tests/data/attend_window.lackey.txt", "--format", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json all = json::parse(outcome.out);
  EXPECT_EQ(all["instructions"], 2205);
  EXPECT_EQ(all["loads"], 684);
  EXPECT_EQ(all["stores"], 326);
  EXPECT_EQ(all["modifies"], 6);
  EXPECT_TRUE(all["tokens"].empty());
  ASSERT_EQ(all["regions"].size(), 1U);
  EXPECT_EQ(all["regions"][0]["kind"], "other");
}

TEST(TraceInfo, TheTextHasTheSameNumbers) {
  const Outcome outcome = kvsim({"trace", "info", kTrace, "--regions", kRegions, "--cache", "1MiB"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* number : {"1933443", "2638848", "268288", "532480", "2.00x", "token 3", "3.199 MB"}) {
    EXPECT_THAT(outcome.out, HasSubstr(number));
  }
}

TEST(TraceInfo, WrongInputEndsWithTwo) {
  const TemporaryFolder folder;
  const std::string good = folder.file("good.txt", " L 10,8\n");
  const auto refused = [](const std::vector<std::string>& arguments, const std::string& message) {
    const Outcome outcome = kvsim(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << message;
    EXPECT_EQ(outcome.out, "") << message;
    EXPECT_THAT(outcome.err, HasSubstr(message));
  };
  refused({"trace", "inf"}, "unknown command 'trace inf'");
  refused({"trace", "info"}, "give one trace file (0 given)");
  refused({"trace", "info", good, "--format", "csv"}, "--format: 'csv' is unknown; text or json");
  refused({"trace", "info", folder.file("bad.txt", " L 10,8\n L 10\n")}, "bad.txt:2:6: ");
  refused({"trace", "info", good, "--regions", folder.file("r.csv", "kind,start,end\nW,2,1\n")},
          "r.csv:2:5: ");
  refused({"trace", "info", "/nowhere/t"}, "/nowhere/t: cannot be opened");
  for (const char* cache : {"1", "1 MB,ways=0", "1MiB,ways=16,", "1MiB,w=16", "1MiB,ways", "1000 B", "1GiB",
                            "0 B", "64 B", ",ways=1"}) {
    refused({"trace", "info", good, "--cache", cache}, "--cache: '");
  }
}

}  // namespace
}  // namespace kvsim::testing
