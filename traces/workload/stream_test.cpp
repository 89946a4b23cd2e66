// SPDX-License-Identifier: Apache-2.0
// Properties that every stream has, whatever the model, and runs that make no sense.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/error.h"
#include "traces/codec/codec_testing.h"
#include "traces/record/random_records.h"
#include "traces/record/sinks.h"
#include "traces/workload/step_testing.h"
#include "traces/workload/test_models.h"
#include "traces/workload/workload.h"

namespace kvsim::trace {
namespace {

using ::testing::HasSubstr;

/// Every access lies in an allocation of its kind.
void expect_inside(const LlmRun& run) {
  std::vector<Alloc> allocs;
  for (const Record& record : records_of(run)) {
    if (const auto* alloc = std::get_if<Alloc>(&record)) {
      allocs.push_back(*alloc);
    } else if (const auto* e = std::get_if<Extent>(&record)) {
      const Address last = e->address + (e->rows - 1U) * static_cast<Address>(e->stride.count()) +
                           static_cast<Address>(e->row_bytes.count()) - 1;
      ASSERT_TRUE(std::any_of(allocs.begin(), allocs.end(),
                              [&](const Alloc& a) {
                                return a.kind == e->kind && e->address >= a.address &&
                                       last - a.address < static_cast<Address>(a.bytes.count());
                              }))
          << to_string(e->kind) << " at " << e->address;
    }
    ASSERT_TRUE(well_formed(record));
  }
  const MemoryLayout layout = allocations(run, context_tokens(run.workload));
  EXPECT_EQ(std::ssize(allocs), std::count_if(layout.begin(), layout.end(),
                                              [](const Allocation& a) { return a.bytes > Bytes(0); }));
}

TEST(Stream, StaysWithinItsAllocations) {
  std::vector<config::LlmSpec> models = every_family();
  for (const config::LlmSpec& model : mixtures()) {
    models.push_back(model);
  }
  for (config::LlmSpec model : models) {
    model.layers = 2;
    for (const std::int64_t threads : {1, 5}) {
      LlmRun run = test_run(model, mixed_format(), {.prompt = 70, .generate = 2, .threads = threads});
      run.base = 123'456'789;
      run.engine.ubatch = 33;
      expect_inside(run);
      run.engine.kv = config::parse_kv_spec("q8_0+first=3+recent=20");
      expect_inside(run);
    }
  }
}

/// Other kinds of attention, and an engine's habits.
void vary(LlmRun& run, Rng& rng) {
  config::LlmSpec& model = run.model;
  model.post_norms = rng.below(2) == 0;
  if (rng.below(3) == 0) {
    const std::int64_t period = rng.between(1, 3);
    model.local =
        config::LocalLayers{.window = rng.between(1, 40), .count = rng.between(1, period), .period = period};
  } else if (rng.below(2) == 0) {
    model.kv_heads = 1;
    model.fused_qkv = model.qkv_bias = model.qk_norm = false;
    model.head_dim = rng.between(2, 40);
    model.latent = config::LatentAttention{.kv_rank = rng.between(1, 50),
                                           .q_rank = rng.between(0, 20),
                                           .rope_dim = rng.between(1, model.head_dim - 1),
                                           .value_dim = rng.between(1, 30)};
  }
  run.engine.kv_cache = static_cast<config::KvCacheUse>(rng.below(2));
  run.engine.kv_walk = static_cast<config::KvWalk>(rng.below(2));
  run.engine.repack = rng.below(2) == 0;
  run.engine.v_transposed = run.engine.kv_layout != config::KvLayout::paged &&
                            run.engine.kv_row_alignment == Bytes(1) && rng.below(2) == 0;
}

TEST(Stream, StaysWithinItsAllocationsWhateverTheGeometry) {
  Rng rng(12);
  for (int round = 0; round < 200; ++round) {
    const std::int64_t kv_heads = rng.between(1, 6);
    config::LlmSpec model =
        geometry("random", {rng.between(1, 3), rng.between(1, 90), kv_heads * rng.between(1, 5), kv_heads,
                            rng.between(1, 40), rng.between(1, 100), rng.between(1, 200)});
    model.tied_embeddings = rng.below(2) == 0;
    model.fused_qkv = rng.below(3) == 0;
    model.qkv_bias = rng.below(2) == 0;
    model.qk_norm = rng.below(2) == 0;
    model.rope_factors = rng.between(0, 2);
    LlmRun run =
        test_run(model, weight_format("F16"),
                 {.prompt = rng.between(0, 50), .generate = rng.between(1, 4), .threads = rng.between(1, 9)});
    run.engine.ubatch = rng.between(1, 60);
    run.engine.kv_tile = rng.between(1, 20);
    run.engine.prefill_columns = rng.between(1, 20);
    run.engine.context_padding = rng.between(1, 64);
    run.engine.kv_layout = static_cast<config::KvLayout>(rng.below(3));
    run.engine.kv_block = rng.between(1, 20);
    run.engine.kv_block_order = static_cast<config::KvBlockOrder>(rng.below(2));
    run.engine.kv_row_alignment = Bytes(rng.below(2) == 0 ? 1 : 64);
    run.seed = rng.below(100);
    vary(run, rng);
    ASSERT_NO_FATAL_FAILURE(expect_inside(run)) << "round " << round;
    ASSERT_NO_FATAL_FAILURE(expect_data_flow(run)) << "round " << round;
  }
}

TEST(Stream, ReadsOnlyWhatWasWrittenAndThreadsDoNotMeet) {
  for (config::LlmSpec model : every_family()) {
    model.layers = 2;
    for (const std::int64_t threads : {1, 3, 4, 8}) {
      LlmRun run = test_run(model, weight_format("F16"), {.prompt = 20, .generate = 2, .threads = threads});
      run.engine.ubatch = 12;
      ASSERT_NO_FATAL_FAILURE(expect_data_flow(run)) << model.name << " " << threads;
    }
  }
}

TEST(Stream, IsTheSameEachTime) {
  const LlmRun run = test_run(qwen3_06b(), mixed_format(), {.prompt = 20, .generate = 2});
  EXPECT_EQ(records_of(run), records_of(run));
}

TEST(Stream, BatchesEndWithSteps) {
  LlmWorkload workload(test_run(qwen25_05b(), weight_format("F16"), {.prompt = 600, .generate = 3}));
  int ends = 0;
  for (std::vector<Record> batch; workload.next(batch);) {
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const auto* mark = std::get_if<Mark>(&batch[i]);
      if (mark != nullptr && mark->what == Mark::What::step_end) {
        ++ends;
        EXPECT_EQ(i, batch.size() - 1);
      }
    }
  }
  EXPECT_EQ(ends, 2 + 3 + 2) << "ubatches, tokens, probes at 512 and 0";
  std::vector<Record> batch(1);
  EXPECT_FALSE(workload.next(batch));
  EXPECT_TRUE(batch.empty());
}

class Recording : public TemporaryFolder {};

TEST_F(Recording, GivesTheRecordsThatWerePassedOn) {
  for (const config::LlmSpec& model : every_family()) {
    LlmRun run = test_run(model, mixed_format(), {.prompt = 40, .generate = 2});
    run.model.layers = 3;
    LlmWorkload workload(run);
    TraceWriter writer(file(), test_header());
    Tee tee(workload, writer);
    std::vector<Record> live;
    for (std::vector<Record> batch; tee.next(batch);) {
      live.insert(live.end(), batch.begin(), batch.end());
    }
    writer.finish();
    ASSERT_EQ(read_trace(file()), live) << model.name;
  }
}

std::string refusal(const LlmRun& run) {
  try {
    LlmWorkload workload(run);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(BadRuns, AreRefusedInWords) {
  const LlmRun good = test_run(tinyllama(), weight_format("F16"), {.prompt = 1, .generate = 1});
  EXPECT_EQ(refusal(good), "accepted");
  const auto spoiled = [&](auto spoil) {
    LlmRun run = good;
    spoil(run);
    return refusal(run);
  };
  EXPECT_THAT(spoiled([](LlmRun& r) { r.workload.threads = 0; }), HasSubstr("workload.threads"));
  EXPECT_THAT(spoiled([](LlmRun& r) { r.workload.threads = kMaxStreams + 1; }),
              HasSubstr("workload.threads"));
  EXPECT_THAT(spoiled([](LlmRun& r) { r.workload.prompt = -1; }), HasSubstr("negative"));
  EXPECT_THAT(spoiled([](LlmRun& r) { r.workload.prompt = r.workload.generate = 0; }), HasSubstr("both 0"));
  EXPECT_THAT(spoiled([](LlmRun& r) { r.workload.prompt = 1LL << 40; }), HasSubstr("2^31"));
  EXPECT_THAT(spoiled([](LlmRun& r) { r.model.kv_heads = 5; }), HasSubstr("multiple of its kv_heads"));
  EXPECT_THAT(spoiled([](LlmRun& r) { r.model.layers = 0; }), HasSubstr("layers"));
  EXPECT_THAT(spoiled([](LlmRun& r) { r.engine.kv_tile = 0; }), HasSubstr("kv_tile"));
  EXPECT_THAT(spoiled([](LlmRun& r) { r.engine.kv = config::parse_kv_spec("int8:g48"); }),
              HasSubstr("multiple of 48"));
  EXPECT_THAT(spoiled([](LlmRun& r) {
                r.workload.prompt = 2'000'000'000;
                r.model.heads = r.model.kv_heads = 1LL << 31;
                r.model.layers = 1;
                r.model.width = 1;
              }),
              HasSubstr("2^63"));
}

}  // namespace
}  // namespace kvsim::trace
