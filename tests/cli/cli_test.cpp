// SPDX-License-Identifier: Apache-2.0
// The command line as a user meets it: exit codes, where output goes, and what is said about mistakes.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace kvsim::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A scenario that runs in well under a second.
constexpr const char* kSmall =
    "device: rk3588\n"
    "model: {extends: tinyllama_1_1b, layers: 1, vocabulary: 512}\n"
    "engine: {weights: Q4_0}\n"
    "workload: {prompt: 4, generate: 3, threads: 2}\n";

TEST(Cli, VersionAndHelpGoToStdout) {
  const Outcome version = kvsim({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, ::testing::StartsWith("kvsim "));
  const Outcome help = kvsim({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("kvsim run scenarios/rk3588_llama8b.yaml"));
  for (const char* command : {"run", "replay", "validate", "explain", "list"}) {
    const Outcome own = kvsim({command, "--help"});
    EXPECT_EQ(own.exit_code, 0) << command;
    EXPECT_THAT(own.out, HasSubstr("usage: kvsim " + std::string(command)));
    EXPECT_THAT(own.out, HasSubstr("Examples:"));
    EXPECT_EQ(own.err, "") << command;
  }
}

TEST(Cli, WithoutACommandItShowsTheHelpAndFails) {
  EXPECT_EQ(kvsim({}).exit_code, 2);
}

TEST(Cli, MistypedCommandIsGuessed) {
  const Outcome outcome = kvsim({"replya"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("did you mean 'replay'?"));
  EXPECT_EQ(outcome.out, "");
}

TEST(Cli, RunWritesTheReportToStdoutOnly) {
  const TemporaryFolder folder;
  const Outcome outcome = kvsim({"run", folder.file("small.yaml", kSmall)});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, ::testing::StartsWith("FITS"));
  for (const char* part :
       {"Time to first token", "Inter-token latency", "p95", "tokens/s", "Roofline", "refresh",
        "row misses and conflicts", "Memory budget", "Largest context", "Fidelity"}) {
    EXPECT_THAT(outcome.out, HasSubstr(part));
  }
}

TEST(Cli, ListPrintsOneIdALine) {
  EXPECT_THAT(kvsim({"list", "devices"}).out, HasSubstr("rk3588\n"));
  EXPECT_THAT(kvsim({"list", "llms"}).out, HasSubstr("llama3_8b\n"));
  EXPECT_THAT(kvsim({"list", "formats"}).out, HasSubstr("Q4_K_M\n"));
  EXPECT_THAT(kvsim({"list", "dram"}).out, HasSubstr("lpddr4x_4224_8gb\n"));
  EXPECT_EQ(kvsim({"list", "boards"}).exit_code, 2);
}

TEST(Cli, ValidateTellsEveryMistakeOfEveryFile) {
  const TemporaryFolder folder;
  const std::string good = folder.file("good.yaml", kSmall);
  const std::string bad =
      folder.file("bad.yaml", "device: rk3589\nmodel: llama3_8b\nworkload: {promt: 4, threads: 0}\n");
  EXPECT_EQ(kvsim({"validate", good}).exit_code, 0);
  const Outcome outcome = kvsim({"validate", good, bad});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.out, HasSubstr("good.yaml: ok"));
  EXPECT_THAT(outcome.err, HasSubstr("bad.yaml:1:9"));
  EXPECT_THAT(outcome.err, HasSubstr("did you mean 'rk3588'"));
  EXPECT_THAT(outcome.err, HasSubstr("did you mean 'prompt'"));
  EXPECT_THAT(outcome.err, HasSubstr("threads"));
}

TEST(Cli, ShippedScenariosAreValidAndNameTheirDeviceAloneOnALine) {
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(KVSIM_SOURCE_DIR) + "/scenarios")) {
    if (entry.path().extension() != ".yaml") {
      continue;
    }
    EXPECT_EQ(kvsim({"validate", entry.path()}).exit_code, 0) << entry.path();
    EXPECT_THAT(read_file(entry.path()), ::testing::ContainsRegex("(^|\n)device: [a-z0-9_]+\n"))
        << entry.path();
  }
}

TEST(Cli, ExplainKnowsKeysAndCatalogueEntries) {
  EXPECT_THAT(kvsim({"explain", "engine.ubatch"}).out, HasSubstr("512"));
  EXPECT_THAT(kvsim({"explain", "devices/rk3588"}).out, HasSubstr("rk3588-base.dtsi"));
  EXPECT_EQ(kvsim({"explain", "engine.ubach"}).exit_code, 2);
}

TEST(Cli, SameRunGivesTheSameBytes) {
  const TemporaryFolder folder;
  const std::string scenario = folder.file("small.yaml", kSmall);
  const Outcome first = kvsim({"run", scenario, "--format", "json"});
  const Outcome second = kvsim({"run", scenario, "--format", "json"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.out, second.out);
}

TEST(Cli, ReplayRepeatsARunToThePicosecond) {
  for (const char* fidelity : {"exact", "train", "auto"}) {
    const TemporaryFolder folder;
    const std::string scenario = folder.file("small.yaml", kSmall);
    const std::string trace = folder.path("small.kvt");
    const Outcome run =
        kvsim({"run", scenario, "--format", "csv", "--fidelity", fidelity, "--record", trace});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("time_ps"));
    const Outcome replay = kvsim({"replay", trace, "--format", "csv"});
    EXPECT_EQ(replay.exit_code, 0) << replay.err;
    EXPECT_EQ(replay.out, run.out) << fidelity;
  }
}

TEST(Cli, ReplayTakesAnotherDevice) {
  const TemporaryFolder folder;
  const std::string scenario = folder.file("small.yaml", kSmall);
  const std::string trace = folder.path("small.kvt");
  ASSERT_EQ(kvsim({"run", scenario, "--record", trace}).exit_code, 0);
  const Outcome own = kvsim({"replay", trace, "--format", "csv"});
  const Outcome other = kvsim({"replay", trace, "--format", "csv", "--device", "rk3588_lpddr5"});
  EXPECT_EQ(other.exit_code, 0) << other.err;
  EXPECT_NE(other.out, own.out);
  EXPECT_EQ(kvsim({"replay", trace, "--device", "rk3589"}).exit_code, 2);
}

TEST(Cli, OutOfMemoryAtLoadIsAResult) {
  const Outcome outcome = kvsim({"run", "scenarios/rk3588_4gb_llama8b.yaml"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, ::testing::StartsWith("DOES NOT FIT: out of memory at load"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("tokens/s")));
  const Outcome json = kvsim({"run", "scenarios/rk3588_4gb_llama8b.yaml", "--format", "json"});
  EXPECT_THAT(json.out, HasSubstr("\"fits\": false"));
  EXPECT_THAT(json.out, HasSubstr("\"limit\": \"memory\""));
}

TEST(Cli, MappedWeightsLargerThanMemoryRunOnlyByPaging) {
  const Outcome outcome = kvsim(
      {"run", "scenarios/rk3588_4gb_llama8b.yaml", "--set", "memory.weights=mapped", "--format", "json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\"fits\": false"));
  EXPECT_THAT(outcome.out, HasSubstr("\"limit\": \"page cache\""));
  EXPECT_THAT(outcome.out, HasSubstr("runs only by paging weights"));
  EXPECT_THAT(outcome.out, HasSubstr("\"latency\": null"));
}

// --- wrong input: exit code 2, a message that says what to do, nothing left behind
// --------------------------------

struct BadInput {
  const char* name;
  std::vector<std::string> arguments;
  const char* said;
};

class CliBadInput : public ::testing::TestWithParam<BadInput> {};

TEST_P(CliBadInput, IsRefused) {
  const Outcome outcome = kvsim(GetParam().arguments);
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr(GetParam().said));
}

const std::vector<std::string> kRun = {"run", "scenarios/rk3588_llama8b.yaml", "--set"};

std::vector<std::string> with(const std::string& change) {
  std::vector<std::string> arguments = kRun;
  arguments.push_back(change);
  return arguments;
}

INSTANTIATE_TEST_SUITE_P(
    All, CliBadInput,
    ::testing::Values(
        BadInput{"missing_file", {"run", "no/such.yaml"}, "no/such.yaml"},
        BadInput{"no_file", {"run"}, "scenario file"}, BadInput{"folder", {"run", "scenarios"}, "scenarios"},
        BadInput{"binary", {"run", KVSIM_BINARY}, "text"},
        BadInput{"unknown_option", {"run", "x.yaml", "--fast"}, "--fast"},
        BadInput{"unknown_format", {"run", "scenarios/rk3588_llama8b.yaml", "--format", "xml"}, "xml"},
        BadInput{"unknown_device", with("device=rk3599"), "did you mean"},
        BadInput{"unknown_fidelity", with("run.fidelity=quick"), "exact"},
        BadInput{"unknown_key", with("workload.promt=4"), "did you mean"},
        BadInput{"negative", with("workload.prompt=-5"), "workload.prompt"},
        BadInput{"overflow", with("workload.prompt=99999999999999999999"), "workload.prompt"},
        BadInput{"absurd", with("model.layers=9223372036854775807"), "model.layers"},
        BadInput{"octal", with("workload.prompt=010"), "010"},
        BadInput{"no_unit", with("device.llc.size=3"), "unit"},
        BadInput{"no_equals", with("workload.prompt"), "="},
        BadInput{"threads", with("workload.threads=9"), "threads"},
        BadInput{"missing_trace", {"replay", "no.kvt"}, "no.kvt"},
        BadInput{"not_a_trace", {"replay", "README.md"}, "README.md"}),
    [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(Cli, EmptyFileIsRefused) {
  const TemporaryFolder folder;
  const Outcome outcome = kvsim({"run", folder.file("empty.yaml", "")});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("empty"));
}

TEST(Cli, CutTraceIsRefused) {
  const TemporaryFolder folder;
  const std::string trace = folder.path("small.kvt");
  ASSERT_EQ(kvsim({"run", folder.file("small.yaml", kSmall), "--record", trace}).exit_code, 0);
  const std::string whole = read_file(trace);
  const Outcome outcome = kvsim({"replay", folder.file("cut.kvt", whole.substr(0, whole.size() / 2))});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("cut.kvt"));
  EXPECT_EQ(outcome.out, "");
}

TEST(Cli, UnwritableRecordIsRefusedBeforeTheRun) {
  const TemporaryFolder folder;
  const Outcome outcome =
      kvsim({"run", folder.file("small.yaml", kSmall), "--record", folder.path("none/small.kvt")});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("none/small.kvt"));
}

TEST(Cli, FullDiskIsToldAndLeavesNothingBehind) {
  const TemporaryFolder folder;
  const Outcome outcome = kvsim({"run", folder.file("small.yaml", kSmall), "--record", "/dev/full"});
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_EQ(folder.entries(), 1U);
}

TEST(Cli, InterruptLeavesNoFileBehind) {
  const TemporaryFolder folder;
  const Outcome outcome = kvsim(
      {"run", "scenarios/rk3588_llama8b.yaml", "--fidelity", "exact", "--record", folder.path("long.kvt")},
      1500);
  EXPECT_EQ(outcome.exit_code, 130);
  EXPECT_THAT(outcome.err, HasSubstr("interrupted"));
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(folder.entries(), 0U);
}

}  // namespace
}  // namespace kvsim::testing
