// SPDX-License-Identifier: Apache-2.0
// KV tiers: defaults, sizes, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/spec/scenario_test_support.h"

namespace kvsim::config {
namespace {

using namespace kvsim::literals;
using ::testing::HasSubstr;

std::string tiers(const std::string& keys, const std::string& engine = "") {
  return kPlain + "engine: {" + engine + "kv_tiers: {" + keys + "}}\n";
}

using KvTierSpecTest = ScenarioTest;

TEST_F(KvTierSpecTest, DefaultsAndSizes) {
  const RunSpec run = load(tiers("dram: 256 MiB"));
  ASSERT_TRUE(run.engine.kv_tiers);
  EXPECT_EQ(run.engine.kv_tiers->block, 128);
  EXPECT_EQ(run.engine.kv_tiers->prefetch, 1);
  EXPECT_EQ(run.engine.kv_tiers->write_batch, 16);
  EXPECT_EQ(run.engine.kv_tiers->extent, std::nullopt);
  EXPECT_EQ(kv_row_bytes(run.model, run.engine).k, 2048_B) << "8 KV heads of 128 in F16";
  EXPECT_EQ(kv_blocks_bytes(run), 16_MiB) << "128 tokens of 128 KiB";
  EXPECT_EQ(tier_blocks(run, 256_MiB), 16);
  EXPECT_FALSE(load(kPlain).engine.kv_tiers);
}

TEST_F(KvTierSpecTest, TheFileHasItsOwnFormat) {
  const RunSpec plain = load(tiers("dram: 256 MiB"));
  EXPECT_EQ(kv_file_row_bytes(plain.model, plain.engine).k, 2048_B);
  const RunSpec run = load(tiers("dram: 256 MiB, format: q4_0", "kv_row_alignment: 64 B, "));
  EXPECT_EQ(kv_row_bytes(run.model, run.engine).k, 2048_B);
  EXPECT_EQ(kv_file_row_bytes(run.model, run.engine).v, 576_B) << "8 heads of 4 blocks of 18 B, not padded";
  EXPECT_EQ(kv_blocks_bytes(run), 16_MiB) << "in memory as before";
}

TEST_F(KvTierSpecTest, OfAModelWithLocalLayersTheOthersAreInTiers) {
  const RunSpec run = load("device: rk3588\nmodel: gemma3_1b\nengine: {kv_tiers: {dram: 64 MiB}}\n");
  EXPECT_EQ(tiered_layers(run.model), 4) << "26 layers, every sixth sees all tokens";
}

struct Refused {
  std::string text;
  std::string words;
};

TEST_F(KvTierSpecTest, RefusesWhatMakesNoSense) {
  const Refused kRefused[] = {
      {tiers("block: 128"), "engine.kv_tiers.dram: is missing"},
      {tiers("dram: 15 MiB"),
       "engine.kv_tiers.dram: 15 MiB hold no block of each of the 32 layers; give at "
       "least 16 MiB, or smaller blocks"},
      {tiers("dram: 64 MiB, sram: 1 MiB"), "engine.kv_tiers.sram: 1 MiB hold no block"},
      {tiers("dram: 16 MiB, sram: 32 MiB"), "engine.kv_tiers.sram: 32 MiB is more than dram"},
      {tiers("dram: 64 MiB, block: 3, write_batch: 3"),
       "engine.kv_tiers.block: 3 tokens of 2 KiB are 6144 B of K, not whole pages of 4 KiB; use a multiple "
       "of 2"},
      {tiers("dram: 64 MiB, block: 1, write_batch: 1", "kv: q8_0, "), "use a multiple of 64"},
      {tiers("dram: 64 MiB, write_batch: 48"), "engine.kv_tiers.write_batch: 48 tokens do not divide"},
      {tiers("dram: 64 MiB, write_batch: 0"), "allowed is 1 to 65536"},
      {tiers("dram: 64 MiB, extent: 5 KiB"), "engine.kv_tiers.extent: is not whole pages"},
      {tiers("dram: 64 MiB, sram: 16 MiB, through: mapped"), "engine.kv_tiers.sram: needs through: direct"},
      {tiers("dram: 64 MiB, file: log, through: mapped"), "engine.kv_tiers.file: log needs through: direct"},
      {tiers("dram: 64 MiB, file: log", "kv: f16+window=512, "),
       "engine.kv_tiers.file: in a log a token is written once, but engine.kv lets its place be used again"},
      {tiers("dram: 64 MiB", "kv: f16+h2o=512, "), "engine.kv has h2o or entropy"},
      {tiers("dram: 64 MiB, placement: score"), "engine.kv_tiers.placement: score needs engine.kv with topk"},
      {tiers("dram: 64 MiB, through: mapped", "kv: f16+topk=512, "),
       "engine.kv_tiers.through: engine.kv has topk"},
      {tiers("dram: 64 MiB, through: mapped, placement: score", "kv: f16+topk=512, "),
       "engine.kv_tiers.placement: score needs through: direct"},
      {tiers("dram: 64 MiB, through: mapped, format: q4_0"), "engine.kv_tiers.format: needs through: direct"},
      {tiers("dram: 64 MiB, format: q8_0", "kv: q4_0, "),
       "engine.kv_tiers.format: q8_0 takes 2176 B for K and V of a token in a layer, in memory it is 1152 B"},
      {tiers("dram: 64 MiB, format: f16"), "engine.kv_tiers.format: f16 takes 4 KiB"},
      {tiers("dram: 64 MiB, format: 'int4:g32:channel'"),
       "engine.kv_tiers.format: int4:g32:channel: a range by channel"},
      {tiers("dram: 64 MiB, format: q4_k"), "engine.kv_tiers.format: "},
      {tiers("dram: 64 MiB, block: 32, format: q4_0"),
       "engine.kv_tiers.block: 32 tokens of 576 B are 18432 B of K, not whole pages of 4 KiB; use a multiple "
       "of 64"},
      {kPlain + "workload: {pages: {reuse: 1.5}}\n", "workload.pages.reuse: '1.5' is out of range"},
      {tiers("dram: 64 MiB", "kv: q4_0+recent=64, "), "keeps some tokens in F16"},
      {tiers("dram: 64 MiB", "kv_layout: head_major, "), "must lie side by side"},
      {tiers("dram: 64 MiB", "kv_cache: recomputed, "), "there is nothing to keep"},
      {"device: {extends: rk3588, storage: none}\nmodel: llama3_8b\nengine: {kv_tiers: {dram: 64 MiB}}\n",
       "engine.kv_tiers: needs device.storage"},
      {"device: rk3588\nmodel: mistral_7b_v0_1\nengine: {kv_tiers: {dram: 64 MiB}}\n", "see a window"},
      {kPlain + "workload: {duty: 25}\n", "workload.duty: '25' is out of range"},
  };
  for (const Refused& refused : kRefused) {
    EXPECT_THAT(error_of(refused.text), HasSubstr(refused.words)) << refused.text;
  }
}

}  // namespace
}  // namespace kvsim::config
