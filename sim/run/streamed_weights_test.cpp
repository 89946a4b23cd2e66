// SPDX-License-Identifier: Apache-2.0
#include "sim/run/streamed_weights.h"

#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "configs/spec/resolve.h"
#include "sim/run/in_memory.h"
#include "traces/workload/memory_layout.h"
#include "traces/workload/workload.h"

namespace kvsim::sim {
namespace {

using namespace kvsim::literals;

config::RunSpec spec(Bytes locked, const char* model = "tinyllama_1_1b") {
  config::RunSpec spec;
  spec.device = config::load_device("rk3588");
  spec.model = config::load_llm(model);
  spec.model.layers = 4;
  spec.model.vocabulary = 4096;
  spec.engine.weights = config::load_weight_format("Q4_K_M");
  spec.engine.ubatch = 8;
  spec.workload = {.prompt = 20, .generate = 3, .threads = 2};
  spec.memory.weights = config::WeightBacking::streamed;
  spec.memory.locked = locked;
  return spec;
}

struct Step {
  trace::Mark mark;
  model::PagingUse use;
};

struct Played {
  std::vector<Step> steps;
  Bytes held;     ///< of the weights
  Bytes highest;  ///< of the weights' addresses
};

Played play(const config::RunSpec& spec, Picoseconds each = 1_ms) {
  trace::LlmWorkload source(trace::llm_run(spec));
  OperationReader reader(source, spec.device);
  std::optional<StreamedWeights> weights;
  Played played;
  while (const OperationReader::Item* item = reader.next()) {
    if (const auto* alloc = std::get_if<trace::Alloc>(item)) {
      if (is_streamed(spec, *alloc)) {
        weights.emplace(spec, *alloc);
        reader.set_end(weights->end());
        for (const trace::Alloc& part : in_memory(spec, *alloc)) {
          played.held += part.bytes;
        }
      }
    } else if (const auto* mark = std::get_if<trace::Mark>(item)) {
      if (mark->what == trace::Mark::What::step_begin) {
        played.steps.push_back({.mark = *mark, .use = {}});
        weights->begin_step(*mark);
      }
    } else if (const auto* operation = std::get_if<Operation>(item)) {
      for (const model::ThreadWork& thread : weights->placed(*operation).threads) {
        for (const trace::Extent& e : thread.extents) {
          if (e.kind == trace::Kind::weights) {
            const Bytes end(static_cast<std::int64_t>(e.address) + e.stride.count() * (e.rows - 1) +
                            e.row_bytes.count());
            played.highest = std::max(played.highest, end);
          }
        }
      }
      played.steps.back().use += weights->run(*operation, each);
    }
  }
  return played;
}

/// Of a step: the units without what is locked in whole blocks, and no output where no token is chosen.
Bytes units_read(const config::RunSpec& spec, bool with_output) {
  std::vector<config::WeightUnit> units = config::without_first(
      config::weight_units(spec.model, config::tensors(spec.model, spec.engine.weights)), spec.memory.locked);
  if (!with_output) {
    units.pop_back();
  }
  Bytes bytes;
  for (const config::WeightUnit& unit : units) {
    bytes += config::read_bytes(unit);
  }
  return bytes;
}

/// Besides a step reads a row of the embedding for each token, in one block or two.
TEST(StreamedWeights, EachStepReadsTheFileWithoutWhatIsLocked) {
  for (const char* model : {"tinyllama_1_1b", "qwen2_5_0_5b"}) {
    for (const Bytes locked : {0_B, 10_MiB, 30_MiB}) {
      const config::RunSpec run = spec(locked, model);
      const Played played = play(run);
      ASSERT_EQ(played.steps.size(), 7U) << "20 prompt tokens in three pieces, three tokens, a probe";
      for (std::size_t i = 0; i < played.steps.size(); ++i) {
        const Step& step = played.steps[i];
        const Bytes rows = step.use.read - units_read(run, i >= 2);
        EXPECT_GE(rows, 4_KiB * step.mark.tokens) << model << " " << i;
        EXPECT_LE(rows, 8_KiB * step.mark.tokens) << model << " " << i;
        EXPECT_GT(step.use.asked, 0_B);
      }
    }
  }
}

TEST(StreamedWeights, WhatIsLockedTakesNoTime) {
  const Played none = play(spec(0_B));
  const Played some = play(spec(40_MiB));
  const Played all = play(spec(1_GiB));
  const auto stall = [](const Played& played) { return played.steps.back().use.stall; };
  EXPECT_GT(stall(none), stall(some));
  EXPECT_GT(stall(some), stall(all));
  EXPECT_LE(all.steps.back().use.read, 8_KiB) << "a row of the embedding";
  EXPECT_EQ(play(spec(1_GiB, "qwen2_5_0_5b")).steps.back().use.read, 0_B) << "which is the output matrix";
}

/// Locked bytes and two of the largest unit; addresses stay within them.
TEST(StreamedWeights, TakesMemoryForWhatIsLockedAndForBuffers) {
  const config::RunSpec run = spec(6_MiB);
  Bytes largest;
  for (const config::WeightUnit& unit : config::without_first(
           config::weight_units(run.model, config::tensors(run.model, run.engine.weights)), 6_MiB)) {
    largest = std::max(largest, config::read_bytes(unit));
  }
  const Played played = play(run);
  EXPECT_EQ(played.held, 6_MiB + largest * 2);
  EXPECT_GT(played.highest, played.held / 2);
  EXPECT_LE(played.highest, played.held + run.device.os.page);
}

TEST(StreamedWeights, RefusesAFileThatTheStorageDoesNotHold) {
  config::RunSpec run = spec(0_B);
  run.device.storage->capacity = 16_MiB;
  EXPECT_THAT(message_of([&] { static_cast<void>(play(run)); }), ::testing::HasSubstr("do not fit on"));
}

TEST(InMemory, LockedBytesOfAMappingAreApart) {
  config::RunSpec run = spec(10_MiB);
  run.memory.weights = config::WeightBacking::mapped;
  const trace::Alloc weights{.address = 4096,
                             .bytes = 64_MiB,
                             .kind = trace::Kind::weights,
                             .backing = trace::Backing::file_mapped,
                             .name = trace::alloc_name("weights")};
  const std::vector<trace::Alloc> parts = in_memory(run, weights);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].bytes, 10_MiB);
  EXPECT_EQ(parts[0].backing, trace::Backing::device_contiguous);
  EXPECT_EQ(parts[1].address, 4096U + (10 << 20));
  EXPECT_EQ(parts[1].bytes, 54_MiB);
  EXPECT_EQ(parts[1].backing, trace::Backing::file_mapped);
  run.memory.locked = 1_GiB;
  ASSERT_EQ(in_memory(run, weights).size(), 1U);
  EXPECT_EQ(in_memory(run, weights)[0].bytes, 64_MiB);
  run.memory.locked = 0_B;
  EXPECT_EQ(in_memory(run, weights), std::vector{weights});
}

}  // namespace
}  // namespace kvsim::sim
