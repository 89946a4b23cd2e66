// SPDX-License-Identifier: Apache-2.0
// The command line as a user meets it: exit codes, where output goes, and what is said about mistakes.
#include <filesystem>
#include <sstream>
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

TEST(Cli, WithoutACommandItTellsTheUsageAndFails) {
  const Outcome outcome = kvsim({});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("usage: kvsim COMMAND"));
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

TEST(Cli, RunWithoutAKvCacheTellsWhatItComputes) {
  const TemporaryFolder folder;
  const std::string file = folder.file("small.yaml", kSmall);
  const Outcome without = kvsim({"run", file, "--set", "engine.kv_cache=recomputed"});
  EXPECT_EQ(without.exit_code, 0) << without.err;
  EXPECT_THAT(without.out, HasSubstr("22 tokens   (no KV cache; with one 7)"));  // 4 + 5 + 6 + 7
  EXPECT_THAT(without.out, HasSubstr("K and V of a layer"));
  EXPECT_THAT(kvsim({"run", file}).out, Not(HasSubstr("no KV cache")));
}

TEST(Cli, LocalLayersStandApartInTheBudget) {
  const TemporaryFolder folder;
  const Outcome outcome =
      kvsim({"run", folder.file("gemma.yaml",
                                "device: rk3588\n"
                                "model: {extends: gemma3_1b, layers: 6, vocabulary: 512}\n"
                                "engine: {weights: Q4_0}\n"
                                "workload: {prompt: 2000, cached: 1999, generate: 2}\n")});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("KV cache                             2.00 MiB\n"));
  EXPECT_THAT(outcome.out, HasSubstr("KV cache (window)                    5.00 MiB\n"));
  EXPECT_THAT(kvsim({"explain", "llms/gemma3_1b"}).out, HasSubstr("window: 512"));
  EXPECT_THAT(kvsim({"explain", "model.local.window"}).out, HasSubstr("attention.sliding_window"));
}

TEST(Cli, ListPrintsOneIdALine) {
  EXPECT_THAT(kvsim({"list", "devices"}).out, HasSubstr("rk3588\n"));
  EXPECT_THAT(kvsim({"list", "llms"}).out, HasSubstr("llama3_8b\n"));
  EXPECT_THAT(kvsim({"list", "formats"}).out, HasSubstr("Q4_K_M\n"));
  EXPECT_THAT(kvsim({"list", "dram"}).out, HasSubstr("lpddr4x_4224_8gb\n"));
  EXPECT_EQ(kvsim({"list", "boards"}).exit_code, 2);
  for (const char* kind : {"devices", "dram", "llms", "formats", "cores", "tensor_types"}) {
    EXPECT_THAT(kvsim({"list", "--help"}).out, HasSubstr(kind));
    EXPECT_THAT(kvsim({"list"}).err, HasSubstr(kind));
    EXPECT_NE(kvsim({"list", kind}).out, "") << kind;
  }
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

TEST(Cli, ExplainNamesKeysAsSetTakesThem) {
  const TemporaryFolder folder;
  const std::string scenario = folder.file("small.yaml", kSmall);
  std::istringstream keys(kvsim({"explain", "device.clusters"}).out);
  int tried = 0;
  for (std::string line; std::getline(keys, line);) {
    const std::string key = line.substr(0, line.find(' ', 2)).erase(0, std::min<std::size_t>(2, line.size()));
    if (key.starts_with("device.clusters.") && key.ends_with(".count")) {
      const Outcome outcome = kvsim({"run", scenario, "--set", key + "=3"});
      EXPECT_EQ(outcome.exit_code, 0) << key << outcome.err;
      ++tried;
    }
  }
  EXPECT_EQ(tried, 1);
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
    EXPECT_THAT(run.out, ::testing::StartsWith("token,depth,time_ps,ci95_half_width_ps,dram_read_bytes,"));
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

TEST(Cli, ReplayRefusesToChangeWhatTheRecordingFixes) {
  const TemporaryFolder folder;
  const std::string trace = folder.path("small.kvt");
  ASSERT_EQ(kvsim({"run", folder.file("small.yaml", kSmall), "--record", trace}).exit_code, 0);
  const auto replay = [&trace](std::vector<std::string> more) {
    more.insert(more.begin(), {"replay", trace, "--format", "csv"});
    return kvsim(more);
  };
  for (const char* key : {"workload.prompt", "engine.kv_tile", "model.layers", "memory.weights", "name"}) {
    const Outcome outcome = replay({"--set", std::string(key) + "=1"});
    EXPECT_EQ(outcome.exit_code, 2) << key;
    EXPECT_THAT(outcome.err,
                HasSubstr(std::string(key) + " is fixed by the recording; record again with it"));
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_THAT(replay({"--set", "engine.barier=1 us"}).err, HasSubstr("did you mean 'engine.barrier'?"));
  const Outcome twice = replay({"--device", "rk3588_lpddr5", "--set", "device=rk3588"});
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_THAT(twice.err, HasSubstr("--device names the device already"));
  const std::string plain = replay({}).out;
  for (const char* change : {"engine.barrier=9 us", "device.clusters.0.core.clock=1 GHz"}) {
    const Outcome outcome = replay({"--set", change});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out, plain) << change << " acts";
  }
}

TEST(Cli, MoreTokensThanTheModelsContextAreNoted) {
  const TemporaryFolder folder;
  const std::string scenario = folder.file("small.yaml", kSmall);
  const std::string note = "runs 7 tokens, past the model's context of 6";
  const Outcome text = kvsim({"run", scenario, "--set", "model.context=6"});
  EXPECT_THAT(text.out, ::testing::StartsWith("FITS"));
  EXPECT_THAT(text.out, HasSubstr("Note: " + note));
  EXPECT_THAT(kvsim({"run", scenario, "--set", "model.context=6", "--format", "json"}).out,
              HasSubstr("\"notes\": [\n      \"" + note));
  EXPECT_THAT(kvsim({"run", scenario, "--set", "model.context=7", "--format", "json"}).out,
              HasSubstr("\"notes\": []"));
}

TEST(Cli, AnIntervalWiderThanAskedForIsTold) {
  const TemporaryFolder folder;
  const std::string scenario = folder.file("small.yaml", kSmall);
  EXPECT_THAT(kvsim({"run", scenario, "--set", "run.relative_error=0.0001"}).out,
              HasSubstr("(target of 0.01 % not reached)"));
  EXPECT_THAT(kvsim({"run", scenario, "--set", "run.relative_error=0.5"}).out, Not(HasSubstr("target of")));
}

TEST(Cli, CsvCountsWholeLinesOfDram) {
  const TemporaryFolder folder;
  const Outcome outcome = kvsim({"run", folder.file("small.yaml", kSmall), "--format", "csv"});
  std::istringstream lines(outcome.out);
  std::string line;
  std::getline(lines, line);
  int rows = 0;
  for (; std::getline(lines, line); ++rows) {
    const std::size_t written = line.rfind(',');
    const std::size_t read = line.rfind(',', written - 1);
    EXPECT_EQ(std::stoll(line.substr(written + 1)) % 64, 0) << line;
    EXPECT_EQ(std::stoll(line.substr(read + 1)) % 64, 0) << line;
  }
  EXPECT_EQ(rows, 3);
}

TEST(Cli, WithoutDecodedTokensThereIsNothingToSayOfThem) {
  const TemporaryFolder folder;
  const Outcome outcome =
      kvsim({"run", folder.file("small.yaml", kSmall), "--set", "workload.generate=0", "--format", "json"});
  for (const char* key : {"read_gbs", "write_gbs", "row_hit", "row_miss", "row_conflict", "roofline"}) {
    EXPECT_THAT(outcome.out, HasSubstr("\"" + std::string(key) + "\": null"));
  }
}

TEST(Cli, OutOfMemoryItemisesTheWholeBudget) {
  const TemporaryFolder folder;
  const Outcome text = kvsim(
      {"run", folder.file("small.yaml", kSmall), "--set", "device.os={firmware: 0 B, reserve: 8191 MiB}"});
  EXPECT_THAT(text.out, ::testing::StartsWith("DOES NOT FIT: out of memory at load")) << text.err;
  EXPECT_THAT(text.out, ::testing::ContainsRegex("  compute buffer .*   <- breaks the limit\n"));
  for (const char* item : {"weights  ", "KV cache  ", "output buffer  ", "runtime heap  ", "needed  "}) {
    EXPECT_THAT(text.out, HasSubstr("\n  " + std::string(item)));
  }
}

TEST(Cli, OutOfMemoryAtLoadIsAResult) {
  const Outcome outcome = kvsim({"run", "scenarios/rk3588_4gb_llama8b.yaml"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, ::testing::StartsWith("DOES NOT FIT: out of memory at load"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("tokens/s")));
  const Outcome json = kvsim({"run", "scenarios/rk3588_4gb_llama8b.yaml", "--format", "json"});
  EXPECT_THAT(json.out, HasSubstr("\"fits\": false"));
  EXPECT_THAT(json.out, HasSubstr("\"limit\": \"memory\""));
  EXPECT_THAT(json.out, HasSubstr("\"breaks_limit\": true"));
  EXPECT_THAT(json.out, HasSubstr("\"name\": \"runtime heap\""));
  EXPECT_THAT(json.out, HasSubstr("\"peak_bytes\": 0"));
  EXPECT_THAT(json.out, HasSubstr("\"row_hit\": null"));
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
        BadInput{"binary", {"run", "/bin/true"}, "text"},
        BadInput{"empty_name", {"run", ""}, "the name of the scenario file is empty"},
        BadInput{"unknown_option", {"run", "x.yaml", "--fast"}, "--fast"},
        BadInput{"misspelt_option", {"run", "x.yaml", "--fromat", "json"}, "did you mean '--format'?"},
        BadInput{"cut_option", {"run", "x.yaml", "--fid", "exact"}, "did you mean '--fidelity'?"},
        BadInput{"bad_option_value",
                 {"run", "scenarios/rk3588_llama8b.yaml", "--fidelity", "quick"},
                 "kvsim: --fidelity quick: "},
        BadInput{
            "empty_option", {"run", "scenarios/rk3588_llama8b.yaml", "--record", ""}, "--record: is empty"},
        BadInput{"record_to_stdout",
                 {"run", "scenarios/rk3588_llama8b.yaml", "--record", "-"},
                 "goes into a file, not to standard output"},
        BadInput{"long_record",
                 {"run", "scenarios/rk3588_llama8b.yaml", "--record", std::string(300, 'x')},
                 "the name is too long"},
        BadInput{"version_and_more", {"--version", "run"}, "--version: stands alone"},
        BadInput{"schema_and_more", {"explain", "--json-schema", "run"}, "--json-schema: takes no key"},
        BadInput{"empty_key", {"explain", ""}, "the key is empty"},
        BadInput{"entry_as_key", {"explain", "rk3588"}, "did you mean 'devices/rk3588'?"},
        BadInput{"entry_made_wrong", with("device.dram.banks=1"), "(after --set device.dram.banks=1)"},
        BadInput{"twice_in_a_map", with("run={seed: 1, seed: 2}"), "run.seed: the key is given twice\n"},
        BadInput{"unknown_format", {"run", "scenarios/rk3588_llama8b.yaml", "--format", "xml"}, "xml"},
        BadInput{"unknown_device", with("device=rk3599"), "did you mean"},
        BadInput{"unknown_fidelity", with("run.fidelity=quick"), "exact"},
        BadInput{"unknown_key", with("workload.promt=4"), "did you mean"},
        BadInput{"negative", with("workload.prompt=-5"), "workload.prompt"},
        BadInput{"overflow", with("workload.prompt=99999999999999999999"), "allowed is 1 to 16777216"},
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

TEST(Cli, RecordingDoesNotReplaceAnInput) {
  const TemporaryFolder folder;
  const std::string base = folder.file("base.yaml", kSmall);
  const std::string scenario = folder.file("small.yaml", "extends: ./base.yaml\n");
  std::filesystem::create_symlink(base, folder.path("link"));
  std::filesystem::create_hard_link(scenario, folder.path("hard"));
  for (const char* target : {"base.yaml", "small.yaml", "link", "hard"}) {
    const Outcome outcome = kvsim({"run", scenario, "--record", folder.path(target)});
    EXPECT_EQ(outcome.exit_code, 2) << target;
    EXPECT_THAT(outcome.err, HasSubstr("an input of this run"));
  }
  EXPECT_EQ(read_file(base), kSmall);
  EXPECT_EQ(folder.entries(), 4U);
}

TEST(Cli, SignalsToEndLeaveNoFileBehind) {
  struct Signal {
    const char* name;
    int exit_code;
  };
  for (const Signal signal : {Signal{"INT", 130}, Signal{"TERM", 143}, Signal{"HUP", 129}}) {
    const TemporaryFolder folder;
    const std::string trace = folder.path("long.kvt");
    const Outcome outcome =
        shell("$K run scenarios/rk3588_llama8b.yaml --fidelity exact --record '" + trace +
              "' & p=$!\n"
              "while kill -0 $p && ! ls '" +
              trace + "'.*; do sleep 0.05; done >&2\nkill -" + signal.name + " $p; wait $p");
    EXPECT_EQ(outcome.exit_code, signal.exit_code) << signal.name;
    EXPECT_THAT(outcome.err, HasSubstr("interrupted"));
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(folder.entries(), 0U) << signal.name;
  }
}

TEST(Cli, HangUpDoesNotEndWhatNohupStarted) {
  const TemporaryFolder folder;
  const std::string scenario = folder.file("small.yaml", kSmall);
  const Outcome outcome =
      shell("trap '' HUP\n$K run '" + scenario + "' & p=$!\nsleep 0.1\nkill -HUP $p; wait $p");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST(Cli, ALimitOnFileSizesIsAWriteError) {
  const TemporaryFolder folder;
  const std::string scenario = folder.file("small.yaml", kSmall);
  const Outcome outcome = shell("ulimit -f 8\n$K run '" + scenario +
                                "' --set workload.generate=2000 --record '" + folder.path("t.kvt") + "'");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("File too large"));
  EXPECT_EQ(folder.entries(), 1U);
}

TEST(Cli, AClosedPipeIsAWriteError) {
  const TemporaryFolder folder;
  const std::string closed = folder.path("closed");
  const Outcome outcome =
      shell("{ while [ ! -e '" + closed + "' ]; do sleep 0.02; done\n" +
            "$K list llms; echo \"code $?\" >&2; } | { exec <&-; touch '" + closed + "'; }");
  EXPECT_THAT(outcome.err, HasSubstr("cannot write the result to standard output"));
  EXPECT_THAT(outcome.err, HasSubstr("code 2"));
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
