// SPDX-License-Identifier: Apache-2.0
// `kvsim compare`.
#include <filesystem>
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

/// One layer and few tokens: a second's work.
constexpr const char* kSmall =
    "device: rk3588\nmodel: {extends: tinyllama_1_1b, layers: 1, vocabulary: 1024}\n"
    "workload: {prompt: 16, generate: 4, threads: 4}\n";

Outcome compare(const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {"compare"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return kvsim(all);
}

TEST(CompareCli, RunsEveryCombination) {
  const TemporaryFolder folder;
  const std::string base = folder.file("base.yaml", kSmall);
  const Outcome outcome = compare({base, "--vary", "engine.weights=F16,Q4_0", "--vary",
                                   "engine.kv=f16;k=q8_0,v=q4_0", "--format", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  ASSERT_EQ(result["variants"].size(), 4U);
  EXPECT_EQ(result["variants"][0]["name"], "weights=F16, kv=f16");
  EXPECT_EQ(result["variants"][3]["name"], "weights=Q4_0, kv=k=q8_0,v=q4_0");
  for (const json& variant : result["variants"]) {
    EXPECT_TRUE(variant["verdict"]["fits"]);
    EXPECT_TRUE(variant["storage"].is_null());
    EXPECT_FALSE(variant["throughput"]["decode"].empty());
  }
  EXPECT_GT(result["variants"][0]["peak_bytes"], result["variants"][2]["peak_bytes"]);
  EXPECT_THAT(result["answer"]["winner"].get<std::string>(), HasSubstr("Q4_0"));
}

/// A variant is what `run` makes of it, and the table does not depend on how many run at once.
TEST(CompareCli, AgreesWithRunAndWithItself) {
  const TemporaryFolder folder;
  const std::string base = folder.file("base.yaml", kSmall);
  const std::vector<std::string> asked = {base, "--vary", "workload.threads=1,2,4", "--format", "json"};
  std::vector<std::string> serial = asked, parallel = asked;
  serial.insert(serial.end(), {"-j", "1"});
  parallel.insert(parallel.end(), {"-j", "3"});
  const Outcome one = compare(serial);
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(one.out, compare(parallel).out);
  const json run = json::parse(kvsim({"run", base, "--set", "workload.threads=2", "--format", "json"}).out);
  const json variant = json::parse(one.out)["variants"][1];
  EXPECT_EQ(variant["throughput"], run["throughput"]);
  EXPECT_EQ(variant["ttft_ms"], run["latency"]["ttft_ms"]);
  double sum = 0;
  for (const json& part : variant["parts"]) {
    sum += part["ms_per_token"].get<double>();
  }
  EXPECT_NEAR(sum, 1000 / run["throughput"]["decode_mean_tokens_per_s"].get<double>(), 1e-6 * sum);
}

TEST(CompareCli, TakesAFileOfVariantsAndTellsWhoDoesNotFit) {
  const TemporaryFolder folder;
  static_cast<void>(folder.file("base.yaml", kSmall));
  const std::string what_if =
      folder.file("whatif.yaml",
                  "base: base.yaml\nvariants:\n"
                  "  - {name: as it is}\n"
                  "  - {name: no room, set: [device.os.reserve=7 GiB, memory.weights=anonymous, "
                  "engine.runtime_heap=4 GiB]}\n");
  for (const char* format : {"text", "md"}) {
    const Outcome outcome = compare({what_if, "--format", format});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("DOES NOT FIT"), HasSubstr("Only as it is fits"))) << format;
  }
  EXPECT_THAT(kvsim({"validate", what_if}).out, HasSubstr("2 variants"));
}

TEST(CompareCli, TheWhatIfsOfTheProjectResolve) {
  std::vector<std::string> arguments = {"validate"};
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(KVSIM_SOURCE_DIR) + "/scenarios/whatif")) {
    if (file.path().extension() == ".yaml") {
      arguments.push_back(file.path().string());
    }
  }
  EXPECT_GE(arguments.size(), 7U);
  const Outcome outcome = kvsim(arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST(CompareCli, AddsTheAccuracyOfAQualityRun) {
  const TemporaryFolder folder;
  const std::string base = folder.file("base.yaml", kSmall);
  const std::string quality = folder.file(
      "quality.json",
      R"({"schema": "kvsim.quality/1", "kv": [{"spec": "q8_0", "perplexity_change_percent": 0.25, "recall": null}]})");
  const Outcome outcome =
      compare({base, "--vary", "engine.kv=f16,q8_0", "--quality", quality, "--format", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json variants = json::parse(outcome.out)["variants"];
  EXPECT_TRUE(variants[0]["quality"].is_null());
  EXPECT_EQ(variants[1]["quality"]["perplexity_change_percent"], 0.25);
}

TEST(CompareCli, RefusesWhatCannotBeCompared) {
  const TemporaryFolder folder;
  const std::string base = folder.file("base.yaml", kSmall);
  const std::string odd = folder.file("odd.json", "{}");
  const std::string no_base =
      folder.file("nobase.yaml", "base: missing.yaml\nvariants: [{name: a}, {name: b}]\n");
  const std::string twice = folder.file("twice.yaml", "base: base.yaml\nvariants: [{name: a}, {name: a}]\n");
  const std::string alone = folder.file("alone.yaml", "base: base.yaml\nvariants: [{name: a}]\n");
  struct Case {
    std::vector<std::string> arguments;
    const char* says;
  };
  for (const auto& [arguments, says] : std::vector<Case>{
           {{}, "give scenario files"},
           {{base}, "nothing to be compared with"},
           {{base, base}, "differ in nothing"},
           {{base, "--vary", "workload.threads=4"}, "two or more"},
           {{base, "--vary", "workload.threads=4,4"}, "differ in nothing"},
           {{base, "--vary", "workload.treads=1,2"}, "treads"},
           {{base, "--vary", "workload.threads"}, "PATH=VALUE"},
           {{base, "--vary", "workload.threads=1,,2"}, "empty"},
           {{base, "--vary", "engine.kv=f16,q9"}, "q9"},
           {{base, "--vary", "engine.kv=f16,q8_0", "--vary", "engine.kv=q4_0,f32"}, "varied twice"},
           {{base, "--vary", "run.fidelity=train,auto", "--fidelity", "exact"}, "leave one out"},
           {{base, "--vary", "engine.kv=f16,q8_0", "--set", "engine.kv=q4_0"}, "leave one out"},
           {{base, "--vary", "workload.threads=1,2", "-j", "0"}, "from 1 to"},
           {{base, "--vary", "workload.threads=1,2", "--quality", odd}, "kvsim quality"},
           {{base, "--vary", "workload.threads=1,2", "--format", "xml"}, "xml"},
           {{"missing.yaml", base}, "missing.yaml"},
           {{no_base}, "missing.yaml"},
           {{twice}, "stands there twice"},
           {{alone}, "two or more"},
           {{twice, "--vary", "workload.threads=1,2"}, "names its variants"}}) {
    const Outcome outcome = compare(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << says;
    EXPECT_THAT(outcome.err, HasSubstr(says));
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(CompareCli, CtrlCEndsAllVariants) {
  const Outcome outcome = kvsim(
      {"compare", "scenarios/rk3588_llama8b.yaml", "--vary", "workload.threads=2,3,4", "--fidelity", "exact"},
      1500);
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

}  // namespace
}  // namespace kvsim::testing
