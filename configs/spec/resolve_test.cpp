// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/resolve.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "configs/spec/catalogue.h"
#include "configs/spec/expand.h"
#include "configs/spec/scenario_test_support.h"
#include "configs/spec/schemas.h"

namespace kvsim::config {
namespace {

using namespace kvsim::literals;
using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

const std::filesystem::path kScenarios = KVSIM_SCENARIOS;

TEST(Scenarios, ShippedOnesLoad) {
  const RunSpec main = load_scenario(kScenarios / "rk3588_llama8b.yaml").spec;
  EXPECT_EQ(main.name, "rk3588_llama8b");
  EXPECT_EQ(main.device, load_device("rk3588"));
  EXPECT_EQ(main.model, load_llm("llama3_8b"));
  EXPECT_EQ(main.engine.weights, load_weight_format("Q4_K_M"));
  EXPECT_EQ(main.workload, (WorkloadSpec{.prompt = 512, .generate = 256, .threads = 4}));
  EXPECT_EQ(main.memory.weights, WeightBacking::mapped);
  const RunSpec small = load_scenario(kScenarios / "rk3588_4gb_llama8b.yaml").spec;
  EXPECT_EQ(small.device.name, "rk3588_4gb");
  EXPECT_EQ(small.memory.weights, WeightBacking::anonymous);
  EXPECT_EQ(load_scenario(kScenarios / "rk3588_4gb_tinyllama.yaml").spec.model.name, "tinyllama_1_1b");
}

TEST(Scenarios, NameTheirDeviceAloneOnItsLine) {
  for (const auto& file : std::filesystem::directory_iterator(kScenarios)) {
    if (file.is_directory()) {
      continue;
    }
    const std::string text = read_source(file.path()).text;
    const std::size_t at = text.find("\ndevice: ");
    ASSERT_NE(at, std::string::npos) << file.path();
    const std::size_t from = at + std::string("\ndevice: ").size();
    EXPECT_THAT(catalogue_ids("devices"), Contains(text.substr(from, text.find('\n', from) - from)))
        << file.path();
  }
}

TEST(Scenarios, OfLessonsLoad) {
  int loaded = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(kScenarios / "lessons")) {
    if (file.path().extension() == ".yaml") {
      EXPECT_NO_THROW(static_cast<void>(load_scenario(file.path()))) << file.path();
      ++loaded;
    }
  }
  EXPECT_GE(loaded, 6);
}

TEST(Devices, HaveTheMemoryAndPeakOfTheBoards) {
  EXPECT_EQ(dram_capacity(load_device("rk3588")), 8_GiB);
  EXPECT_EQ(dram_capacity(load_device("rk3588_4gb")), 4_GiB);
  EXPECT_EQ(dram_capacity(load_device("rk3588_16gb")), 16_GiB);
  EXPECT_EQ(dram_capacity(load_device("rk3588_lpddr5")), 16_GiB);
  EXPECT_DOUBLE_EQ(peak_bandwidth(load_device("rk3588")).count(), 33.792e9);
  EXPECT_DOUBLE_EQ(peak_bandwidth(load_device("rk3588_lpddr5")).count(), 38.4e9);
}

TEST(Devices, DifferOnlyInWhatTheirFilesSay) {
  const DeviceSpec base = load_device("rk3588");
  DeviceSpec small = load_device("rk3588_4gb");
  EXPECT_EQ(small.controller.ranks, 1);
  EXPECT_TRUE(small.controller.mapping.rank.empty());
  small.name = base.name;
  small.description = base.description;
  small.controller.ranks = base.controller.ranks;
  small.controller.mapping = base.controller.mapping;
  small.os.firmware = base.os.firmware;
  EXPECT_EQ(small, base);
}

TEST(DramParts, KeepJedecTimesAtTheirClock) {
  const DramPartSpec part = load_dram_part("lpddr4x_4224_8gb");
  EXPECT_EQ(command_clock(part), 2112_MHz);
  EXPECT_EQ(row_bytes(part), 2_KiB);
  EXPECT_EQ(burst_bytes(part), 32_B);
  EXPECT_EQ(duration(part.timing.tRCD, command_clock(part)), 18_ns);
  EXPECT_EQ(duration(part.timing.tRFCpb, command_clock(part)), 140_ns);
  const DramPartSpec doubled = load_dram_part("lpddr4-3200");
  EXPECT_EQ(burst_bytes(doubled), 64_B);
  EXPECT_EQ(duration(doubled.timing.tRFCab, command_clock(doubled)), 280_ns);
  EXPECT_EQ(doubled.timing.read_latency.clocks, 34);
  EXPECT_EQ(command_clock(load_dram_part("lpddr5_4800_16gb")), 600_MHz);
}

TEST_F(ScenarioTest, TwoLinesAreEnough) {
  const RunSpec run = load(kPlain);
  EXPECT_EQ(run.name, "main");
  EXPECT_EQ(run.engine.weights.name, "Q4_K_M");
  EXPECT_EQ(name(run.engine.kv), "f16");
  EXPECT_EQ(run.engine.ubatch, 512);
  EXPECT_EQ(run.engine.barrier, 2_us);
  EXPECT_EQ(run.run.fidelity, Fidelity::automatic);
  EXPECT_EQ(run.workload, WorkloadSpec());
}

TEST_F(ScenarioTest, RemembersItsInputs) {
  write("sub/base.yaml", "device: rk3588_4gb\n");
  const Scenario scenario = load_scenario(write("main.yaml", "extends: sub/base.yaml\nmodel: llama3_8b\n"));
  EXPECT_EQ(scenario.spec.device.name, "rk3588_4gb");
  std::vector<std::string> paths;
  for (const InputFile& input : scenario.inputs) {
    paths.push_back(input.path);
  }
  EXPECT_THAT(paths,
              testing::IsSupersetOf({(folder_ / "main.yaml").string(), (folder_ / "sub/base.yaml").string(),
                                     std::string("configs/catalogue/devices/rk3588_4gb.yaml"),
                                     std::string("configs/catalogue/devices/rk3588.yaml"),
                                     std::string("configs/catalogue/dram/lpddr4x_4224_8gb.yaml"),
                                     std::string("configs/catalogue/tensor_types/Q6_K.yaml")}));
  EXPECT_EQ(paths.front(), (folder_ / "main.yaml").string());
  EXPECT_EQ(std::set<std::string>(paths.begin(), paths.end()).size(), paths.size()) << "each file once";
  EXPECT_EQ(scenario.inputs.front().hash, content_hash("extends: sub/base.yaml\nmodel: llama3_8b\n"));
}

TEST(ContentHash, IsFnv1a64) {
  // Test vectors of the FNV reference implementation.
  EXPECT_EQ(content_hash(""), "cbf29ce484222325");
  EXPECT_EQ(content_hash("a"), "af63dc4c8601ec8c");
  EXPECT_EQ(content_hash("foobar"), "85944171f73967e8");
}

TEST_F(ScenarioTest, OverridesReachEverything) {
  const RunSpec run = load(
      kPlain, {"model.layers=2", "model.vocabulary=4096", "device.clusters.0.count=2",
               "device.clusters.1.core.clock=1.5 GHz", "device.dram.timing.tRCD=20 ns", "engine.weights=Q8_0",
               "workload.prompt=16", "run.fidelity=exact", "device.controller.refresh=none"});
  EXPECT_EQ(run.model.layers, 2);
  EXPECT_EQ(run.model.width, 4096);
  EXPECT_EQ(run.model.name, "llama3_8b (changed)");
  EXPECT_EQ(run.device.clusters[0].count, 2);
  EXPECT_EQ(run.device.clusters[0].core.name, "cortex_a76");
  EXPECT_EQ(run.device.clusters[1].core.clock, 1500_MHz);
  EXPECT_EQ(run.device.clusters[1].core.name, "cortex_a55 (changed)");
  EXPECT_EQ(run.device.dram.timing.tRCD.time, 20_ns);
  EXPECT_EQ(run.device.dram.timing.tRAS.time, 42_ns);
  EXPECT_EQ(run.engine.weights.name, "Q8_0");
  EXPECT_EQ(run.workload.prompt, 16);
  EXPECT_EQ(run.workload.generate, 256);
  EXPECT_EQ(run.run.fidelity, Fidelity::exact);
  EXPECT_EQ(run.device.controller.refresh, RefreshMode::none);
}

TEST_F(ScenarioTest, LaterOverridesBuildOnEarlierOnes) {
  const RunSpec run = load(kPlain, {"device=rk3588_4gb", "device.os.reserve=1 GiB"});
  EXPECT_EQ(run.device.controller.ranks, 1);
  EXPECT_EQ(run.device.os.reserve, 1_GiB);
}

TEST_F(ScenarioTest, EntitiesMayBeFilesRelativeToWhoNamesThem) {
  write("sub/board.yaml", "extends: rk3588\nclusters:\n  - {core: ./slow.yaml, count: 1}\n");
  write("sub/slow.yaml", "extends: cortex_a55\nclock: 600 MHz\n");
  const RunSpec run = load("device: sub/board.yaml\nmodel: tinyllama_1_1b\nworkload: {threads: 1}\n");
  EXPECT_EQ(run.device.name, "board");
  ASSERT_EQ(run.device.clusters.size(), 1U);
  EXPECT_EQ(run.device.clusters[0].core.name, "slow");
  EXPECT_EQ(run.device.clusters[0].core.clock, 600_MHz);
  EXPECT_EQ(run.device.clusters[0].core.l2_size, 128_KiB);
}

TEST_F(ScenarioTest, FilesOnTheCommandLineAreRelativeToTheWorkingDirectory) {
  write("sub/board.yaml", "extends: rk3588_4gb\n");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_ / "sub");
  const std::string name = load(kPlain, {"device=./board.yaml"}).device.name;
  std::filesystem::current_path(before);
  EXPECT_EQ(name, "board");
}

TEST_F(ScenarioTest, EntitiesMayBeMaps) {
  const RunSpec run = load(
      "device: {extends: rk3588, name: mine, llc: {size: 1536 KiB}}\n"
      "model: {layers: 1, width: 64, heads: 2, kv_heads: 1, head_dim: 32, ffn: 128, vocabulary: 100, "
      "context: 10}\n"
      "engine: {weights: {main: Q8_0, rules: [{role: output, type: F16}]}}\n");
  EXPECT_EQ(run.device.name, "mine");
  EXPECT_EQ(run.device.llc.size, 1536_KiB);
  EXPECT_EQ(run.device.llc.ways, 12);
  EXPECT_EQ(run.model.name, "custom");
  EXPECT_EQ(run.engine.weights.rules.front().type, "F16");
}

TEST_F(ScenarioTest, TensorTypesMayBeChangedUnderTheirName) {
  const RunSpec run = load(kPlain +
                           "engine:\n"
                           "  weights: {extends: Q4_K_M, types: [{extends: Q4_K, simd_ops_per_32: 7}]}\n"
                           "  kv: q8_0+window=512+sinks=4\n");
  ASSERT_EQ(run.engine.weights.types.front().name, "Q4_K");
  EXPECT_EQ(run.engine.weights.types.front().simd_ops_per_32, 7);
  EXPECT_EQ(run.engine.weights.types.front().bytes, 144_B);
  EXPECT_EQ(run.engine.weights.types.size(), 8U);  // and F32, F16, Q5_0, Q5_1, Q5_K, Q6_K, Q8_0
  EXPECT_EQ(name(run.engine.kv), "q8_0+window=512+sinks=4");
}

TEST_F(ScenarioTest, ExtendsMergesThroughSeveralFiles) {
  write("a.yaml", "device: rk3588\nworkload: {prompt: 1, generate: 2, threads: 3}\n");
  write("sub/b.yaml", "extends: ../a.yaml\nworkload: {generate: 20}\ndevice: {os: {reserve: 1 GiB}}\n");
  const RunSpec run = load("extends: ./sub/b.yaml\nmodel: tinyllama_1_1b\nworkload: {threads: 4}\n");
  EXPECT_EQ(run.workload, (WorkloadSpec{.prompt = 1, .generate = 20, .threads = 4}));
  EXPECT_EQ(run.device.os.reserve, 1_GiB);
  EXPECT_EQ(run.device.name, "rk3588 (changed)");
  EXPECT_EQ(run.name, "main");
}

TEST(Json, IsReadBackEqualForEveryDeviceAndModel) {
  for (const std::string& device : catalogue_ids("devices")) {
    for (const std::string& model : catalogue_ids("llms")) {
      const RunSpec run =
          run_spec_from_json("{device: " + device + ", model: " + model + ", workload: {threads: 1}}");
      EXPECT_EQ(run_spec_from_json(to_json(run).dump()), run);
      EXPECT_EQ(run_spec_from_json(to_json(run).dump(2)), run);
      EXPECT_EQ(to_json(run_spec_from_json(to_json(run).dump())).dump(), to_json(run).dump());
    }
  }
}

TEST(Json, NeedsNoFiles) {
  const RunSpec run = load_scenario(kScenarios / "rk3588_llama8b.yaml").spec;
  const Scenario back = restore_scenario(to_json(run).dump());
  ASSERT_EQ(back.inputs.size(), 1U);
  EXPECT_EQ(back.inputs.front().path, "recorded configuration");
}

TEST(Json, TakesOverridesAndAnotherDevice) {
  const std::string json = to_json(load_scenario(kScenarios / "rk3588_llama8b.yaml").spec).dump();
  const RunSpec run =
      restore_scenario(json, {"device=rk3588_lpddr5", "device.clusters.0.count=2", "run.seed=7"}).spec;
  EXPECT_EQ(run.device.dram.standard, DramStandard::lpddr5);
  EXPECT_EQ(run.device.clusters[0].count, 2);
  EXPECT_EQ(run.run.seed, 7);
  EXPECT_EQ(run.model.name, "llama3_8b");
  EXPECT_EQ(restore_scenario(json, {"device.clusters.1.count=3"}).spec.device.clusters[1].count, 3);
}

TEST(Json, IsCompleteAndOrdered) {
  const nlohmann::ordered_json json = to_json(run_spec_from_json("{device: rk3588, model: llama3_8b}"));
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) {
    keys.push_back(key);
  }
  EXPECT_THAT(keys, testing::ElementsAre("name", "description", "device", "model", "engine", "workload",
                                         "memory", "run", "soak"));
  EXPECT_EQ(json["device"]["dram"]["data_rate"], "4224 MT/s");
  EXPECT_EQ(json["device"]["controller"]["mapping"]["bank"].dump(), R"(["13^11","14^12","15^13"])");
  EXPECT_EQ(json["workload"]["prompt"], 512);
}

TEST(Json, DamagedOnesAreRefused) {
  const std::string json = to_json(run_spec_from_json("{device: rk3588, model: llama3_8b}")).dump();
  EXPECT_THAT(message_of([&] { static_cast<void>(run_spec_from_json(json.substr(0, json.size() / 2))); }),
              StartsWith("recorded configuration:1:"));
  EXPECT_THAT(message_of([] { static_cast<void>(run_spec_from_json("")); }), HasSubstr("is empty"));
  for (std::size_t length = 0; length < json.size(); length += 7) {
    EXPECT_NE(message_of([&] { static_cast<void>(run_spec_from_json(json.substr(0, length))); }), "no error");
  }
}

/// A changed character is refused or gives another valid configuration; nothing else happens.
TEST(Json, SurvivesRandomDamage) {
  const std::string json = to_json(run_spec_from_json("{device: rk3588, model: llama3_8b}")).dump();
  Random random(11);
  for (int i = 0; i < 300; ++i) {
    std::string damaged = json;
    for (std::uint64_t n = random.below(4) + 1; n > 0; --n) {
      damaged[random.below(damaged.size())] = static_cast<char>(random.next());
    }
    static_cast<void>(message_of([&] { static_cast<void>(run_spec_from_json(damaged)); }));
  }
}

}  // namespace
}  // namespace kvsim::config
