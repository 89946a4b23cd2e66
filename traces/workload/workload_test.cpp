// SPDX-License-Identifier: Apache-2.0
// The stream against closed forms: what is read, written, computed and in which order.
#include "traces/workload/workload.h"

#include <array>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/error.h"
#include "configs/spec/tensors.h"
#include "traces/attention/attention.h"
#include "traces/workload/operators.h"
#include "traces/workload/step_testing.h"
#include "traces/workload/test_models.h"

namespace kvsim::trace {
namespace {

using ::testing::ElementsAre;

std::vector<config::WeightFormat> formats() {
  return {weight_format("F16"), weight_format("Q4_0"), mixed_format()};
}

/// Tensor bytes that a decode step reads as weights, besides the embedding row.
Intervals weights_of_a_step(const LlmRun& run) {
  Intervals wanted;
  for (const config::TensorInfo& tensor : config::tensors(run.model, run.engine.weights)) {
    if (tensor.role != config::TensorRole::token_embedding || run.model.tied_embeddings) {
      const auto begin = static_cast<Address>(tensor.offset.count());
      wanted.add(begin, begin + static_cast<Address>(tensor.bytes.count()));
    }
  }
  return wanted;
}

TEST(Decode, ReadsEveryWeightByteOnce) {
  for (const config::LlmSpec& model : every_family()) {
    for (const config::WeightFormat& format : formats()) {
      for (const std::int64_t threads : {1, 3, 4, 8}) {
        const LlmRun run = test_run(model, format, {.prompt = 5, .generate = 1, .threads = threads});
        const Step step = steps_of(run).back();
        Intervals read;
        for (const Operation& operation : step.operations) {
          for (const Extent& e : operation.extents) {
            if (e.kind == Kind::weights && operation.mark.op != Operator::embedding) {
              ASSERT_EQ(e.rows, 1U);
              ASSERT_TRUE(read.add(e.address, e.address + static_cast<Address>(total_bytes(e).count())))
                  << model.name << " " << format.name << ": read twice by " << to_string(operation.mark.op);
            }
          }
        }
        ASSERT_EQ(read, weights_of_a_step(run)) << model.name << " " << format.name << " " << threads;
      }
    }
  }
}

TEST(Decode, BytesReadAreWeightsOneEmbeddingRowAndKv) {
  for (const config::LlmSpec& model : one_of_each_family()) {
    const LlmRun run = test_run(model, mixed_format(), {.prompt = 300, .generate = 3});
    Bytes weights;
    for (const config::TensorInfo& tensor : config::tensors(run.model, run.engine.weights)) {
      const bool embedding = tensor.role == config::TensorRole::token_embedding;
      weights += embedding ? tensor.bytes / tensor.rows : tensor.bytes;
      weights += embedding && model.tied_embeddings ? tensor.bytes : Bytes(0);
    }
    const std::int64_t per_token = 2 * model.layers * model.kv_heads * model.head_dim * 2;
    const std::vector<Step> steps = steps_of(run);
    ASSERT_EQ(steps.size(), 4U);
    for (std::int64_t i = 0; i < 3; ++i) {
      const Traffic traffic = traffic_of(steps[static_cast<std::size_t>(1 + i)]);
      EXPECT_EQ(traffic.read.at(Kind::weights), weights) << model.name;
      EXPECT_EQ(traffic.read.at(Kind::kv).count(), per_token * (300 + i + 1)) << model.name;
      EXPECT_EQ(traffic.written.at(Kind::kv).count(), per_token) << model.name;
      EXPECT_EQ(traffic.written.count(Kind::weights), 0U);
    }
  }
}

TEST(Decode, ReadsTheSameKvBytesInEveryLayout) {
  for (const config::KvLayout layout :
       {config::KvLayout::token_major, config::KvLayout::head_major, config::KvLayout::paged}) {
    LlmRun run = test_run(tinyllama(), weight_format("F16"), {.prompt = 300, .cached = 299, .generate = 1});
    run.engine.kv_layout = layout;
    run.engine.kv_block_order = config::KvBlockOrder::shuffled;
    const Traffic traffic = traffic_of(steps_of(run).back());
    EXPECT_EQ(traffic.read.at(Kind::kv).count(), 22 * 2 * 4 * 64 * 2 * 301);
    EXPECT_EQ(traffic.written.at(Kind::kv).count(), 22 * 2 * 4 * 64 * 2);
  }
}

TEST(Decode, ActivationsAreReadAndWrittenAsTheOperatorsNeedThem) {
  const LlmRun run = test_run(tinyllama(), weight_format("F16"), {.prompt = 0, .generate = 1, .threads = 4});
  constexpr std::int64_t kWidth = 2048 * 4, kKv = 4 * 64 * 4, kFfn = 5632 * 4, kLogits = 32000 * 4;
  using enum Operator;
  // Every thread of a product reads all of its input; those that add to the residual stream also read that,
  // once.
  const std::map<Operator, std::array<std::int64_t, 2>> read_and_written = {
      {embedding, {0, kWidth}},
      {attn_norm, {kWidth, kWidth}},
      {q_proj, {4 * kWidth, kWidth}},
      {k_proj, {4 * kWidth, kKv}},
      {v_proj, {4 * kWidth, kKv}},
      {rope, {kWidth + kKv, kWidth + kKv}},
      {kv_append, {2 * kKv, 0}},
      {attention, {kWidth, kWidth}},
      {attn_output, {4 * kWidth + kWidth, kWidth}},
      {ffn_norm, {kWidth, kWidth}},
      {ffn_gate, {4 * kWidth, kFfn}},
      {ffn_up, {4 * kWidth, kFfn}},
      {activation, {2 * kFfn, kFfn}},
      {ffn_down, {4 * kFfn + kWidth, kWidth}},
      {output_norm, {kWidth, kWidth}},
      {logits, {4 * kWidth, kLogits}},
  };
  const Step step = steps_of(run).back();
  for (const Operation& operation : step.operations) {
    Traffic traffic = traffic_of(operation);
    const std::array got{traffic.read[Kind::scratch].count(), traffic.written[Kind::scratch].count()};
    EXPECT_EQ(got, read_and_written.at(operation.mark.op)) << to_string(operation.mark.op);
  }
}

TEST(Decode, LlamaThree8bReads128KibPerCachedToken) {
  const LlmRun run = test_run(llama3_8b(), mixed_format(), {.prompt = 511, .generate = 1});
  EXPECT_EQ(traffic_of(steps_of(run).back()).read.at(Kind::kv), Bytes(131'072 * 512));
}

TEST(Decode, EveryTokenMakesItsKAndVOnce) {
  // With a cache N tokens cost N computations of K and V; without, the k-th step computes all k anew:
  // N(N+1)/2.
  LlmRun run = test_run(tinyllama(), weight_format("F16"), {.prompt = 4, .generate = 6});
  run.model.layers = 1;
  std::uint64_t with_cache = 0;
  for (const Step& step : steps_of(run)) {
    for (const Operation& operation : step.operations) {
      for (const Extent& e : operation.extents) {
        if (operation.mark.op == Operator::kv_append && e.access == Access::write) {
          with_cache += static_cast<std::uint64_t>(total_bytes(e).count()) / (4 * 64 * 2);
        }
      }
    }
  }
  EXPECT_EQ(with_cache, 2U * 10U) << "ten K and ten V";
  EXPECT_EQ(visible_pairs(Token(0), 10), 55U);
}

std::vector<Operator> operators_of(const Step& step, std::uint32_t layer) {
  std::vector<Operator> result;
  for (const Operation& operation : step.operations) {
    const bool outside = operation.mark.op == Operator::embedding ||
                         operation.mark.op == Operator::output_norm || operation.mark.op == Operator::logits;
    if (!outside && operation.mark.layer == Layer(layer)) {
      result.push_back(operation.mark.op);
    }
  }
  return result;
}

TEST(Operators, AreLlamaCppsInItsOrder) {
  using enum Operator;
  const auto layer = [](const config::LlmSpec& model) {
    return operators_of(steps_of(test_run(model, weight_format("F16"), {.prompt = 0, .generate = 1})).back(),
                        3);
  };
  EXPECT_THAT(layer(llama3_8b()), ElementsAre(attn_norm, q_proj, k_proj, v_proj, rope, kv_append, attention,
                                              attn_output, ffn_norm, ffn_gate, ffn_up, activation, ffn_down));
  EXPECT_THAT(layer(qwen3_06b()),
              ElementsAre(attn_norm, q_proj, k_proj, v_proj, qk_norm, rope, kv_append, attention, attn_output,
                          ffn_norm, ffn_gate, ffn_up, activation, ffn_down));
  EXPECT_THAT(layer(phi3_mini()), ElementsAre(attn_norm, qkv_proj, rope, kv_append, attention, attn_output,
                                              ffn_norm, ffn_up, activation, ffn_down));
}

TEST(Operators, BeginAndEndWithEmbeddingAndLogits) {
  const LlmRun run = test_run(tinyllama(), weight_format("F16"), {.prompt = 0, .generate = 1});
  const Step step = steps_of(run).back();
  ASSERT_EQ(step.operations.size(), 1U + 22U * 13U + 2U);
  EXPECT_EQ(step.operations.front().mark.op, Operator::embedding);
  EXPECT_EQ(step.operations[step.operations.size() - 2].mark.op, Operator::output_norm);
  EXPECT_EQ(step.operations.back().mark.op, Operator::logits);
  for (std::size_t i = 0; i < 22 * 13; ++i) {
    ASSERT_EQ(step.operations[1 + i].mark.layer, Layer(static_cast<std::uint32_t>(i / 13)));
  }
}

TEST(Steps, AreUbatchesThenTokens) {
  const LlmRun run = test_run(tinyllama(), weight_format("Q4_0"), {.prompt = 1100, .generate = 2});
  std::vector<std::array<std::uint32_t, 3>> seen;
  for (const Step& step : steps_of(run)) {
    seen.push_back({static_cast<std::uint32_t>(step.mark.phase), step.mark.tokens, step.mark.depth});
  }
  const auto prefill = static_cast<std::uint32_t>(Phase::prefill),
             decode = static_cast<std::uint32_t>(Phase::decode);
  EXPECT_THAT(seen, ElementsAre(std::array{prefill, 512U, 0U}, std::array{prefill, 512U, 512U},
                                std::array{prefill, 76U, 1024U}, std::array{decode, 1U, 1100U},
                                std::array{decode, 1U, 1101U}));
}

TEST(Steps, ProbesFollowAtTheDepthsWithinThePrompt) {
  const LlmRun run = test_run(tinyllama(), weight_format("Q4_0"), {.prompt = 1100, .generate = 2});
  const std::vector<Step> steps = all_steps_of(run);
  ASSERT_EQ(steps.size(), 8U);
  const std::array<std::uint32_t, 3> depths = {1024, 512, 0};
  for (std::size_t i = 0; i < depths.size(); ++i) {
    const Step& probe = steps[5 + i];
    EXPECT_EQ(probe.mark.phase, Phase::probe);
    EXPECT_EQ(probe.mark.tokens, 1U);
    EXPECT_EQ(probe.mark.depth, depths[i]);
    EXPECT_EQ(probe.operations.size(), steps[4].operations.size());
    EXPECT_EQ(probe.operations.back().mark.op, Operator::logits);
    const Bytes kv = traffic_of(probe).read.at(Kind::kv);
    EXPECT_EQ(kv.count(), 22 * 2 * 4 * 64 * 2 * (depths[i] + 1)) << "reads the tokens before it and itself";
  }
  EXPECT_EQ(all_steps_of(test_run(tinyllama(), weight_format("Q4_0"), {.prompt = 20, .generate = 0})).size(),
            1U)
      << "a run without answer has no use for probes";
}

TEST(Steps, CachedTokensAreNotComputedAgain) {
  const LlmRun run =
      test_run(tinyllama(), weight_format("Q4_0"), {.prompt = 640, .cached = 639, .generate = 1});
  const std::vector<Step> steps = steps_of(run);
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].mark.tokens, 1U);
  EXPECT_EQ(steps[0].mark.depth, 639U);
  EXPECT_EQ(steps[1].mark.depth, 640U);
  EXPECT_EQ(traffic_of(steps[1]).read.at(Kind::kv).count(), 22 * 2 * 4 * 64 * 2 * 641);
  EXPECT_THROW(LlmWorkload(test_run(tinyllama(), weight_format("Q4_0"), {.prompt = 4, .cached = 4})),
               UserError);
}

TEST(Steps, SamplerReadsEveryLogitOnOneThread) {
  LlmRun run = test_run(tinyllama(), weight_format("Q4_0"), {.prompt = 2, .generate = 1, .threads = 4});
  run.engine.sampler_operations = 10;
  const Operation sampling = steps_of(run).back().operations.back();
  ASSERT_EQ(sampling.mark.op, Operator::sampling);
  EXPECT_EQ(traffic_of(sampling).read.at(Kind::scratch), Bytes(4 * 32000));
  EXPECT_EQ(operations_of(sampling), 10U * 32000U);
  EXPECT_EQ(sampling.computes.size(), 1U);
}

TEST(Steps, OnlyTheLastTokenOfThePromptGoesPastTheLastAttention) {
  LlmRun run = test_run(tinyllama(), weight_format("F16"), {.prompt = 40, .generate = 0});
  run.engine.ubatch = 20;
  const std::vector<Step> steps = steps_of(run);
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].operations.back().mark.op, Operator::attn_output)
      << "no logits are wanted of the first ubatch";
  EXPECT_EQ(operators_of(steps[0], 20).back(), Operator::ffn_down);
  EXPECT_EQ(steps[1].operations.back().mark.op, Operator::logits);
  const Traffic logits = traffic_of(steps[1].operations.back());
  EXPECT_EQ(logits.written.at(Kind::scratch), Bytes(4 * 32000));
  EXPECT_EQ(logits.read.at(Kind::weights), Bytes(2 * 2048 * 32000));
}

TEST(Prefill, ReadsNormsOnce) {
  const LlmRun run = test_run(qwen3_06b(), weight_format("F16"), {.prompt = 64, .generate = 0, .threads = 4});
  const Step step = steps_of(run).back();
  for (const Operation& operation : step.operations) {
    if (operation.mark.op == Operator::attn_norm) {
      EXPECT_EQ(traffic_of(operation).read.at(Kind::weights).count(), 1024 * 4);
    }
    if (operation.mark.op == Operator::qk_norm) {
      EXPECT_EQ(traffic_of(operation).read.at(Kind::weights).count(), 2 * 128 * 4);
    }
  }
}

TEST(Prefill, ReadsWeightsOncePerSixteenTokens) {
  for (const std::int64_t tokens : {1, 16, 17, 100}) {
    const LlmRun run = test_run(tinyllama(), weight_format("Q4_0"), {.prompt = tokens, .generate = 0});
    const Step step = steps_of(run).back();
    for (const Operation& operation : step.operations) {
      if (operation.mark.op == Operator::ffn_gate && operation.mark.layer == Layer(0)) {
        EXPECT_EQ(traffic_of(operation).read.at(Kind::weights).count(),
                  (tokens + 15) / 16 * 5632 * 2048 / 32 * 18);
        EXPECT_EQ(traffic_of(operation).read.at(Kind::scratch).count(), 4 * tokens * 2048 * 4)
            << "by each of four threads";
        EXPECT_EQ(traffic_of(operation).written.at(Kind::scratch).count(), tokens * 5632 * 4);
      }
      if (operation.mark.op == Operator::embedding) {
        EXPECT_EQ(traffic_of(operation).read.at(Kind::weights).count(), tokens * 2048 / 32 * 18);
      }
    }
  }
}

/// Rows, columns and operations per 32 weights of a layer's matrices, and tokens that go through them.
TEST(Compute, OfEveryProductAddsUpToItsFormula) {
  for (const std::int64_t tokens : {1, 37}) {
    for (const std::int64_t threads : {1, 3, 8}) {
      const LlmRun run = test_run(qwen25_05b(), weight_format("Q8_0"),
                                  {.prompt = tokens, .generate = 0, .threads = threads});
      const std::map<Operator, std::array<std::int64_t, 2>> matrices = {
          {Operator::q_proj, {896, 896}},    {Operator::k_proj, {128, 896}},
          {Operator::v_proj, {128, 896}},    {Operator::attn_output, {896, 896}},
          {Operator::ffn_gate, {4864, 896}}, {Operator::ffn_up, {4864, 896}},
          {Operator::ffn_down, {896, 4864}}};
      const Step step = steps_of(run).back();
      for (const Operation& operation : step.operations) {
        const auto found = matrices.find(operation.mark.op);
        if (found == matrices.end() || operation.mark.layer != Layer(5)) {
          continue;
        }
        const auto [rows, columns] = found->second;
        const double exact = static_cast<double>(rows * columns * tokens) / 32 * 6.5;
        const auto sum = static_cast<double>(operations_of(operation));
        EXPECT_GE(sum, exact) << to_string(operation.mark.op);
        EXPECT_LT(sum, exact + static_cast<double>(threads)) << "each thread rounds up";
      }
    }
  }
}

TEST(Compute, OfAttentionCountsVisiblePairs) {
  for (const std::int64_t threads : {1, 4, 16}) {
    LlmRun run =
        test_run(qwen3_06b(), weight_format("F16"), {.prompt = 30, .generate = 0, .threads = threads});
    run.engine.ubatch = 20;
    const Step step = steps_of(run).back();
    for (const Operation& operation : step.operations) {
      if (operation.mark.op == Operator::attention) {
        const std::uint64_t pairs = (20 * 10 + 55) * 16;  // ten queries behind twenty tokens, sixteen heads
        EXPECT_EQ(operations_of(operation), pairs * (2 * 128 / 32 * 8 + 6));
      }
    }
  }
}

TEST(Threads, ShareEvenly) {
  for (const std::int64_t items : {0, 1, 5, 8, 100, 32000}) {
    for (const std::int64_t threads : {1, 3, 4, 8}) {
      std::int64_t even = 0, leading = 0;
      for (std::int64_t i = 0; i < threads; ++i) {
        const Share a = even_share(items, threads, i), b = leading_share(items, threads, i);
        EXPECT_EQ(a.first, even);
        EXPECT_EQ(b.first, leading);
        EXPECT_LE(std::abs(a.count() * threads - items), threads);
        even = a.last;
        leading = b.last;
      }
      EXPECT_EQ(even, items);
      EXPECT_EQ(leading, items);
    }
  }
  EXPECT_EQ(leading_share(1, 4, 0), (Share{.first = 0, .last = 1})) << "one token is the first thread's";
}

TEST(Threads, WithoutAHeadDoNotAttend) {
  const LlmRun run = test_run(tinyllama(), weight_format("F16"), {.prompt = 0, .generate = 1, .threads = 6});
  const Step step = steps_of(run).back();
  for (const Operation& operation : step.operations) {
    if (operation.mark.op == Operator::attention) {
      std::set<std::uint32_t> streams;
      for (const Compute& c : operation.computes) {
        streams.insert(c.stream.value());
      }
      EXPECT_THAT(streams, ElementsAre(0, 1, 2, 3)) << "TinyLlama has four KV heads";
    }
  }
}

}  // namespace
}  // namespace kvsim::trace
