// SPDX-License-Identifier: Apache-2.0
// `kvsim replay` of a real engine's memory trace.
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

Outcome replay(const std::string& device, std::vector<std::string> options = {}) {
  std::vector<std::string> all = {"replay", kTrace, "--regions", kRegions, "--device", device};
  all.insert(all.end(), options.begin(), options.end());
  return kvsim(all);
}

json replay_json(const std::string& device, std::vector<std::string> options = {}) {
  options.insert(options.end(), {"--format", "json"});
  const Outcome outcome = replay(device, options);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
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

TEST(CaptureReplay, ARealEnginesTokenGoesThroughTheDevice) {
  const json all = replay_json("rk3588");
  EXPECT_EQ(all["accesses"], 1'933'443);
  EXPECT_EQ(all["issue"], "asap");
  ASSERT_EQ(all["tokens"].size(), 2U);
  const json& first = all["tokens"][0];
  EXPECT_EQ(first["token"], 2);
  // Cold: every line of weights and KV is fetched once. The two passes over a KV head's cells are near enough
  // for the caches.
  EXPECT_EQ(region(first, "W")["fill_bytes"], 2'638'848);
  EXPECT_EQ(region(first, "W")["read_bytes"], 4'736'450);
  EXPECT_EQ(region(first, "KV")["fill_bytes"], 266'240);
  EXPECT_EQ(region(first, "KV")["read_bytes"], 532'480);
  // The second finds part of it in the 3 MiB that the device has.
  EXPECT_LT(region(all["tokens"][1], "W")["fill_bytes"], 2'638'848);
  double sum = 0;
  for (const json& scope : {first, all["tokens"][1]}) {
    EXPECT_EQ(scope["dram"]["read_bytes"], scope["levels"][1]["fill_bytes"]);
    const double seconds = scope["time_ms"].get<double>() / 1e3;
    EXPECT_NEAR(scope["dram"]["read_gbs"].get<double>() * 1e9 * seconds, scope["dram"]["read_bytes"], 1);
    EXPECT_LT(scope["dram_gbs"].get<double>(), 16.9);  // what one core of it reads, measured
    double parts = 0;
    for (const auto& [owner, share] : scope["breakdown"].items()) {
      parts += share.get<double>();
    }
    EXPECT_NEAR(parts, 1, 1e-9);
    sum += scope["time_ms"].get<double>();
  }
  EXPECT_NEAR(all["time_ms"], sum, 1e-9);  // there is nothing between the tokens
}

/// An independent LRU model filled 3.29, 3.20, 3.18 and 3.18 MB, from virtual addresses and without a private
/// cache.
TEST(CaptureReplay, FillsAreThoseOfAnIndependentModel) {
  const TemporaryFolder folder;
  const std::string core = folder.file("core.yaml", "extends: cortex_a76\nl2_size: 0 B\n");
  const std::pair<const char*, double> caches[] = {
      {"256 KiB", 3.29}, {"1 MiB", 3.20}, {"4 MiB", 3.18}, {"16 MiB", 3.18}};
  for (const auto& [size, megabytes] : caches) {
    const std::string device = folder.file(
        "device.yaml", "extends: rk3588\nclusters:\n  - {core: core.yaml, count: 1}\nllc: {size: " +
                           std::string(size) + ", ways: 16}\n");
    const json first = replay_json(device)["tokens"][0];
    EXPECT_NEAR(first["levels"][1]["fill_bytes"].get<double>() / 1e6, megabytes, 0.02 * megabytes) << size;
  }
}

TEST(CaptureReplay, TheIssueRuleSlowsItDown) {
  const double asap = replay_json("rk3588")["tokens"][0]["time_ms"];
  const json rate = replay_json("rk3588", {"--issue", "rate=10GB/s"});
  EXPECT_EQ(rate["issue"], "rate=10GB/s");
  double bytes = 0;
  for (const json& each : rate["tokens"][0]["regions"]) {
    bytes += each["read_bytes"].get<double>() + each["write_bytes"].get<double>();
  }
  const double work = bytes / 10e9 * 1e3;
  const double time = rate["tokens"][0]["time_ms"];
  EXPECT_GT(time, work);
  EXPECT_LT(time, work + asap);
  EXPECT_EQ(replay_json("rk3588", {"--issue", "rate=10"})["tokens"], rate["tokens"]);
  // No instruction lines: each access is an instruction.
  const json ipc = replay_json("rk3588", {"--issue", "ipc=2@1GHz"});
  const double cycles = ipc["tokens"][0]["accesses"].get<double>() / 2;
  EXPECT_GT(ipc["tokens"][0]["time_ms"].get<double>(), cycles / 1e9 * 1e3);
  EXPECT_EQ(replay_json("rk3588", {"--issue", "ipc=2@1000"})["tokens"], ipc["tokens"]);
}

TEST(CaptureReplay, EqualRunsGiveEqualBytesAndTheTextHasThem) {
  const Outcome once = replay("rk3588");
  const Outcome twice = replay("rk3588");
  ASSERT_EQ(once.exit_code, 0) << once.err;
  EXPECT_EQ(once.out, twice.out);
  for (const char* text : {"on one core (cortex_a76) of rk3588, issued asap", "token 2\n", "token 3\n",
                           "whole trace\n", "2638848", "LLC 3.00 MiB", "row hits"}) {
    EXPECT_THAT(once.out, HasSubstr(text));
  }
}

TEST(CaptureReplay, InstructionLinesAreTimed) {
  const std::vector<std::string> base = {
      "replay", "tests/data/attend_window.lackey.txt", "--device", "rk3588", "--format", "json", "--issue"};
  std::vector<std::string> asap = base;
  asap.emplace_back("asap");
  std::vector<std::string> ipc = base;
  ipc.emplace_back("ipc=1@1000MHz");
  const json fast = json::parse(kvsim(asap).out);
  const json slow = json::parse(kvsim(ipc).out);
  EXPECT_EQ(slow["instructions"], 2205);
  EXPECT_GE(slow["time_ms"].get<double>(), 2204e-6);  // one may come before the first line
  EXPECT_GT(slow["time_ms"].get<double>(), fast["time_ms"].get<double>());
  EXPECT_TRUE(slow["tokens"].empty());
}

TEST(CaptureReplay, WrongInputEndsWithTwo) {
  const TemporaryFolder folder;
  const std::string good = folder.file("good.txt", " L 10,8\n");
  const auto refused = [](const std::vector<std::string>& arguments, const std::string& message) {
    std::vector<std::string> all = {"replay"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Outcome outcome = kvsim(all);
    EXPECT_EQ(outcome.exit_code, 2) << message;
    EXPECT_EQ(outcome.out, "") << message;
    EXPECT_THAT(outcome.err, HasSubstr(message));
  };
  refused({good}, "a capture names no device: give one with --device");
  refused({good, "--device", "rk3588", "--set", "device.llc.size=1MiB"},
          "--set: a capture has no configuration");
  refused({good, "--device", "rk3588", "--fidelity", "train"}, "--fidelity: a capture has no configuration");
  refused({good, "--device", "rk3588", "--format", "csv"}, "--format: 'csv' is unknown for a capture");
  refused({good, "--device", "rk"}, "rk");
  refused({folder.file("bad.txt", " L 10,8\n L zz,8\n"), "--device", "rk3588"}, "bad.txt:2:4: ");
  refused({folder.file("none.bin", "hello"), "--device", "rk3588"}, "is not a kvsim trace");
  refused({folder.file("none.bin", "hello"), "--device", "rk3588", "--issue", "asap"}, "none.bin:1:1: ");
  for (const char* issue :
       {"fast", "ipc=2", "ipc=0@1GHz", "ipc=x@1GHz", "ipc=-1@1GHz", "ipc=nan@1GHz", "ipc=1@1s", "ipc=1@",
        "ipc=1@1Hz", "rate=", "rate=0", "rate=1B/s", "rate=1 GiB", "rate=-1GB/s", "rate=1..2"}) {
    refused({good, "--device", "rk3588", "--issue", issue}, std::string("--issue: '") + issue + "' ");
  }
  const std::string recording = folder.path("r.kvt");
  const std::string scenario = folder.file("s.yaml",
                                           "device: rk3588\n"
                                           "model: {extends: tinyllama_1_1b, layers: 1, vocabulary: 512}\n"
                                           "engine: {weights: Q4_0}\n"
                                           "workload: {prompt: 2, generate: 1, threads: 1}\n");
  ASSERT_EQ(kvsim({"run", scenario, "--record", recording}).exit_code, 0);
  refused({recording, "--issue", "asap"}, "was recorded by kvsim");
}

}  // namespace
}  // namespace kvsim::testing
