// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts: operators, the bytes that a token reads, and what a prompt reads.
#include <map>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/error.h"
#include "configs/spec/tensors.h"
#include "traces/workload/step_testing.h"
#include "traces/workload/test_models.h"

namespace kvsim::trace {
namespace {

using namespace kvsim::literals;
using ::testing::ElementsAre;

std::vector<Operator> operators_of(const config::LlmSpec& model, std::uint32_t layer) {
  std::vector<Operator> ops;
  const Step step = steps_of(test_run(model, weight_format("F16"), {.prompt = 0, .generate = 1})).back();
  for (const Operation& operation : step.operations) {
    if (operation.mark.layer == Layer(layer) && operation.mark.op != Operator::embedding) {
      ops.push_back(operation.mark.op);
    }
  }
  return ops;
}

TEST(Mixture, OperatorsAreRouterChoiceChosenAndSharedExperts) {
  using enum Operator;
  EXPECT_THAT(operators_of(qwen3_30b_a3b(), 5),
              ElementsAre(attn_norm, q_proj, k_proj, v_proj, qk_norm, rope, kv_append, attention, attn_output,
                          ffn_norm, router, expert_choice, expert_up, expert_gate, expert_activation,
                          expert_down, expert_sum));
  EXPECT_THAT(
      operators_of(deepseek_v2_lite(), 1),
      ElementsAre(attn_norm, q_proj, kv_latent, latent_norm, rope, q_absorb, kv_append, attention, v_absorb,
                  attn_output, ffn_norm, router, expert_choice, expert_up, expert_gate, expert_activation,
                  expert_down, expert_sum, ffn_gate, ffn_up, activation, ffn_down));
}

bool is_expert_tensor(const config::TensorInfo& tensor) {
  return tensor.name.find("_exps.") != std::string::npos;
}

TEST(Mixture, ATokenReadsItsExpertsAndAllElseOnce) {
  for (const config::LlmSpec& model : mixtures()) {
    for (const config::WeightFormat& format : {weight_format("Q4_0"), mixed_format()}) {
      for (const std::int64_t threads : {1, 3, 4}) {
        const LlmRun run = test_run(model, format, {.prompt = 3, .generate = 2, .threads = threads});
        Bytes expected;
        for (const config::TensorInfo& tensor : config::tensors(run.model, run.engine.weights)) {
          const bool embedding = tensor.role == config::TensorRole::token_embedding;
          const Bytes experts = tensor.bytes / model.experts->count * model.experts->used;
          expected += is_expert_tensor(tensor) ? experts
                      : embedding              ? tensor.bytes / tensor.rows
                                               : tensor.bytes;
        }
        for (const Step& step : {steps_of(run)[1], steps_of(run)[2]}) {
          EXPECT_EQ(traffic_of(step).read.at(Kind::weights), expected) << model.name << " " << threads;
        }
      }
    }
  }
}

TEST(Mixture, Qwen3ReadsTheMeasuredMebibytesOfExpertsPerToken) {
  // 128 experts in Q4_K_M: 1051 MiB per token from flash without an expert cache (BigMoeOnEdge,
  // docs/bench-data).
  const LlmRun run = test_run(qwen3_30b_a3b(), mixed_format(), {.prompt = 0, .generate = 1});
  Bytes read;
  const Step step = steps_of(run).back();
  for (const Operation& operation : step.operations) {
    const bool expert = operation.mark.op == Operator::expert_gate ||
                        operation.mark.op == Operator::expert_up ||
                        operation.mark.op == Operator::expert_down;
    read += expert ? traffic_of(operation).read.at(Kind::weights) : Bytes();
  }
  EXPECT_NEAR(ratio(read, 1_MiB), 1051, 0.01 * 1051);
}

/// Experts of `tensor` that an operation reads, whole, and how often.
std::map<std::int64_t, std::int64_t> experts_read(const Operation& operation,
                                                  const config::TensorInfo& tensor, std::int64_t experts,
                                                  std::int64_t threads) {
  std::map<std::int64_t, Bytes> bytes;
  const Bytes size = tensor.bytes / experts;
  for (const Extent& e : operation.extents) {
    if (e.kind == Kind::weights) {
      const auto offset = static_cast<std::int64_t>(e.address) - tensor.offset.count();
      EXPECT_GE(offset, 0);
      EXPECT_LT(offset, tensor.bytes.count());
      EXPECT_EQ(offset / size.count(), (offset + total_bytes(e).count() - 1) / size.count());
      bytes[offset / size.count()] += total_bytes(e);
    }
  }
  EXPECT_GE(threads, 1);
  std::map<std::int64_t, std::int64_t> times;
  for (const auto& [expert, read] : bytes) {
    EXPECT_EQ(read.count() % size.count(), 0);
    times[expert] = read.count() / size.count();
  }
  return times;
}

const config::TensorInfo& tensor_named(const std::vector<config::TensorInfo>& all, const std::string& name) {
  return *std::find_if(all.begin(), all.end(), [&](const auto& tensor) { return tensor.name == name; });
}

TEST(Mixture, AllThreeProductsOfALayerReadTheSameExperts) {
  const LlmRun run = test_run(small_mixture(), weight_format("Q8_0"), {.prompt = 40, .generate = 3});
  const std::vector<config::TensorInfo> tensors = config::tensors(run.model, run.engine.weights);
  const std::map<Operator, std::string> names = {{Operator::expert_gate, "ffn_gate_exps"},
                                                 {Operator::expert_up, "ffn_up_exps"},
                                                 {Operator::expert_down, "ffn_down_exps"}};
  std::set<std::map<std::int64_t, std::int64_t>> choices;
  for (const Step& step : steps_of(run)) {
    std::map<std::uint32_t, std::map<std::int64_t, std::int64_t>> by_layer;
    for (const Operation& operation : step.operations) {
      const auto name = names.find(operation.mark.op);
      if (name == names.end()) {
        continue;
      }
      const std::uint32_t layer = operation.mark.layer.value();
      const auto& tensor =
          tensor_named(tensors, "blk." + std::to_string(layer) + "." + name->second + ".weight");
      const auto read = experts_read(operation, tensor, 8, 4);
      const auto [at, first] = by_layer.emplace(layer, read);
      EXPECT_TRUE(first || at->second == read);
      if (step.mark.tokens == 1) {
        EXPECT_EQ(read.size(), 3U);
        choices.insert(read);
      }
    }
  }
  EXPECT_GT(choices.size(), 3U) << "layers and tokens differ";
}

TEST(Mixture, APromptReadsAnExpertOncePerSixteenOfItsTokens) {
  LlmRun run = test_run(small_mixture(), weight_format("Q8_0"), {.prompt = 100, .generate = 0});
  run.workload.experts = {.popularity = 0, .reuse = 1};  // all tokens take the first one's
  const std::vector<config::TensorInfo> tensors = config::tensors(run.model, run.engine.weights);
  const Step step = steps_of(run).front();
  for (const Operation& operation : step.operations) {
    if (operation.mark.op == Operator::expert_up && operation.mark.layer == Layer(1)) {
      const auto read = experts_read(operation, tensor_named(tensors, "blk.1.ffn_up_exps.weight"), 8, 4);
      ASSERT_EQ(read.size(), 3U);
      for (const auto& [expert, times] : read) {
        EXPECT_EQ(times, (100 + 15) / 16) << expert;
      }
    }
  }
  run.workload.experts = {.popularity = 0, .reuse = 0};
  const Step mixed = steps_of(run).front();
  for (const Operation& operation : mixed.operations) {
    if (operation.mark.op == Operator::expert_up && operation.mark.layer == Layer(1)) {
      const auto read = experts_read(operation, tensor_named(tensors, "blk.1.ffn_up_exps.weight"), 8, 4);
      EXPECT_EQ(read.size(), 8U) << "a hundred tokens take every expert";
    }
  }
}

TEST(Mixture, OperationsAreThoseOfTheExpertsUsed) {
  for (const std::int64_t tokens : {1, 37}) {
    const LlmRun run = test_run(small_mixture(), weight_format("Q8_0"), {.prompt = tokens, .generate = 0});
    const Step step = steps_of(run).front();
    for (const Operation& operation : step.operations) {
      const bool product = operation.mark.op == Operator::expert_up ||
                           operation.mark.op == Operator::expert_gate ||
                           operation.mark.op == Operator::expert_down;
      if (product && operation.mark.layer == Layer(1)) {
        const double exact = 3.0 * 96 * 128 / 32 * 6.5 * static_cast<double>(tokens);
        const auto sum = static_cast<double>(operations_of(operation));
        EXPECT_GE(sum, exact);
        EXPECT_LT(sum, exact + 4);
      }
    }
  }
}

TEST(Mixture, EveryNumberReadWasWrittenAndThreadsStayApart) {
  for (config::LlmSpec model : mixtures()) {
    model.layers = 3;
    for (const std::int64_t threads : {1, 3, 5}) {
      LlmRun run = test_run(model, mixed_format(), {.prompt = 21, .generate = 2, .threads = threads});
      run.engine.ubatch = 9;
      run.engine.context_padding = 1;
      expect_data_flow(run);
    }
  }
}

TEST(Mixture, DecodeStepsDifferOnlyInAddresses) {
  // What `auto` takes for alike: the same extents of every thread, wherever they lie.
  const LlmRun run = test_run(small_mixture(), weight_format("Q8_0"), {.prompt = 5, .generate = 4});
  const std::vector<Step> steps = steps_of(run);
  const auto shape = [](const Step& step) {
    std::vector<std::tuple<int, std::int64_t, std::uint32_t, std::uint32_t>> all;
    for (const Operation& operation : step.operations) {
      if (operation.mark.op == Operator::attention) {
        continue;
      }
      for (const Extent& e : operation.extents) {
        all.emplace_back(static_cast<int>(operation.mark.op), e.row_bytes.count(), e.rows, e.stream.value());
      }
    }
    return all;
  };
  EXPECT_EQ(shape(steps[1]), shape(steps[2]));
  EXPECT_EQ(shape(steps[1]), shape(steps[4]));
}

TEST(Mixture, ComputeBufferIsLlamaCpps) {
  // Qwen3-30B-A3B, context 4096, logits of one token: 92 MiB.
  const LlmRun run = test_run(qwen3_30b_a3b(), weight_format("Q4_0"), {.prompt = 4095, .generate = 1});
  const Bytes bytes = allocations(run, 4096)[static_cast<std::size_t>(Region::compute_buffer)].bytes;
  EXPECT_EQ(bytes.count(), 512 * (4 * 45062 + 2 * 4096));
}

TEST(Mixture, ExpertsThatMakeNoSenseAreRefused) {
  LlmRun run = test_run(small_mixture(), weight_format("Q8_0"), {.prompt = 5, .generate = 1});
  run.model.experts->used = 9;
  EXPECT_THROW(LlmWorkload{run}, UserError);
}

}  // namespace
}  // namespace kvsim::trace
