// SPDX-License-Identifier: Apache-2.0
// Layers that see a window, latent attention, no cache, and an engine's habits: sizes, and what a run
// touches.
#include "traces/workload/kv_classes.h"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/error.h"
#include "traces/attention/attention.h"
#include "traces/workload/step_testing.h"
#include "traces/workload/test_models.h"

namespace kvsim::trace {
namespace {

using namespace kvsim::literals;
using ::testing::ElementsAre;

Bytes region(const LlmRun& run, std::int64_t context, Region region) {
  return allocations(run, context)[static_cast<std::size_t>(region)].bytes;
}

LlmRun run_of(const config::LlmSpec& model, const char* kv = "f16") {
  LlmRun run = test_run(model, weight_format("F16"), {.prompt = 1, .generate = 1});
  run.engine.kv = config::parse_kv_spec(kv);
  return run;
}

/// Bytes of `kind` that the attention of one layer reads.
std::int64_t attention_reads(const Step& step, std::uint32_t layer, Kind kind = Kind::kv) {
  std::int64_t bytes = 0;
  for (const Operation& operation : step.operations) {
    if (operation.mark.op == Operator::attention && operation.mark.layer == Layer(layer)) {
      bytes += traffic_of(operation).read[kind].count();
    }
  }
  return bytes;
}

std::uint64_t attention_operations(const Step& step, std::uint32_t layer) {
  for (const Operation& operation : step.operations) {
    if (operation.mark.op == Operator::attention && operation.mark.layer == Layer(layer)) {
      return operations_of(operation);
    }
  }
  return 0;
}

TEST(LocalLayers, HaveTheCellsThatLlamaCppLogged) {
  struct Case {
    std::int64_t context;
    Bytes global, local;
  };
  for (const Case& c : {Case{512, 2_MiB, 11_MiB}, Case{2048, 8_MiB, 22_MiB}, Case{8192, 32_MiB, 22_MiB},
                        Case{32768, 128_MiB, 22_MiB}}) {
    EXPECT_EQ(region(run_of(gemma3_1b()), c.context, Region::kv_cache), c.global) << c.context;
    EXPECT_EQ(region(run_of(gemma3_1b()), c.context, Region::kv_window), c.local) << c.context;
  }
}

TEST(LocalLayers, AddUpToWhatLlamaCppAllocates) {
  struct Case {
    config::LlmSpec model;
    const char* kv;
    std::vector<std::int64_t> mib;  // at 4096, 8192 and 32768 tokens, rounded
  };
  for (const Case& c :
       {Case{gemma2_2b(), "f16", {416, 650, 1898}}, Case{gemma2_2b(), "q8_0", {221, 345, 1008}},
        Case{gemma3_1b(), "q8_0", {20, 29, 80}}, Case{gemma3_1b(), "q4_0", {11, 15, 42}}}) {
    std::vector<std::int64_t> mib;
    for (const std::int64_t context : {4096, 8192, 32768}) {
      const LlmRun run = run_of(c.model, c.kv);
      const Bytes both = region(run, context, Region::kv_cache) + region(run, context, Region::kv_window);
      mib.push_back((both.count() + (1 << 19)) >> 20);
    }
    EXPECT_EQ(mib, c.mib) << c.model.name << " " << c.kv;
  }
  EXPECT_EQ(region(run_of(gemma3_1b()), 4096, Region::compute_buffer).count() >> 20, 54);
  EXPECT_EQ(region(run_of(gemma3_1b()), 32768, Region::compute_buffer).count() >> 20, 82);
}

TEST(LocalLayers, WithoutGlobalOnesHaveOneCache) {
  const LlmRun run = run_of(mistral_7b());
  EXPECT_EQ(region(run, 32768, Region::kv_cache), 0_B);
  EXPECT_EQ(region(run, 32768, Region::kv_window), 131'072_B * 4608);
  EXPECT_EQ(region(run, 1024, Region::kv_window), 131'072_B * 1024);
  const std::vector<KvLayer> layers = kv_layers(run);
  EXPECT_EQ(layers.back().cache, 0U);
  EXPECT_EQ(layers.back().layer, Layer(31));
}

TEST(LocalLayers, AreNumberedWithinTheirClass) {
  std::vector<std::string> seen;
  for (const KvLayer& layer : kv_layers(run_of(gemma3_1b()))) {
    seen.push_back(std::to_string(layer.cache) + ":" + std::to_string(layer.layer.value()));
  }
  seen.resize(8);
  EXPECT_THAT(seen, ElementsAre("1:0", "1:1", "1:2", "1:3", "1:4", "0:0", "1:5", "1:6"));
}

TEST(LocalLayers, ReadTheirWindowAlone) {
  LlmRun run = test_run(gemma3_1b(), weight_format("F16"),
                        {.prompt = 1300, .cached = 1200, .generate = 2, .threads = 1});
  constexpr std::int64_t kRow = 2 * 256 * 2;  // K and V of the one KV head
  const std::vector<Step> steps = all_steps_of(run);
  ASSERT_EQ(steps.size(), 6U) << "a ubatch, two tokens, probes at 1024, 512 and 0";
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const std::int64_t tokens = steps[i].mark.depth + 1;
    EXPECT_EQ(attention_reads(steps[i], 0), std::min<std::int64_t>(512, tokens) * kRow) << tokens;
    EXPECT_EQ(attention_reads(steps[i], 5), tokens * kRow) << tokens;
    EXPECT_EQ(traffic_of(steps[i]).written.at(Kind::kv).count(), 26 * kRow);
  }
  EXPECT_EQ(attention_operations(steps[1], 0), 512U * 4 * (2 * 256 / 32 * 8 + 6));
  EXPECT_EQ(attention_operations(steps[1], 5), 1301U * 4 * (2 * 256 / 32 * 8 + 6));
  // 100 queries in tiles of 64 behind 1200 tokens: the first tile sees 511 + 64, the second 511 + 36.
  EXPECT_EQ(attention_reads(steps[0], 0), (575 + 547) * kRow);
  EXPECT_EQ(attention_operations(steps[0], 0), 100U * 512 * 4 * (2 * 256 / 32 * 8 + 6));
}

TEST(LocalLayers, KeepTheirWindowWhateverStaysInTheOthers) {
  const auto bytes = [](const char* kv, Region which) {
    return region(run_of(gemma3_1b(), kv), 8192, which);
  };
  EXPECT_EQ(bytes("f16+h2o=1024", Region::kv_window), 22_MiB);
  EXPECT_EQ(bytes("f16+h2o=1024", Region::kv_cache), Bytes(4 * 1024 * (1023 + 512)));
  EXPECT_EQ(bytes("f16+window=1024+sinks=4", Region::kv_window), 22_MiB);
  EXPECT_EQ(bytes("f16+window=256", Region::kv_window), Bytes(22 * 1024 * 768)) << "the smaller window holds";
}

TEST(Latent, SizesAreThoseOfTheLogs) {
  EXPECT_EQ(region(run_of(dense_deepseek_v3()), 32768, Region::kv_cache), 1952_MiB + 244_MiB);
  EXPECT_EQ(region(run_of(dense_deepseek_lite()), 512, Region::kv_cache), Bytes(27 * 512 * 576 * 2));
  EXPECT_EQ(region(run_of(dense_deepseek_lite(), "q8_0"), 512, Region::kv_cache), Bytes(27 * 512 * 612));
  EXPECT_EQ(region(run_of(dense_deepseek_lite(), "q8_0"), 65536, Region::kv_cache), 1032_MiB + 768_KiB);
}

TEST(Latent, IsReadOnceForAllHeads) {
  for (const std::int64_t threads : {1, 4, 5}) {
    const LlmRun run = test_run(dense_deepseek_lite(), weight_format("F16"),
                                {.prompt = 300, .cached = 299, .generate = 1, .threads = threads});
    const Step step = steps_of(run).back();
    // ceil(16 / 5) = 4 heads each: the fifth thread has none.
    const std::int64_t readers = std::min<std::int64_t>(threads, 4);
    EXPECT_EQ(attention_reads(step, 3), readers * 301 * 576 * 2);
    EXPECT_EQ(traffic_of(step).written.at(Kind::kv).count(), 27 * 576 * 2);
    EXPECT_EQ(attention_operations(step, 3), 301U * 16 * ((576 + 512) / 32 * 8 + 6));
  }
}

TEST(Latent, OperatorsAreThoseOfTheAbsorbedForm) {
  using enum Operator;
  const auto operators = [](const config::LlmSpec& model) {
    std::vector<Operator> ops;
    const LlmRun run = test_run(model, weight_format("F16"), {.prompt = 0, .generate = 1});
    const Step step = steps_of(run).back();
    for (const Operation& operation : step.operations) {
      if (operation.mark.layer == Layer(2)) {
        ops.push_back(operation.mark.op);
      }
    }
    return ops;
  };
  EXPECT_THAT(operators(dense_deepseek_lite()),
              ElementsAre(attn_norm, q_proj, kv_latent, latent_norm, rope, q_absorb, kv_append, attention,
                          v_absorb, attn_output, ffn_norm, ffn_gate, ffn_up, activation, ffn_down));
  EXPECT_THAT(
      operators(dense_deepseek_v3()),
      ElementsAre(attn_norm, q_latent, latent_norm, q_proj, kv_latent, latent_norm, rope, q_absorb, kv_append,
                  attention, v_absorb, attn_output, ffn_norm, ffn_gate, ffn_up, activation, ffn_down));
  EXPECT_THAT(operators(gemma3_1b()),
              ElementsAre(attn_norm, q_proj, k_proj, v_proj, qk_norm, rope, kv_append, attention, attn_output,
                          attn_post_norm, ffn_norm, ffn_gate, ffn_up, activation, ffn_down, ffn_post_norm));
}

/// Rows of K that the projections of one layer make.
std::int64_t keys_made(const LlmRun& run) {
  std::int64_t bytes = 0;
  for (const Step& step : steps_of(run)) {
    for (const Operation& operation : step.operations) {
      if (operation.mark.op == Operator::k_proj && operation.mark.layer == Layer(1)) {
        bytes += traffic_of(operation).written.at(Kind::scratch).count();
      }
    }
  }
  return bytes / (run.model.kv_heads * run.model.head_dim * 4);
}

LlmRun without_cache(std::int64_t prompt, std::int64_t generate) {
  LlmRun run = test_run(tinyllama(), weight_format("F16"), {.prompt = prompt, .generate = generate});
  run.model.layers = 3;
  run.engine.kv_cache = config::KvCacheUse::recomputed;
  return run;
}

TEST(NoCache, ComputesKAndVOfAllTokensInEveryStep) {
  LlmRun run = without_cache(1, 9);
  EXPECT_EQ(keys_made(run), 55);
  run.engine.kv_cache = config::KvCacheUse::kept;
  EXPECT_EQ(keys_made(run), 10);
  for (const std::int64_t tokens : {2, 3, 17, 40}) {
    EXPECT_EQ(keys_made(without_cache(1, tokens - 1)), tokens * (tokens + 1) / 2);
  }
  EXPECT_EQ(keys_made(without_cache(20, 2)), 20 + 21 + 22);
}

TEST(NoCache, StepsHaveAllTokensAtTheirDepth) {
  std::vector<std::string> seen;
  for (const Step& step : all_steps_of(without_cache(600, 1))) {
    seen.push_back(std::to_string(step.mark.tokens) + " at " + std::to_string(step.mark.depth));
    EXPECT_EQ(attention_operations(step, 1), visible_pairs(Token(0), step.mark.tokens) * 32 * (32 + 6));
  }
  EXPECT_THAT(seen, ElementsAre("600 at 0", "601 at 600", "513 at 512", "1 at 0"));
}

TEST(NoCache, HoldsKAndVOfOneLayerAndWidensTheComputeBuffer) {
  const LlmRun run = without_cache(1, 1);
  EXPECT_EQ(region(run, 4096, Region::kv_cache), 2_B * 4 * 64 * 2 * 4096);
  EXPECT_EQ(to_string(allocations(run, 4096)[static_cast<std::size_t>(Region::kv_cache)].name),
            "K and V of a layer");
  EXPECT_EQ(region(run, 4096, Region::compute_buffer).count(),
            4096LL * (4 * (3 * 5632 + 4 * 2048 + 6) + 2 * 4096));
}

TEST(NoCache, HasNoCachedTokens) {
  LlmRun run = without_cache(8, 1);
  run.workload.cached = 4;
  EXPECT_THROW(LlmWorkload{run}, UserError);
}

LlmRun deep(const config::LlmSpec& model, std::int64_t depth) {
  return test_run(model, weight_format("F16"),
                  {.prompt = depth, .cached = depth - 1, .generate = 1, .threads = 1});
}

TEST(Habits, AWalkPerQueryHeadReadsTheCacheForEach) {
  for (const std::int64_t threads : {1, 3, 8}) {
    LlmRun run = deep(llama32_1b(), 300);
    run.workload.threads = threads;
    const std::int64_t once = attention_reads(steps_of(run).back(), 1);
    const std::uint64_t operations = attention_operations(steps_of(run).back(), 1);
    EXPECT_EQ(once, 301 * 8 * 64 * 2 * 2);
    run.engine.kv_walk = config::KvWalk::query_head;
    EXPECT_EQ(attention_reads(steps_of(run).back(), 1), once * 32 / 8);
    EXPECT_EQ(attention_operations(steps_of(run).back(), 1), operations);
  }
}

TEST(Habits, PaddedCellsAreRead) {
  LlmRun run = deep(llama32_1b(), 300);
  run.engine.kv_read_padding = 256;
  EXPECT_EQ(attention_reads(steps_of(run).back(), 1), 512 * 8 * 64 * 2 * 2);
  run.engine.kv_read_padding = 1000;
  EXPECT_EQ(attention_reads(steps_of(run).back(), 1), 512 * 8 * 64 * 2 * 2) << "there are no more cells";
}

TEST(Habits, TransposedValuesAreWrittenOneByOneAndReadInRuns) {
  LlmRun run = deep(llama32_1b(), 300);
  run.engine.v_transposed = true;
  const Step step = steps_of(run).back();
  EXPECT_EQ(attention_reads(step, 1), 301 * 8 * 64 * 2 * 2) << "as many bytes";
  std::multiset<std::pair<std::int64_t, std::uint32_t>> written;
  for (const Operation& operation : step.operations) {
    for (const Extent& e : operation.extents) {
      if (operation.mark.op == Operator::kv_append && operation.mark.layer == Layer(1) &&
          e.access == Access::write) {
        written.emplace(e.row_bytes.count(), e.rows);
      }
    }
  }
  EXPECT_THAT(written, ElementsAre(std::pair(2, 512U), std::pair(1024, 1U))) << "V, K";
  run.engine.kv = config::parse_kv_spec("q8_0");
  EXPECT_THROW(LlmWorkload{run}, UserError);
}

TEST(Habits, RepackedWeightsAreReadFromTheirCopy) {
  LlmRun run = test_run(tinyllama(), weight_format("Q4_0"), {.prompt = 0, .generate = 1});
  run.engine.weights.rules = {{.role = config::TensorRole::output, .type = "Q6_K"}};
  const Bytes before = traffic_of(steps_of(run).back()).read.at(Kind::weights);
  run.engine.repack = true;
  EXPECT_EQ(traffic_of(steps_of(run).back()).read.at(Kind::weights), before);
  EXPECT_EQ(region(run, 256, Region::repacked), 519_MiB + 768_KiB);  // logged by llama.cpp
  run.model = llama3_8b();
  EXPECT_EQ(region(run, 256, Region::repacked), 3744_MiB);
  run.model = llama32_1b();
  EXPECT_EQ(region(run, 256, Region::repacked), 522_MiB);
}

}  // namespace
}  // namespace kvsim::trace
