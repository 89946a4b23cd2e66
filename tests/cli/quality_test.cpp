// SPDX-License-Identifier: Apache-2.0
// `kvsim quality` on the trained model.
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/process.h"

namespace kvsim::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kTiny = "tests/data/tiny/";

/// The first two documents, of about 256 tokens each.
std::string short_tokens(const TemporaryFolder& folder) {
  std::ifstream in(std::string(KVSIM_SOURCE_DIR) + "/" + kTiny + "sequences.jsonl");
  std::string first, second;
  std::getline(in, first);
  std::getline(in, second);
  return folder.file("tokens.jsonl", first + "\n" + second + "\n");
}

Outcome quality(const std::string& tokens, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"quality", "--model", kTiny + "tiny-f16.gguf", "--tokens", tokens};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return kvsim(arguments);
}

TEST(QualityCli, GivesTheFiguresOfEachSpecification) {
  const TemporaryFolder folder;
  const std::string tokens = short_tokens(folder);
  const Outcome outcome =
      quality(tokens, {"--format", "json", "--kv", "f16", "k=q8_0,v=q4_0", "--kv", "f16+window=64+sinks=4"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report["schema"], "kvsim.quality/1");
  EXPECT_EQ(report["sequences"], 2);
  EXPECT_EQ(report["inputs"].size(), 2U);
  ASSERT_EQ(report["kv"].size(), 3U);
  EXPECT_EQ(report["kv"][0]["spec"], "f16");
  EXPECT_EQ(report["kv"][0]["bytes_per_token"], 2048);
  EXPECT_EQ(report["kv"][1]["bytes_per_token"], 4 * 2 * (68 + 36));
  EXPECT_EQ(report["kv"][2]["peak_bytes"], 68 * 2048);
  EXPECT_NEAR(report["kv"][0]["nll_sum"].get<double>(), 303.660 + 343.909, 0.1);
  EXPECT_LT(report["kv"][2]["recall"].get<double>(), report["kv"][0]["recall"].get<double>());
  for (const json& kv : report["kv"]) {
    EXPECT_TRUE(kv["attention_error"].contains("mean") && kv["attention_error"].contains("p95") &&
                kv["attention_error"].contains("cosine"));
    EXPECT_EQ(kv["attention_error"]["by_layer"].size(), 4U);
    int asked = 0;
    for (const json& bin : kv["recall_by_distance"]) {
      asked += bin["asked"].get<int>();
    }
    EXPECT_EQ(kv["asked"], asked);
  }
  EXPECT_EQ(quality(tokens, {"--format", "json", "--threads", "1", "--kv", "f16", "k=q8_0,v=q4_0",
                             "f16+window=64+sinks=4"})
                .out,
            outcome.out)
      << "neither threads nor the way of asking matter";
  EXPECT_THAT(quality(tokens, {"--kv", "q8_0"}).out,
              AllOf(HasSubstr("perplexity"), HasSubstr("q8_0"), HasSubstr("reference")));
  EXPECT_THAT(quality(tokens, {"--kv", "q8_0", "--format", "csv"}).out, HasSubstr("\"q8_0\",1088,"));
}

TEST(QualityCli, TakesModelAndSpecificationFromAScenario) {
  const TemporaryFolder folder;
  const std::string tokens = short_tokens(folder);
  const std::string model = std::string(KVSIM_SOURCE_DIR) + "/" + kTiny + "tiny-q8_0.gguf";
  const std::string scenario =
      folder.file("tiny.yaml", "device: rk3588\nmodel: " + model + "\nengine: {kv: q4_0+window=64}\n");
  const Outcome outcome = kvsim({"quality", scenario, "--tokens", tokens, "--format", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out)["kv"][0]["spec"], "q4_0+window=64");
  const Outcome geometry =
      kvsim({"quality", "scenarios/rk3588_llama8b.yaml", "--tokens", tokens, "--kv", "f16"});
  EXPECT_EQ(geometry.exit_code, 2);
  EXPECT_THAT(geometry.err, HasSubstr("geometry only"));
}

TEST(QualityCli, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  const std::string tokens = short_tokens(folder);
  const auto refused = [](const Outcome& outcome, const char* says) {
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(says));
  };
  refused(kvsim({"quality"}), "give one scenario, or --model");
  refused(quality(tokens, {}), "--kv: give one or more");
  refused(quality(tokens, {"--kv", "q9"}), "q8_0");
  refused(quality(tokens, {"--kv", "Q4_K_M"}), "weights");
  refused(quality(tokens, {"--kv", "int8:g48"}), "48");
  refused(quality(tokens, {"--kv", "f16+h2o=8+window=8"}), "leaves none");
  refused(quality(tokens, {"--kv", "f16", "--threads", "0"}), "from 1 to 1024");
  refused(quality(tokens, {"--kv", "f16", "--format", "xml"}), "text, json or csv");
  refused(quality(folder.file("empty.jsonl", ""), {"--kv", "f16"}), "no sequence");
  refused(quality(folder.file("bad.jsonl", "{\"tokens\": [1, 999]}\n"), {"--kv", "f16"}),
          "vocabulary of 256");
  refused(quality(folder.file("far.jsonl", "{\"tokens\": [1, 2, 3, 4], \"answers\": [[2, 3]]}\n"),
                  {"--kv", "f16"}),
          "cannot be 3 tokens behind");
  refused(quality(folder.path("none.jsonl"), {"--kv", "f16"}), "cannot read");
  refused(kvsim({"quality", "--model", tokens, "--tokens", tokens, "--kv", "f16"}), "GGUF");
}

}  // namespace
}  // namespace kvsim::testing
