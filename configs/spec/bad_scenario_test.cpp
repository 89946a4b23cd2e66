// SPDX-License-Identifier: Apache-2.0
// What is wrong in a scenario is told with its place, the key, what was found and what to do.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/spec/scenario_test_support.h"

namespace kvsim::config {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct BadScenario {
  std::string text;
  std::string place;
  std::string words;
};

const BadScenario kBadScenarios[] = {
    {"device: rk3588\n",
     "main.yaml:1:1: model: ", "is missing; add it: the language model (an id of `kvsim list llms`"},
    {"model: llama3_8b\n", "main.yaml:1:1: device: ", "is missing"},
    {"device: rk3589\nmodel: llama3_8b\n", "main.yaml:1:9: device: ",
     "unknown device 'rk3589', did you mean 'rk3588'?; known: esp32_s3, imx8m_mini, "},
    {kPlain + "engine: {weights: Q4_K_S}\n",
     "main.yaml:3:19: engine.weights: ", "unknown weight format 'Q4_K_S', did you mean 'Q4_K_M'?"},
    {kPlain + "engine: {kv: Q4_K}\n", "main.yaml:3:14: engine.kv: ", "made for weights"},
    {kPlain + "engine: {kv: int8:g48}\n", "main.yaml:3:14: engine.kv: ", "48"},
    {kPlain + "engine: {kv: q9}\n", "main.yaml:3:14: engine.kv: ", "q8_0"},
    {kPlain + "workload: {threads: 9}\n",
     "main.yaml:3:21: workload.threads: ", "9 threads on the 8 cores of rk3588; give at most 8"},
    {kPlain + "workload: {prompt: 0}\n", "main.yaml:3:20: workload.prompt: ", "allowed is 1 to 16777216"},
    {kPlain + "workload: {generate: -1}\n",
     "main.yaml:3:22: workload.generate: ", "allowed is 0 to 16777216"},
    {kPlain + "workload: {prompt: 16777216, generate: 1}\n",
     "main.yaml:3:40: workload.generate: ", "are 16777217 tokens together"},
    {kPlain + "workloads: {prompt: 1}\n",
     "main.yaml:3:1: workloads: ", "unknown key, did you mean 'workload'?"},
    {kPlain + "memory: mapped\n",
     "main.yaml:3:9: memory: ", "expects a map with the keys weights, load, locked, stream"},
    {kPlain + "memory: {weights: anonymous, load: on_demand}\n",
     "main.yaml:3:36: memory.load: ", "but memory.weights is anonymous"},
    {kPlain + "memory: {weights: streamed, load: on_demand}\n",
     "main.yaml:3:35: memory.load: ", "but memory.weights is streamed"},
    {kPlain + "memory: {weights: anonymous, locked: 1 GiB}\n",
     "main.yaml:3:38: memory.locked: ", "but memory.weights is anonymous"},
    {kPlain + "memory: {stream: {buffers: 3}}\n",
     "main.yaml:3:10: memory.stream: ", "but memory.weights is mapped"},
    {kPlain + "memory: {weights: streamed, stream: {buffers: 1}}\n",
     "main.yaml:3:47: memory.stream.buffers: ", "allowed is 2 to 1024"},
    {kPlain + "memory: {weights: streamed, stream: {buffers: 0}}\n",
     "main.yaml:3:47: memory.stream.buffers: ", "allowed is 2 to 1024"},
    {kPlain + "memory: {weights: streamed, stream: {request: 5 KiB}}\n",
     "main.yaml:3:47: memory.stream.request: ", "is not a multiple of 4 KiB"},
    {kPlain + "memory: {weights: streamed}\nengine: {repack: true}\n",
     "main.yaml:4:18: engine.repack: ", "repack: false"},
    {"device: {extends: rk3588, storage: none}\nmodel: llama3_8b\nmemory: {weights: streamed}\n",
     "main.yaml:3:19: memory.weights: ", "need a device.storage"},
    {"device: rk3588\nmodel: qwen3_30b_a3b\nmemory: {weights: streamed}\n",
     "main.yaml:3:19: memory.weights: ", "engine.experts.place: streamed"},
    {"device: {extends: rk3588, os: {readers: [{file: 1 MiB, bytes: 1 MiB, every: 1 ms, request: 2 MiB}]}}\n"
     "model: llama3_8b\n",
     "main.yaml:1:92: device.os.readers.0.request: ", "is more than the file"},
    {"device: {extends: rk3588, os: {readers: [{file: 1 MiB, bytes: 1 MiB, every: 1 ms}]}}\n"
     "model: llama3_8b\nengine: {kv_tiers: {dram: 256 MiB}}\n",
     "main.yaml:1:41: device.os.readers: ", "has the storage to itself"},
    {kPlain + "run: {relative_error: 0}\n",
     "main.yaml:3:23: run.relative_error: ", "allowed is 0.0001 to 0.5"},
    {"device: {extends: rk3588, os: {reserve: 20 EB}}\nmodel: llama3_8b\n",
     "main.yaml:1:41: device.os.reserve: ", "is too large"},
    {kPlain + "workload: {prompt: 99999999999999999999}\n",
     "main.yaml:3:20: workload.prompt: ", "allowed is 1 to 16777216"},
    {"device: {extends: rk3588, os: {reserve: 1e30 B}}\nmodel: llama3_8b\n",
     "main.yaml:1:41: device.os.reserve: ", "is too large; at most 9223372036854775807 B"},
    {"device: {extends: rk3588, os: {reserve: -1 B}}\nmodel: llama3_8b\n",
     "main.yaml:1:41: device.os.reserve: ", "is negative"},
    {"device: {extends: rk3588, os: {reserve: 8 GiB}}\nmodel: llama3_8b\n",
     "main.yaml:1:41: device.os.reserve: ", "leave nothing of the 8 GiB installed"},
    {"device: {extends: rk3588, clusters: []}\nmodel: llama3_8b\n",
     "main.yaml:1:37: device.clusters: ", "is empty"},
    {"device: {extends: rk3588, llc: {ways: 7}}\nmodel: llama3_8b\n",
     "main.yaml:1:39: device.llc.ways: ", "7 ways with lines of 64 B do not divide 3 MiB evenly"},
    {"device: {extends: rk3588, controller: {write_high: 65}}\nmodel: llama3_8b\n",
     "main.yaml:1:52: device.controller.write_high: ", "65 is above write_queue, 64"},
    {"device: {extends: rk3588, controller: {write_low: 48}}\nmodel: llama3_8b\n",
     "main.yaml:1:51: device.controller.write_low: ", "48 is not below write_high, 48"},
    {"device: {extends: rk3588, controller: {channels: 3}}\nmodel: llama3_8b\n",
     "main.yaml:1:50: device.controller.channels: ", "'3' is not a power of two"},
    {"device: {extends: rk3588, controller: {channels: 8}}\nmodel: llama3_8b\n",
     "configs/catalogue/devices/rk3588.yaml:",
     "device.controller.mapping.channel: has 2 bits, but 8 channels need 3"},
    {"device: {extends: rk3588, dram: {timing: {tRAS: 10 ns}}}\nmodel: llama3_8b\n",
     "main.yaml:1:49: device.dram.timing.tRAS: ", "'10 ns' is less than tRCD, which is 18 ns min 4 tCK"},
    {"device: {extends: rk3588, dram: {timing: {tCCD: 4 tCK, tCCD_L: 4 tCK}}}\nmodel: llama3_8b\n",
     "main.yaml:1:49: device.dram.timing.tCCD: ", "'4 tCK' is less than a burst of 16 takes, 8 tCK"},
    {"device: {extends: rk3588, dram: {timing: {tRFCpb: 500 ns, tRFCab: 500 ns}}}\nmodel: llama3_8b\n",
     "main.yaml:1:51: device.dram.timing.tRFCpb: ",
     "'500 ns' for each of 8 refreshes leaves no time within tREFI"},
    {"device: {extends: rk3588, dram: {columns: 8}}\nmodel: llama3_8b\n",
     "main.yaml:1:43: device.dram.columns: ", "a row of 8 columns is shorter than a burst of 16"},
    {"device: {extends: rk3588, dram: {bank_groups: 16}}\nmodel: llama3_8b\n",
     "main.yaml:1:47: device.dram.bank_groups: ", "16 bank groups cannot share 8 banks"},
    {"device: {extends: rk3588, dram: {transfers_per_clock: 32}}\nmodel: llama3_8b\n",
     "configs/catalogue/dram/lpddr4x_4224_8gb.yaml:",
     "device.dram.burst_length: a burst of 16 is shorter than the 32"},
    {"device: {extends: rk3588, clusters: {0: {core: {prefetch_page: 32 B}}}}\nmodel: llama3_8b\n",
     "main.yaml:1:64: device.clusters.0.core.prefetch_page: ", "allowed is 64 B to 1 GiB"},
    {"device: {extends: rk3588, llc: {line: 128 B}}\nmodel: llama3_8b\n",
     "main.yaml:1:39: device.llc.line: ", "allowed is 64 B to 64 B"},
    {"device: {extends: rk3588, clusters: {0: {count: 61}}}\nmodel: llama3_8b\n",
     "configs/catalogue/devices/rk3588.yaml:", "65 cores; at most 64 are supported"},
    {"device: {extends: rk3588, dram: {width_bits: 64}}\nmodel: llama3_8b\n",
     "configs/catalogue/dram/lpddr4x_4224_8gb.yaml:",
     "a burst of 16 on 64 data lines is 128 B, which does not divide a line of 64 B"},
    {"device: rk3588\nmodel: {extends: llama3_8b, local: {window: 512, count: 3, period: 2}}\n",
     "main.yaml:2:", "3 local layers of every 2"},
    {"device: rk3588\nmodel: {extends: llama3_8b, local: {count: 3, period: 4}}\n",
     "main.yaml:2:", "model.local.window: is missing"},
    {"device: rk3588\nmodel: {extends: qwen3_30b_a3b, experts: {used: 129}}\n",
     "main.yaml:2:49: model.experts.used: ", "a token takes 129 of 128 experts"},
    {kPlain + "engine: {experts: {place: streamed}}\n",
     "main.yaml:3:27: engine.experts.place: ", "llama3_8b has no experts to stream"},
    {kPlain + "engine: {experts: {cache: 1 GiB}}\n",
     "main.yaml:3:10: engine.experts: ", "give place: streamed, or leave them out"},
    {"device: {extends: rk3588, storage: none}\nmodel: qwen3_30b_a3b\nengine: {experts: {place: streamed}}\n",
     "main.yaml:3:27: engine.experts.place: ", "need a device.storage"},
    {"device: rk3588\nmodel: qwen3_30b_a3b\nengine: {repack: true, experts: {place: streamed}}\n",
     "main.yaml:3:18: engine.repack: ", "as they lie in the file"},
    {"device: rk3588\nmodel: qwen3_30b_a3b\nengine: {experts: {place: streamed, policy: pinned}}\n",
     "main.yaml:3:45: engine.experts.policy: ", "no room for pinned experts"},
    {"device: rk3588\nmodel: qwen3_30b_a3b\nengine: {experts: {place: streamed, request: 1 KiB}}\n",
     "main.yaml:3:46: engine.experts.request: ", "allowed is 4 KiB to 64 MiB"},
    {"device: rk3588\nmodel: qwen3_30b_a3b\nengine: {experts: {place: streamed, in_flight: 0}}\n",
     "main.yaml:3:48: engine.experts.in_flight: ", "allowed is 1 to 256"},
    {"device: rk3588\nmodel: qwen3_30b_a3b\nengine: {experts: {place: streamed, size: 1 GiB}}\n",
     "main.yaml:3:37: engine.experts.size: ", "unknown key"},
    {"device: {extends: rk3588, storage: none, os: {swap: 1 GiB}}\nmodel: llama3_8b\n",
     "main.yaml:1:53: device.os.swap: ", "needs a device.storage"},
    {"device: rk3588\nmodel: {extends: qwen3_30b_a3b, experts: {dense_layers: 48}}\n",
     "main.yaml:2:57: model.experts.dense_layers: ", "48 of 48 layers have no experts"},
    {"device: rk3588\nmodel: {extends: phi3_mini, experts: {count: 8, used: 2, ffn: 512}}\n",
     "main.yaml:2:", "experts go with neither fused_qkv nor post_norms"},
    {"device: rk3588\nmodel: {extends: llama3_8b, latent: {kv_rank: 512, rope_dim: 64, value_dim: 128}}\n",
     "main.yaml:2:", "kv_heads must be 1"},
    {"device: rk3588\nmodel: {extends: llama3_8b, kv_heads: 1, latent: {kv_rank: 512, rope_dim: 128, "
     "value_dim: 128}}\n",
     "main.yaml:2:", "128 of a head's 128 numbers carry the position"},
    {"device: rk3588\nmodel: {extends: gemma3_1b, qk_norm: false, latent: {kv_rank: 512, rope_dim: 64, "
     "value_dim: 128}}\n",
     "main.yaml:2:", "latent attention goes with none of"},
    {kPlain + "engine: {kv_cache: recomputed, kv: f16+window=512}\n",
     "main.yaml:3:", "engine.kv_cache is recomputed: give formats alone"},
    {kPlain + "engine: {kv_cache: recomputed}\nworkload: {cached: 5}\n",
     "main.yaml:4:", "there is no cache to hold tokens"},
    {kPlain + "engine: {v_transposed: true, kv: q8_0}\n", "main.yaml:3:", "needs V in f32, f16 or bf16"},
    {kPlain + "engine: {v_transposed: true, kv_layout: paged}\n",
     "main.yaml:3:", "a kv_layout that is not paged"},
    {kPlain + "engine: {kv_cache: none}\n", "main.yaml:3:", "kept, recomputed"},
    {"device: rk3588\nmodel: {extends: llama3_8b, kv_heads: 5}\n",
     "main.yaml:2:39: model.kv_heads: ", "5 KV heads do not divide 32 heads evenly"},
    {"device: rk3588\nmodel: {extends: llama3_8b, layers: 99999999999}\n",
     "main.yaml:2:37: model.layers: ", "allowed is 1 to 1024"},
    {kPlain + "engine: {weights: {main: Q4_0, types: [{name: Q4_0, block: 1, bytes: 9 B, simd_ops_per_32: "
              "1}]}}\n",
     "main.yaml:3:70: engine.weights.types.0.bytes: ", "more than 64 bits per weight"},
    {kPlain + "engine: {weights: {main: IQ3_S}}\n",
     "main.yaml:3:26: engine.weights: ", "unknown tensor type 'IQ3_S'"},
    {kPlain + "engine: {weights: {main: Q4_0, rules: [{role: vector, type: F16}]}}\n",
     "main.yaml:3:47: engine.weights.rules.0.role: ", "'vector' is not one of token_embedding, output"},
    {"device: none.yaml\nmodel: llama3_8b\n", "main.yaml:1:9: device: none.yaml: ", "there is no such file"},
    {"device: ./\nmodel: llama3_8b\n", "main.yaml:1:9: device: ", "is a directory"},
    {"extends: rk3588\n" + kPlain, "main.yaml:1:10: extends: ", "'rk3588' is no file; a scenario extends"},
    {"extends: [a.yaml]\n" + kPlain, "main.yaml:1:10: extends: ", "expects an id or a file, found a list"},
    {"extends: main.yaml\n" + kPlain, "main.yaml:1:10: extends: ", "extends itself: main.yaml -> main.yaml"},
    {"- device\n- model\n", "main.yaml:1:1: ", "expects a map with the keys name, description, device"},
    {"just text\n", "main.yaml:1:1: ", "found the text 'just text'"},
};

TEST_F(ScenarioTest, RefusesWithPlaceAndWords) {
  for (const BadScenario& bad : kBadScenarios) {
    const std::string error = error_of(bad.text);
    EXPECT_THAT(error, StartsWith(bad.place)) << bad.text;
    EXPECT_THAT(error, HasSubstr(bad.words)) << bad.text;
    EXPECT_EQ(error.find('\n'), std::string::npos) << "one mistake, one line: " << error;
  }
}

TEST_F(ScenarioTest, TellsAllMistakesOfAFileAtOnce) {
  const std::string error = error_of(
      "device: {extends: rk3588, llc: {size: 3}}\n"
      "model: llama3_8\n"
      "engine: {ubach: 512, weights: Q5}\n"
      "workload: {prompt: 0, prompt: 1}\n");
  for (const char* place :
       {"main.yaml:1:39: device.llc.size: '3' has no unit; write it as 3 B, 3 MiB, ... (a size in "
        "bytes)",
        "main.yaml:2:8: model: unknown model", "main.yaml:3:10: engine.ubach: unknown key",
        "main.yaml:3:31: engine.weights: unknown weight format 'Q5'",
        "main.yaml:4:20: workload.prompt: '0' is out of range",
        "main.yaml:4:23: workload.prompt: the key is given twice; the first is in line 4"}) {
    EXPECT_THAT(error, HasSubstr(place));
  }
  EXPECT_EQ(std::ranges::count(error, '\n'), 5) << error;
}

TEST_F(ScenarioTest, RefusesOverridesThatNoTableKnows) {
  EXPECT_EQ(
      error_of(kPlain, {"engine.ubach=5"}),
      "--set engine.ubach=5: engine.ubach: unknown key, did you mean 'ubatch'?; known here: weights, "
      "kv, kv_cache, kv_layout, kv_block, kv_block_order, kv_row_alignment, ubatch, "
      "context_padding, prefill_columns, kv_tile, kv_walk, kv_read_padding, v_transposed, kv_tiers, repack, "
      "experts, "
      "sampler_operations, barrier, runtime_heap");
  EXPECT_THAT(error_of(kPlain, {"engine.ubatch.x=1"}),
              StartsWith("--set engine.ubatch.x=1: engine.ubatch: expects a whole number, found a map"));
  EXPECT_EQ(error_of(kPlain, {"device.clusters.2.count=1"}),
            "--set device.clusters.2.count=1: device.clusters.2: there is no element 2; the list has 2, "
            "counted from 0");
  EXPECT_THAT(error_of(kPlain, {"device=rk3589"}), StartsWith("--set device=rk3589: device: unknown device"));
  EXPECT_THAT(error_of(kPlain, {"engine.kv=Q6_K"}), StartsWith("--set engine.kv=Q6_K: engine.kv: "));
}

TEST_F(ScenarioTest, OverridesAreNamedWhereTheyMakeAFileWrong) {
  const std::string error = error_of(kPlain, {"run.seed=2", "device.dram.banks=1"});
  EXPECT_THAT(error, StartsWith("configs/catalogue/devices/rk3588.yaml:"));
  EXPECT_THAT(error, HasSubstr("(after --set run.seed=2 --set device.dram.banks=1)"));
  EXPECT_THAT(error_of(kPlain + "run: {sed: 1}\n", {"workload.threads=2"}), Not(HasSubstr("after --set")));
  EXPECT_THAT(error_of(kPlain, {"run.seed=x"}), Not(HasSubstr("after --set")));
}

TEST_F(ScenarioTest, OverridesGoByTheNameThatTheUserTyped) {
  EXPECT_THAT(error_of(kPlain, {{"run.fidelity=quick", "--fidelity quick"}}),
              StartsWith("--fidelity quick: run.fidelity: 'quick' is not one of"));
}

TEST_F(ScenarioTest, RefusesCyclesAndLongChains) {
  write("a.yaml", "extends: b.yaml\n");
  write("b.yaml", "extends: sub/../a.yaml\n");
  EXPECT_THAT(error_of("extends: a.yaml\n" + kPlain),
              HasSubstr("extends itself: main.yaml -> a.yaml -> b.yaml -> a.yaml"));
  for (int i = 0; i < 20; ++i) {
    write("c" + std::to_string(i) + ".yaml", "extends: c" + std::to_string(i + 1) + ".yaml\n");
  }
  EXPECT_THAT(error_of("extends: c0.yaml\n" + kPlain), HasSubstr("extends through more than 16 files"));
}

TEST_F(ScenarioTest, ADeviceFileMayNotExtendItself) {
  write("board.yaml", "extends: ./board.yaml\n");
  EXPECT_THAT(error_of("device: ./board.yaml\nmodel: llama3_8b\n"),
              HasSubstr("board.yaml:1:10: device.extends: extends itself: board.yaml -> board.yaml"));
}

TEST_F(ScenarioTest, AKvSpecificationIsQuotedOnce) {
  EXPECT_THAT(
      error_of("device: rk3588\nmodel: llama3_8b\nengine: {kv: q4_K}\n"),
      StartsWith("main.yaml:3:14: engine.kv: 'q4_K' is no format for the KV cache: it is made for weights"));
  EXPECT_THAT(error_of("device: rk3588\nmodel: llama3_8b\nengine: {kv: f16+window=9+h2o=4}\n"),
              StartsWith("main.yaml:3:14: engine.kv: 'f16+window=9+h2o=4' of a budget of 4 tokens"));
}

TEST_F(ScenarioTest, MistakesInOtherFilesAreToldThere) {
  write("board.yaml", "extends: rk3588\nos:\n  page: 4\n  pages: 5\n");
  EXPECT_EQ(
      error_of("device: board.yaml\nmodel: llama3_8b\n"),
      "board.yaml:3:9: device.os.page: '4' has no unit; write it as 4 B, 4 MiB, ... (a size in bytes)\n"
      "board.yaml:4:3: device.os.pages: unknown key, did you mean 'page'?; known here: firmware, reserve, "
      "page, read_ahead, minor_fault, major_fault, swap, readers");
  write("list.yaml", "[1, 2]\n");
  EXPECT_THAT(error_of("device: list.yaml\nmodel: llama3_8b\n"),
              StartsWith("list.yaml:1:1: device: expects a map, found"));
}

TEST_F(ScenarioTest, RefusesFilesThatAreNoScenario) {
  EXPECT_THAT(message_of([&] { static_cast<void>(load_scenario(folder_ / "none.yaml")); }),
              HasSubstr("none.yaml: there is no such file; check the path"));
  EXPECT_THAT(message_of([&] { static_cast<void>(load_scenario(folder_)); }), HasSubstr("is a directory"));
  EXPECT_THAT(error_of(""), StartsWith("main.yaml: is empty"));
  EXPECT_THAT(error_of(std::string("\x7f"
                                   "ELF\0\0",
                                   6)),
              StartsWith("main.yaml: byte 0 is not text"));
  EXPECT_THAT(error_of("device: [rk3588\n"), HasSubstr("not valid YAML"));
}

TEST(LoadEntry, RefusesWhatIsNotThere) {
  EXPECT_THAT(message_of([] { static_cast<void>(load_device("rk3589")); }),
              StartsWith("device: unknown device 'rk3589', did you mean 'rk3588'?"));
  EXPECT_THAT(message_of([] { static_cast<void>(load_dram_part("./none.yaml")); }),
              StartsWith("DRAM part: none.yaml: there is no such file"));
}

}  // namespace
}  // namespace kvsim::config
