// SPDX-License-Identifier: Apache-2.0
// Does the cache hold after skipped work what it would hold had the work been simulated?
#include "models/cpu/skipped_work.h"

#include <optional>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "models/testing/soc.h"
#include "models/testing/test_device.h"

namespace kvsim::model {
namespace {

using namespace literals;
using testing::extent;
using trace::Access;
using trace::Address;
using trace::Extent;
using trace::Kind;

config::CacheSpec small_cache() {
  config::CacheSpec spec = testing::device().llc;
  spec.size = 128_KiB;
  return spec;
}

using Operator = std::vector<ThreadWork>;

/// Threads in turn, segment by segment, as when it is simulated.
void simulate(Cache& cache, const Operator& op, bool passes_cache) {
  std::vector<Segmenter> threads(op.size(), Segmenter(cache, small_cache()));
  for (std::size_t i = 0; i < op.size(); ++i) {
    threads[i].begin(op[i].extents, {}, passes_cache);
  }
  for (bool any = true; any;) {
    any = false;
    for (Segmenter& thread : threads) {
      std::optional<Segment> segment = thread.next();
      while (segment && segment->posted) {
        segment = thread.next();
      }
      any = any || segment;
    }
  }
}

/// What lines hit, and what they push out.
std::vector<std::uint64_t> probe(Cache& cache, const std::set<Address>& lines) {
  std::vector<std::uint64_t> found;
  for (const Address line : lines) {
    const CacheAccess access = cache.access(line, Access::read, Owner::other_data);
    found.push_back(access.hit ? 1 : 0);
    found.push_back(access.evicted ? access.evicted->address : 2);
  }
  return found;
}

/// Most bytes are streamed past the cache, as weights are.
std::vector<Extent> random_extents(Random& random, std::set<Address>& lines) {
  std::vector<Extent> extents;
  for (std::uint64_t n = 1 + random.below(3); n-- > 0;) {
    const Address at = random.below(16) * 4096;
    const Bytes bytes(64 * (1 + static_cast<std::int64_t>(random.below(64))));
    const Access access = random.below(2) == 0 ? Access::read : Access::write;
    extents.push_back(extent(at, bytes, Kind::scratch, access));
    for (Address line = at; line < at + static_cast<Address>(bytes.count()); line += 64) {
      lines.insert(line);
    }
  }
  const Bytes streamed(64 * static_cast<std::int64_t>(1100 + random.below(2000)));  // above 64 KiB
  extents.insert(extents.begin() + static_cast<std::ptrdiff_t>(random.below(extents.size())),
                 extent(1 << 30, streamed));
  return extents;
}

// Misses are turns of a thread, and what was forgotten may have been a hit: so few lines may differ.
TEST(SkippedWork, LeavesTheCacheAsSimulatedWorkDoes) {
  std::size_t hits = 0;
  std::size_t all = 0;
  std::size_t differ = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    Cache simulated(small_cache());
    Cache skipped(small_cache());
    SkippedWork work(skipped, small_cache());
    std::set<Address> lines;
    for (std::uint64_t n = 1 + random.below(12); n-- > 0;) {
      Operator op(1 + random.below(4));
      for (ThreadWork& thread : op) {
        thread.extents = random_extents(random, lines);
      }
      simulate(simulated, op, true);
      work.add(op, true);
    }
    while (simulated.take_expired()) {
    }
    work.catch_up();
    while (skipped.take_expired()) {
    }
    const std::vector<std::uint64_t> expected = probe(simulated, lines);
    const std::vector<std::uint64_t> found = probe(skipped, lines);
    all += expected.size();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      differ += found[i] != expected[i] ? 1 : 0;
      hits += i % 2 == 0 ? expected[i] : 0;
    }
  }
  EXPECT_GT(hits, all / 10);
  EXPECT_LT(hits, all / 3);
  EXPECT_LT(differ, all / 200) << "of " << all;
}

TEST(SkippedWork, WhatWasWrittenLastIsFoundAndWrittenBackLater) {
  Cache cache(small_cache());
  SkippedWork work(cache, small_cache());
  work.add({{.extents = {extent(0, 8_KiB, Kind::scratch, Access::write)}, .simd_operations = 0}}, false);
  work.catch_up();
  EXPECT_TRUE(cache.access(0, Access::read, Owner::other_data).hit);
  cache.pass(129_KiB);
  int written = 0;
  while (cache.take_expired()) {
    ++written;
  }
  EXPECT_EQ(written, 128);
}

// Modified before a long pause: written in it, and nobody's business now.
TEST(SkippedWork, WhatItPushesOutIsNotWrittenAnyMore) {
  Cache cache(small_cache());
  SkippedWork work(cache, small_cache());
  cache.access(0, Access::write, Owner::other_data);
  for (int i = 0; i < 3; ++i) {
    work.add({{.extents = {extent(1 << 30, 1_MiB)}, .simd_operations = 0}}, true);
  }
  work.catch_up();
  EXPECT_FALSE(cache.take_expired());
  EXPECT_FALSE(cache.access(0, Access::read, Owner::other_data).hit);
}

TEST(SkippedWork, OfAVeryLongOperatorOnlyTheEndCounts) {
  Cache cache(small_cache());
  SkippedWork work(cache, small_cache());
  ThreadWork thread;
  for (int i = 0; i < 1000; ++i) {
    thread.extents.push_back(extent(static_cast<Address>(i) << 16, 64_KiB, Kind::scratch, Access::write));
  }
  work.add({thread}, true);
  work.catch_up();
  EXPECT_EQ(cache.misses(), 4 * 1024);  // twice the cache
  EXPECT_TRUE(cache.access(Address{999} << 16, Access::read, Owner::other_data).hit);
}

}  // namespace
}  // namespace kvsim::model
