// SPDX-License-Identifier: Apache-2.0
#include "models/expert_cache/expert_cache.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "models/storage/test_part.h"
#include "traces/record/spread.h"

namespace kvsim::model {
namespace {

using namespace kvsim::literals;
using config::ExpertLayer;
using config::ExpertPolicy;
using Ids = std::vector<std::uint32_t>;

constexpr std::int64_t kExperts = 8;
constexpr std::uint32_t kLayers = 4;
constexpr Bytes kPart = 32_KiB;
constexpr Bytes kExpert = 64_KiB;

/// Two matrices a layer, an expert's part of each 32 KiB; `skew` bytes before the first.
std::vector<ExpertLayer> layers(Bytes skew = Bytes()) {
  std::vector<ExpertLayer> layers;
  Bytes at = skew;
  for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
    layers.push_back({{.offset = at, .each = kPart}, {.offset = at + kPart * kExperts, .each = kPart}});
    at += kPart * (2 * kExperts);
  }
  return layers;
}

struct Bench {
  StorageDevice device{small_part()};
  ExpertCache cache;

  explicit Bench(const config::ExpertStorage& how, Bytes skew = Bytes(), Bytes room = Bytes())
      : cache(device, {.how = how, .experts = kExperts, .room = std::max({room, how.cache, kExpert * 4})},
              layers(skew)) {
    EXPECT_TRUE(device.lay_out(Bytes(), 4_MiB));
  }

  ExpertReads token(const std::vector<Ids>& by_layer, Picoseconds compute = 1_ms) {
    ExpertReads reads;
    for (std::uint32_t layer = 0; layer < by_layer.size(); ++layer) {
      ExpertReads of_layer = cache.begin(layer, by_layer[layer], now);
      now += of_layer.stall;
      of_layer.stall += cache.end(compute);
      now += compute;
      reads += of_layer;
    }
    return reads;
  }
  Picoseconds now;
};

config::ExpertStorage how(Bytes cache, ExpertPolicy policy = ExpertPolicy::lru) {
  return {.place = config::ExpertPlace::streamed,
          .cache = cache,
          .policy = policy,
          .request = 1024_KiB,
          .in_flight = 4,
          .overlap = false};
}

const std::vector<Ids> kToken = {{0, 1}, {2, 3}, {4, 5}, {6, 7}};

/// A cyclic walk: a cache of one token's experts holds them all, and one that lacks a layer's none in time.
TEST(ExpertCache, LruBelowOneTokensExpertsHitsNothing) {
  Bench whole(how(kExpert * 8));
  Bench less(how(kExpert * 6));
  EXPECT_EQ(whole.token(kToken).misses, 8);
  static_cast<void>(less.token(kToken));
  for (int i = 0; i < 3; ++i) {
    const ExpertReads warm = whole.token(kToken);
    EXPECT_EQ(warm.hits, 8);
    EXPECT_EQ(warm.read, 0_B);
    EXPECT_EQ(warm.stall, 0_ps);
    const ExpertReads cold = less.token(kToken);
    EXPECT_EQ(cold.hits, 0);
    EXPECT_EQ(cold.read, kExpert * 8);
  }
}

TEST(ExpertCache, NoCacheReadsAll) {
  Bench bench(how(0_B));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(bench.token(kToken).misses, 8);
    EXPECT_EQ(bench.cache.held(), 0_B);
  }
}

/// Expert 0 comes with every token, the others seldom.
TEST(ExpertCache, LfuKeepsWhatComesOften) {
  for (const ExpertPolicy policy : {ExpertPolicy::lru, ExpertPolicy::lfu}) {
    Bench bench(how(kExpert * 2, policy));
    for (int i = 0; i < 3; ++i) {
      static_cast<void>(bench.token({{0}}));
    }
    static_cast<void>(bench.token({{1}}));
    static_cast<void>(bench.token({{2}}));
    EXPECT_EQ(bench.cache.holds({.layer = 0, .expert = 0}), policy == ExpertPolicy::lfu);
    EXPECT_TRUE(bench.cache.holds({.layer = 0, .expert = 2}));
  }
}

TEST(ExpertCache, PinnedStayAndNoOthersDo) {
  Bench bench(how(kExpert * 4, ExpertPolicy::pinned));
  const std::vector<ExpertId> pinned = {{.layer = 0, .expert = 1}, {.layer = 2, .expert = 4}};
  bench.cache.pin(pinned);
  for (int i = 0; i < 2; ++i) {
    const ExpertReads reads = bench.token(kToken);
    EXPECT_EQ(reads.hits, 2);
    EXPECT_EQ(reads.misses, 6);
    EXPECT_EQ(bench.cache.held(), kExpert * 2);
  }
}

/// What two lanes take for the same reads, asked of a device alone.
TEST(ExpertCache, WaitsForTheLastRead) {
  config::ExpertStorage two = how(0_B);
  two.in_flight = 2;
  Bench bench(two);
  StorageDevice alone(small_part());
  ASSERT_TRUE(alone.lay_out(Bytes(), 4_MiB));
  const auto submit = [&](Bytes offset, std::int64_t lane, Picoseconds when) {
    alone.submit({.op = StorageOp::read, .offset = offset, .bytes = kPart, .when = when, .lane = lane});
  };
  submit(kPart * 3, 0, 0_ps);
  submit(kPart * (kExperts + 3), 1, 0_ps);
  const Picoseconds last = (static_cast<void>(alone.next()), alone.next()->done);
  EXPECT_EQ(bench.cache.begin(0, Ids{3}, 0_ps).stall, last);
  EXPECT_EQ(bench.cache.end(1_ms), 0_ps);
}

TEST(ExpertCache, MoreReadsInFlightWaitLess) {
  Picoseconds before = 1000_ms;
  for (const std::int64_t lanes : {1, 2}) {
    config::ExpertStorage with = how(0_B);
    with.in_flight = lanes;
    Bench bench(with);
    const Picoseconds stall = bench.cache.begin(0, Ids{1, 4, 6}, 0_ps).stall;
    EXPECT_LT(stall, before) << lanes;
    before = stall;
  }
}

/// One in memory and one missing: the first is computed while the other is read.
TEST(ExpertCache, OverlapHidesReadsBehindWhatIsThere) {
  for (const Picoseconds compute : {0_ps, 100_us, 40_ms}) {
    Bench waits(how(kExpert * 4));
    config::ExpertStorage overlap = how(kExpert * 4);
    overlap.overlap = true;
    Bench overlaps(overlap);
    static_cast<void>(waits.token({{5}}));
    static_cast<void>(overlaps.token({{5}}));
    const Picoseconds now = std::max(waits.now, overlaps.now) + 1_ms;
    const Picoseconds there = waits.cache.begin(0, Ids{2, 5}, now).stall;
    EXPECT_EQ(overlaps.cache.begin(0, Ids{2, 5}, now).stall, 0_ps);
    EXPECT_EQ(overlaps.cache.end(compute), std::max(0_ps, there - compute / 2));
  }
}

/// With nothing in memory only the last expert's arithmetic is not hidden.
TEST(ExpertCache, OverlapWithoutCacheWaitsForReadsAllTheSame) {
  config::ExpertStorage overlap = how(0_B);
  Bench waits(overlap);
  overlap.overlap = true;
  Bench overlaps(overlap);
  const Picoseconds there = waits.cache.begin(0, Ids{0, 1, 2, 3}, 0_ps).stall;
  static_cast<void>(overlaps.cache.begin(0, Ids{0, 1, 2, 3}, 0_ps));
  const Picoseconds compute = 4_us;  // little beside the reads
  EXPECT_EQ(overlaps.cache.end(compute), there - compute + compute / 4);
}

TEST(ExpertCache, ReadsWholeBlocksOfAtMostTheRequest) {
  config::ExpertStorage small = how(0_B);
  small.request = 8_KiB;
  Bench bench(small, 100_B);
  const ExpertReads reads = bench.cache.begin(0, Ids{1}, 0_ps);
  EXPECT_EQ(reads.asked, kExpert);
  EXPECT_EQ(reads.rounding, 8_KiB);  // a block more for each part, which begins within one
  EXPECT_EQ(reads.read, kExpert + 8_KiB);
  EXPECT_EQ(reads.requests, 2 * 5);
  EXPECT_EQ(bench.device.counters().host_read, reads.read);
}

/// Random tokens: bytes are conserved, experts at work lie apart, and the cache keeps to its size.
TEST(ExpertCache, ConservesBytesUnderRandomUse) {
  for (const ExpertPolicy policy : {ExpertPolicy::lru, ExpertPolicy::lfu}) {
    for (const bool overlap : {false, true}) {
      config::ExpertStorage setup = how(kExpert * 20 + 5000_B, policy);
      setup.overlap = overlap;
      Bench bench(setup);
      ExpertReads all;
      trace::SplitMix64 draws(3);
      for (int step = 0; step < 800; ++step) {
        const auto layer = static_cast<std::uint32_t>(step) % kLayers;
        Ids experts;
        for (std::uint32_t expert = 0; expert < kExperts && experts.size() < 4; ++expert) {
          if (draws.unit() < 0.4) {
            experts.push_back(expert);
          }
        }
        const ExpertReads reads = bench.cache.begin(layer, experts, bench.now);
        EXPECT_EQ(reads.hits + reads.misses, std::ssize(experts));
        std::vector<SpaceRun> runs;
        for (const std::uint32_t expert : experts) {
          const auto& place = bench.cache.place({.layer = layer, .expert = expert});
          Bytes bytes;
          for (const SpaceRun& run : place) {
            bytes += run.bytes;
            runs.push_back(run);
          }
          ASSERT_EQ(bytes, kExpert);
        }
        std::ranges::sort(runs, {}, &SpaceRun::first);
        for (std::size_t i = 1; i < runs.size(); ++i) {
          ASSERT_LE(runs[i - 1].first + runs[i - 1].bytes, runs[i].first);
        }
        all += reads;
        bench.now += reads.stall + bench.cache.end(200_us) + 200_us;
        ASSERT_LE(bench.cache.held(), setup.cache);
      }
      EXPECT_EQ(all.asked, all.cached + all.read - all.rounding);
      EXPECT_EQ(bench.device.counters().host_read, all.read);
      EXPECT_GT(all.hits, 100);
      EXPECT_GT(all.misses, 100);
    }
  }
}

}  // namespace
}  // namespace kvsim::model
