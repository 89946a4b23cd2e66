// SPDX-License-Identifier: Apache-2.0
#include "models/cache/cache.h"

#include <algorithm>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "configs/error/test_support.h"

namespace kvsim::model {
namespace {

using namespace literals;
using trace::Access;

constexpr std::uint64_t kLine = 64;

config::CacheSpec spec(Bytes size, std::int64_t ways) {
  return {.size = size, .ways = ways, .line = 64_B, .latency = 10_ns, .bandwidth = 30_GBps};
}

TEST(Cache, FindsAgainWhatItHolds) {
  Cache cache(spec(4_KiB, 4));
  EXPECT_FALSE(cache.access(0, Access::read, Owner::weights).hit);
  EXPECT_TRUE(cache.access(0, Access::read, Owner::weights).hit);
  EXPECT_TRUE(cache.access(63, Access::read, Owner::weights).hit);  // the same line
  EXPECT_FALSE(cache.access(64, Access::read, Owner::weights).hit);
  EXPECT_EQ(cache.hits(), 2);
  EXPECT_EQ(cache.misses(), 2);
}

TEST(Cache, KeepsAWorkingSetOfItsSize) {
  Cache cache(spec(3_MiB, 12));
  for (int pass = 0; pass < 3; ++pass) {
    for (std::uint64_t at = 0; at < 3 << 20; at += kLine) {
      ASSERT_EQ(cache.access(at, Access::read, Owner::weights).hit, pass > 0);
    }
  }
}

TEST(Cache, AnOldModifiedLineIsWrittenBackWithItsOwner) {
  Cache cache(spec(128_B, 2));  // one set
  cache.access(0, Access::write, Owner::kv_write);
  cache.access(64, Access::read, Owner::weights);
  const CacheAccess third = cache.access(128, Access::read, Owner::weights);
  ASSERT_TRUE(third.evicted);
  EXPECT_EQ(third.evicted->address, 0U);
  EXPECT_EQ(third.evicted->owner, Owner::kv_write);
  EXPECT_FALSE(cache.access(192, Access::read, Owner::weights).evicted);  // 64 was only read
}

/// Sets of lines in order of use, written to be obvious.
class NaiveCache {
 public:
  NaiveCache(std::size_t sets, std::size_t ways) : sets_(sets), ways_(ways) {}

  struct Result {
    bool hit = false;
    std::optional<std::uint64_t> evicted;
  };
  Result access(std::uint64_t line, bool write) {
    std::vector<std::uint64_t>& set = sets_[line % sets_.size()];
    Result result;
    const auto found = std::find(set.begin(), set.end(), line);
    if (found != set.end()) {
      result.hit = true;
      set.erase(found);
    } else if (set.size() == ways_) {
      if (dirty_[set.front()]) {
        result.evicted = set.front();
      }
      dirty_[set.front()] = false;
      set.erase(set.begin());
    }
    set.push_back(line);
    dirty_[line] = dirty_[line] || write;
    return result;
  }

 private:
  std::vector<std::vector<std::uint64_t>> sets_;  ///< least recently used first
  std::size_t ways_;
  std::map<std::uint64_t, bool> dirty_;
};

TEST(Cache, ReplacesTheLeastRecentlyUsed) {
  for (const std::uint64_t ways : {1, 2, 3, 8}) {
    constexpr std::uint64_t kSets = 5;  // not a power of two, as in a 3 MiB cache of 12 ways
    Cache cache(
        spec(Bytes(static_cast<std::int64_t>(kSets * ways * kLine)), static_cast<std::int64_t>(ways)));
    NaiveCache naive(kSets, ways);
    Random random(ways);
    for (int i = 0; i < 20'000; ++i) {
      const std::uint64_t line = random.below(kSets * ways * 2);
      const bool write = random.below(3) == 0;
      const NaiveCache::Result expected = naive.access(line, write);
      const CacheAccess actual = cache.access(line * kLine + random.below(kLine),
                                              write ? Access::write : Access::read, Owner::other_data);
      ASSERT_EQ(actual.hit, expected.hit);
      ASSERT_EQ(actual.evicted.has_value(), expected.evicted.has_value());
      if (expected.evicted) {
        ASSERT_EQ(actual.evicted->address, *expected.evicted * kLine);
      }
    }
  }
}

TEST(Cache, PassingStreamsPushOutWhatIsOlderThanItsSize) {
  Cache cache(spec(4_KiB, 4));
  cache.access(0, Access::write, Owner::kv_write);
  cache.pass(2_KiB);
  cache.access(64, Access::read, Owner::weights);
  EXPECT_FALSE(cache.take_expired());
  cache.pass(2_KiB + 1_B);
  const auto expired = cache.take_expired();
  ASSERT_TRUE(expired);
  EXPECT_EQ(expired->address, 0U);
  EXPECT_EQ(expired->owner, Owner::kv_write);
  EXPECT_FALSE(cache.take_expired());
  EXPECT_FALSE(cache.access(0, Access::read, Owner::weights).hit);
  EXPECT_TRUE(cache.access(64, Access::read, Owner::weights).hit);
}

TEST(Cache, UseKeepsALineFromBeingPushedOut) {
  Cache cache(spec(4_KiB, 4));
  cache.access(0, Access::write, Owner::kv_write);
  for (int i = 0; i < 10; ++i) {
    cache.pass(3_KiB);
    EXPECT_TRUE(cache.access(0, Access::read, Owner::weights).hit);
    EXPECT_FALSE(cache.take_expired());
  }
  cache.pass(5_KiB);
  ASSERT_TRUE(cache.take_expired());  // written long ago, read since, and still to be written back
  EXPECT_FALSE(cache.take_expired());
}

TEST(Cache, EveryModifiedLineComesOutExactlyOnce) {
  Cache cache(spec(8_KiB, 4));
  Random random(6);
  std::map<std::uint64_t, int> dirty;  // 1: modified since it last came out
  const auto out = [&](std::uint64_t address) {
    ASSERT_EQ(dirty[address / kLine], 1) << "line " << address / kLine;
    dirty[address / kLine] = 0;
  };
  for (int i = 0; i < 50'000; ++i) {
    if (random.below(20) == 0) {
      cache.pass(Bytes(static_cast<std::int64_t>(random.below(6'000))));
      while (const auto expired = cache.take_expired()) {
        out(expired->address);
      }
      continue;
    }
    const std::uint64_t line = random.below(300);
    const bool write = random.below(2) == 0;
    const CacheAccess access =
        cache.access(line * kLine, write ? Access::write : Access::read, Owner::other_data);
    if (access.evicted) {
      out(access.evicted->address);
    }
    if (write) {
      dirty[line] = 1;
    }
  }
  cache.pass(8_KiB + 1_B);
  while (const auto expired = cache.take_expired()) {
    out(expired->address);
  }
  EXPECT_TRUE(std::all_of(dirty.begin(), dirty.end(), [](const auto& line) { return line.second == 0; }));
}

}  // namespace
}  // namespace kvsim::model
