// SPDX-License-Identifier: Apache-2.0
#include "sim/run/expert_stream.h"

#include <algorithm>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "configs/spec/resolve.h"
#include "traces/workload/memory_layout.h"
#include "traces/workload/workload.h"

namespace kvsim::sim {
namespace {

using namespace kvsim::literals;

/// Qwen3-30B-A3B with few layers.
config::RunSpec spec(Bytes cache) {
  config::RunSpec spec;
  spec.device = config::load_device("rk3588");
  spec.device.storage = config::load_storage_part("ufs_4_phone");
  spec.model = config::load_llm("qwen3_30b_a3b");
  spec.model.layers = 3;
  spec.model.vocabulary = 1024;
  spec.engine.weights = config::load_weight_format("Q4_K_M");
  spec.engine.experts.place = config::ExpertPlace::streamed;
  spec.engine.experts.cache = cache;
  spec.workload = {.prompt = 4, .generate = 12, .threads = 2};
  return spec;
}

/// Plays the workload's stream through `stream` without a clock.
struct Played {
  model::ExpertReads reads;
  Bytes lowest{1'000'000'000'000}, highest;  ///< addresses of weights that are not resident
  Bytes experts;                             ///< of weights there
};

Played play(const config::RunSpec& spec) {
  trace::LlmWorkload source(trace::llm_run(spec));
  OperationReader reader(source, spec.device);
  std::optional<ExpertStream> stream;
  trace::Alloc cache;
  Played played;
  while (const OperationReader::Item* item = reader.next()) {
    if (const auto* alloc = std::get_if<trace::Alloc>(item)) {
      if (trace::to_string(alloc->name) == trace::kExpertCacheName) {
        cache = *alloc;
        stream.emplace(spec, cache);
        reader.set_end(stream->end());
      }
    } else if (const auto* operation = std::get_if<Operation>(item)) {
      const Operation placed = stream->placed(*operation);
      EXPECT_EQ(bytes_of(placed), bytes_of(*operation));
      for (const model::ThreadWork& thread : placed.threads) {
        for (const trace::Extent& e : thread.extents) {
          if (e.address >= cache.address) {
            const Bytes first(static_cast<std::int64_t>(e.address - cache.address));
            played.lowest = std::min(played.lowest, first);
            played.highest = std::max(played.highest, first + e.row_bytes);
            played.experts += total_bytes(e);
          }
        }
      }
      played.reads += stream->done(*operation, 100_us);
    }
  }
  EXPECT_LE(played.highest, cache.bytes);
  return played;
}

/// A matrix of an expert is read once by each step that uses it, whoever of the threads: what is asked for
/// is what is read from the cache's memory.
TEST(ExpertStream, ExpertsAreReadWhereTheyLieInTheCache) {
  const Played played = play(spec(120_MiB));
  EXPECT_EQ(played.experts, played.reads.asked);
  EXPECT_GT(played.reads.hits, 0);
  EXPECT_GT(played.reads.misses, 0);
  EXPECT_EQ(played.reads.asked, played.reads.cached + played.reads.read - played.reads.rounding);
  EXPECT_GT(played.reads.stall, 0_ps);
  EXPECT_EQ(played.lowest, 0_B);
}

TEST(ExpertStream, ALargerCacheHitsMore) {
  const auto share = [](Bytes cache) {
    const model::ExpertReads reads = play(spec(cache)).reads;
    return static_cast<double>(reads.hits) / static_cast<double>(reads.hits + reads.misses);
  };
  EXPECT_EQ(share(0_B), 0);
  EXPECT_LT(share(100_MiB), share(300_MiB));
}

/// What policies and overlap do not change: what is asked for.
TEST(ExpertStream, PoliciesAnswerTheSameRequests) {
  config::RunSpec changed = spec(200_MiB);
  const model::ExpertReads lru = play(changed).reads;
  for (const auto policy : {config::ExpertPolicy::lfu, config::ExpertPolicy::pinned}) {
    changed.engine.experts.policy = policy;
    const model::ExpertReads other = play(changed).reads;
    EXPECT_EQ(other.asked, lru.asked);
    EXPECT_GT(other.hits, 0);
  }
  changed.engine.experts.policy = config::ExpertPolicy::lru;
  changed.engine.experts.overlap = true;
  const model::ExpertReads overlapped = play(changed).reads;
  EXPECT_EQ(overlapped.read, lru.read);
  EXPECT_LT(overlapped.stall, lru.stall);
}

/// As a recording of another model would.
TEST(ExpertStream, RefusesAStreamOfAnotherModel) {
  const config::RunSpec given = spec(100_MiB);
  const trace::Alloc cache{.address = 0, .bytes = 100_MiB, .kind = trace::Kind::weights, .name = {}};
  ExpertStream stream(given, cache);
  const trace::Address file = trace::expert_file(100 << 20);
  const auto layers = config::expert_layers(given.model, config::tensors(given.model, given.engine.weights));
  const auto reads = [&](std::vector<Bytes> places) {
    Operation operation;
    operation.mark.op = trace::Operator::expert_up;
    model::ThreadWork& thread = operation.threads.emplace_back();
    for (const Bytes at : places) {
      thread.extents.push_back({.address = file + static_cast<trace::Address>(at.count()),
                                .row_bytes = 64_B,
                                .rows = 1,
                                .stride = 64_B,
                                .kind = trace::Kind::weights});
    }
    return message_of([&] { static_cast<void>(stream.placed(operation)); });
  };
  EXPECT_THAT(reads({0_B}), ::testing::HasSubstr("does not belong to this model")) << "the embedding";
  EXPECT_EQ(reads({layers[1][0].offset}), "no error");
  EXPECT_THAT(reads({layers[1][0].offset + layers[1][0].each}), ::testing::HasSubstr("did not ask for"));
  EXPECT_THAT(reads({layers[2][0].offset}), ::testing::HasSubstr("did not ask for"));
}

TEST(ExpertStream, RefusesWhatCannotBe) {
  const trace::Alloc cache{.address = 0, .bytes = 100_MiB, .kind = trace::Kind::weights, .name = {}};
  config::RunSpec none = spec(100_MiB);
  none.device.storage.reset();
  EXPECT_THAT(message_of([&] { const ExpertStream stream(none, cache); }), ::testing::HasSubstr("storage"));
  config::RunSpec small = spec(100_MiB);
  small.device.storage->capacity = 512_MiB;
  EXPECT_THAT(message_of([&] { const ExpertStream stream(small, cache); }),
              ::testing::HasSubstr("do not fit on"));
  config::RunSpec pinned = spec(70_MiB);
  pinned.engine.experts.policy = config::ExpertPolicy::pinned;
  pinned.workload.prompt = 400;
  EXPECT_THAT(message_of([&] { static_cast<void>(play(pinned)); }),
              ::testing::HasSubstr("no room for pinned ones"));
}

}  // namespace
}  // namespace kvsim::sim
