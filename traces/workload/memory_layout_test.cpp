// SPDX-License-Identifier: Apache-2.0
#include "traces/workload/memory_layout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/error.h"
#include "traces/workload/activations.h"
#include "traces/workload/test_models.h"

namespace kvsim::trace {
namespace {

using namespace kvsim::literals;

const Allocation& at(const MemoryLayout& layout, Region region) {
  return layout.at(static_cast<std::size_t>(region));
}

LlmRun run_of(const config::LlmSpec& model) {
  return test_run(model, weight_format("F16"), {});
}

TEST(MemoryLayout, WeightsAreTheModelFilesTensors) {
  // llama.cpp's own sizes of the F16 files' tensors.
  EXPECT_EQ(at(allocations(run_of(llama3_8b()), 4096), Region::weights).bytes, 16'061'054'976_B);
  EXPECT_EQ(at(allocations(run_of(tinyllama()), 4096), Region::weights).bytes, 2'200'281'088_B);
  EXPECT_EQ(at(allocations(run_of(llama32_1b()), 4096), Region::weights).bytes, 2'471'764'096_B);
  EXPECT_EQ(at(allocations(run_of(qwen25_05b()), 4096), Region::weights).bytes, 988'208'640_B);
  EXPECT_EQ(at(allocations(run_of(qwen3_06b()), 4096), Region::weights).bytes, 1'192'230'912_B);
}

/// What is not an expert's stays; the cache is as large as asked for, and holds what a layer asks for at
/// once.
TEST(MemoryLayout, StreamedExpertsLeaveTheWeightsForACache) {
  LlmRun run = test_run(qwen3_30b_a3b(), weight_format("F16"), {.prompt = 1, .generate = 8});
  const Bytes whole = at(allocations(run, 9), Region::weights).bytes;
  const Bytes expert(2 * 2048 * 768);  // of each matrix; whole pages
  EXPECT_EQ(at(allocations(run, 9), Region::expert_cache).bytes, 0_B);
  run.engine.experts = {.place = config::ExpertPlace::streamed, .cache = 3_GiB};
  EXPECT_EQ(at(allocations(run, 9), Region::weights).bytes, whole - expert * (3 * 128 * 48));
  EXPECT_EQ(at(allocations(run, 9), Region::expert_cache).bytes, 3_GiB);
  EXPECT_EQ(at(allocations(run, 9), Region::expert_cache).backing, Backing::anonymous);
  run.engine.experts.cache = 0_B;
  EXPECT_EQ(at(allocations(run, 9), Region::expert_cache).bytes, expert * (3 * 8)) << "one token";
  run.workload.prompt = 5;
  EXPECT_EQ(at(allocations(run, 13), Region::expert_cache).bytes, expert * (3 * 40)) << "a prompt of five";
  run.workload.prompt = 500;
  EXPECT_EQ(at(allocations(run, 508), Region::expert_cache).bytes, expert * (3 * 128)) << "all of a layer";
}

TEST(MemoryLayout, KvCacheIsThePaddedContext) {
  EXPECT_EQ(at(allocations(run_of(llama3_8b()), 768), Region::kv_cache).bytes, 131'072_B * 768);
  EXPECT_EQ(at(allocations(run_of(llama3_8b()), 769), Region::kv_cache).bytes, 131'072_B * 1024);
  EXPECT_EQ(at(allocations(run_of(qwen3_06b()), 4096), Region::kv_cache).bytes, 448_MiB);
}

TEST(MemoryLayout, KvCacheHasWholePagesAndPaddedHeads) {
  LlmRun run = run_of(llama3_8b());
  run.engine.kv_layout = config::KvLayout::paged;
  run.engine.kv_block = 100;
  EXPECT_EQ(at(allocations(run, 768), Region::kv_cache).bytes, 131'072_B * 800);
  run.model.head_dim = 80;  // 160 B in F16
  EXPECT_EQ(at(allocations(run, 768), Region::kv_cache).bytes, Bytes(32 * 2 * 8 * 160 * 800));
  run.engine.kv_row_alignment = 64_B;
  EXPECT_EQ(at(allocations(run, 768), Region::kv_cache).bytes, Bytes(32 * 2 * 8 * 192 * 800));
}

TEST(MemoryLayout, ComputeBufferIsLlamaCpps) {
  // Context 4096, ubatch 512, flash attention, logits of one token; MiB as llama.cpp reports them.
  struct Case {
    config::LlmSpec model;
    long mebibytes;
  };
  for (const Case& c : std::vector<Case>{{tinyllama(), 53},
                                         {llama2_7b(), 101},
                                         {llama3_8b(), 120},
                                         {llama32_1b(), 68},
                                         {qwen25_05b(), 40},
                                         {qwen3_06b(), 30},
                                         {phi3_mini(), 70}}) {
    const Bytes bytes = at(allocations(run_of(c.model), 4096), Region::compute_buffer).bytes;
    EXPECT_EQ(std::lround(ratio(bytes, 1_MiB)), c.mebibytes) << c.model.name;
  }
}

TEST(MemoryLayout, ComputeBufferFollowsItsFormula) {
  LlmRun run = run_of(llama3_8b());
  const std::int64_t floats = 3 * 14336 + 4 * 4096 + 6;
  EXPECT_EQ(at(allocations(run, 4096), Region::compute_buffer).bytes.count(), 512 * (4 * floats + 2 * 4096));
  EXPECT_EQ(at(allocations(run, 100), Region::compute_buffer).bytes.count(), 256 * (4 * floats + 2 * 256))
      << "no ubatch is longer than the context";
  run.engine.ubatch = 1;
  EXPECT_EQ(at(allocations(run, 100), Region::compute_buffer).bytes.count(), 4 * 128256 + 8 * 4096 + 4)
      << "the logits are larger";
}

TEST(MemoryLayout, OutputBufferIsOneTokensLogits) {
  EXPECT_EQ(at(allocations(run_of(llama3_8b()), 4096), Region::output_buffer).bytes, 4_B * 128256);
}

TEST(MemoryLayout, BackingFollowsTheMemorySpec) {
  LlmRun run = run_of(tinyllama());
  EXPECT_EQ(at(allocations(run, 1), Region::weights).backing, Backing::file_mapped);
  run.memory.weights = config::WeightBacking::anonymous;
  for (const Allocation& allocation : allocations(run, 1)) {
    EXPECT_EQ(allocation.backing, Backing::anonymous);
  }
}

TEST(MemoryLayout, GrowsWithTheContextOnlyWhereItMust) {
  const LlmRun run = run_of(llama3_8b());
  const MemoryLayout small = allocations(run, 1024), large = allocations(run, 8192);
  for (std::size_t i = 0; i < kRegions; ++i) {
    const bool grows = i == static_cast<std::size_t>(Region::kv_cache) ||
                       i == static_cast<std::size_t>(Region::compute_buffer);
    EXPECT_EQ(small[i].bytes < large[i].bytes, grows) << to_string(small[i].name);
  }
}

TEST(MemoryLayout, NamesTheRoomOfTokensInF16) {
  LlmRun run = run_of(llama3_8b());
  EXPECT_EQ(at(allocations(run, 1024), Region::kv_wide).bytes, 0_B);
  run.engine.kv = config::parse_kv_spec("q8_0+first=4+recent=64");
  const MemoryLayout layout = allocations(run, 1024);
  // 1024 tokens of 32 layers x 8 heads x 2 x 4 blocks of 34 B; 4 first, 64 recent and 512 coming ones in F16.
  EXPECT_EQ(at(layout, Region::kv_cache).bytes, Bytes(1024LL * 32 * 8 * 2 * 4 * 34));
  EXPECT_EQ(at(layout, Region::kv_wide).bytes, 131'072_B * (4 + 64 + 512));
  EXPECT_EQ(to_string(at(layout, Region::kv_wide).name), "KV cache, tokens kept in F16");
}

TEST(MemoryLayout, TakesItsRunFromAScenario) {
  config::RunSpec spec;
  spec.model = phi3_mini();
  spec.engine.ubatch = 7;
  spec.workload.generate = 8;
  spec.memory.weights = config::WeightBacking::anonymous;
  spec.device.os.page = 16_KiB;
  const LlmRun run = llm_run(spec);
  EXPECT_EQ(run.model, spec.model);
  EXPECT_EQ(run.engine, spec.engine);
  EXPECT_EQ(run.workload, spec.workload);
  EXPECT_EQ(run.memory, spec.memory);
  EXPECT_EQ(run.page, 16_KiB);
}

TEST(MemoryLayout, RegionsBeginAtPagesAndDoNotOverlap) {
  for (const Bytes page : {4096_B, 16384_B, 2_MiB}) {
    const MemoryLayout layout = allocations(run_of(qwen25_05b()), 1000);
    const auto addresses = place(layout, page, 4097);
    Address end = 4097;
    for (std::size_t i = 0; i < kRegions; ++i) {
      EXPECT_EQ(addresses[i] % static_cast<Address>(page.count()), 0U);
      EXPECT_GE(addresses[i], end);
      EXPECT_LT(addresses[i] - end, static_cast<Address>(page.count()));
      end = addresses[i] + static_cast<Address>(layout[i].bytes.count());
    }
  }
}

TEST(MemoryLayout, SizesThatOverflowAreTheUsersMistake) {
  LlmRun run = run_of(llama3_8b());
  EXPECT_THROW(static_cast<void>(allocations(run, std::numeric_limits<std::int64_t>::max())), UserError);
  EXPECT_THROW(static_cast<void>(allocations(run, std::numeric_limits<std::int64_t>::max() / 1000)),
               UserError);
  run.engine.ubatch = std::numeric_limits<std::int64_t>::max();
  EXPECT_THROW(static_cast<void>(allocations(run, 1LL << 45)), UserError);
  EXPECT_THROW(
      static_cast<void>(context_tokens({.prompt = std::numeric_limits<std::int64_t>::max(), .generate = 1})),
      UserError);
  EXPECT_THROW(static_cast<void>(context_tokens({.prompt = 1LL << 31, .generate = 0})), UserError);
}

TEST(Activations, AreApartWhereTheyAreNeededTogether) {
  for (const config::LlmSpec& model : one_of_each_family()) {
    const Activations a = place_activations(model, 7, 64);
    const auto end = [](const Activation& x) {  // of the last of seven rows
      return x.address + static_cast<Address>(6 * x.stride.count() + 4 * x.width);
    };
    EXPECT_EQ(a.residual.address, 64U);
    EXPECT_GE(a.normed.address, end(a.residual));
    EXPECT_GE(std::min(a.q.address, a.gate.address), end(a.normed));
    EXPECT_GE(a.attended.address, std::max({end(a.q), end(a.k), end(a.v)}));
    EXPECT_GE(a.activated.address, std::max(end(a.gate), end(a.up)));
    EXPECT_LE(std::max(end(a.attended), end(a.activated)), 64 + static_cast<Address>(a.bytes.count()));
  }
}

TEST(Activations, OfFusedProductsShareRows) {
  const Activations a = place_activations(phi3_mini(), 2, 0);
  EXPECT_EQ(a.k.address, a.q.address + 4 * 32 * 96);
  EXPECT_EQ(a.v.address, a.k.address + 4 * 32 * 96);
  EXPECT_EQ(a.q.stride, Bytes(4 * 3 * 32 * 96));
  EXPECT_EQ(a.up.address, a.gate.address + 4 * 8192);
  EXPECT_EQ(a.gate.stride, Bytes(4 * 2 * 8192));
}

}  // namespace
}  // namespace kvsim::trace
