// SPDX-License-Identifier: Apache-2.0
#include "sim/capture/cache_fills.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "configs/error/test_support.h"

namespace kvsim::sim {
namespace {

using namespace literals;
using trace::LackeyEvent;
using What = LackeyEvent::What;

config::CacheSpec spec(Bytes size, std::int64_t ways) {
  return {.size = size, .ways = ways, .line = 64_B, .latency = {}, .bandwidth = {}};
}

LackeyEvent event(What what, std::uint64_t address, std::uint32_t bytes = 8) {
  return {.value = address, .bytes = bytes, .what = what};
}

TEST(CacheFills, ATokenBeginsWithAnEmptyCache) {
  CacheFills fills(spec(4_KiB, 4));
  fills.take(std::vector{event(What::load, 0), event(What::load, 8), event(What::token_start, 1, 0),
                         event(What::load, 16), event(What::load, 60), event(What::token_end, 1, 0),
                         event(What::load, 64), event(What::token_start, 2, 0), event(What::store, 0),
                         event(What::token_end, 2, 0)});
  fills.finish();
  ASSERT_EQ(fills.tokens().size(), 2U);
  EXPECT_EQ(fills.tokens()[0], (FillCounts{.hits = 1, .fills = 2}));  // 60 to 67 is in two lines
  EXPECT_EQ(fills.tokens()[1], (FillCounts{.hits = 0, .fills = 1}));
  EXPECT_EQ(fills.file(), (FillCounts{.hits = 3, .fills = 4}));  // 64 was fetched within token 1
}

/// n lines go round: they are fetched once if the cache holds them, and each time if it holds one less.
TEST(CacheFills, AWorkingSetFitsOrItDoesNot) {
  for (const std::int64_t lines : {63, 64, 65, 128}) {
    CacheFills fills(spec(4_KiB, 64));  // one set
    for (int round = 0; round < 10; ++round) {
      for (std::int64_t line = 0; line < lines; ++line) {
        fills.take(std::vector{event(What::modify, static_cast<std::uint64_t>(line) * 64)});
      }
    }
    fills.finish();
    EXPECT_EQ(fills.file().fills, lines <= 64 ? lines : 10 * lines) << lines;
    EXPECT_EQ(fills.file().write_backs, lines <= 64 ? 0 : 10 * lines - 64) << lines;
  }
}

/// Reuse distance in a set of lines decides: a hit has fewer than `ways` others since the last use.
TEST(CacheFills, AreThoseOfReuseDistances) {
  for (const std::uint64_t ways : {1, 2, 16}) {
    constexpr std::uint64_t kSets = 8;
    CacheFills fills(
        spec(Bytes(static_cast<std::int64_t>(kSets * ways * 64)), static_cast<std::int64_t>(ways)));
    std::vector<std::vector<std::uint64_t>> used(kSets);  // lines of each set, the latest last
    Random random(ways);
    FillCounts expected;
    for (int i = 0; i < 20'000; ++i) {
      const std::uint64_t line = random.below(kSets * ways * 3);
      fills.take(std::vector{event(What::load, line * 64 + random.below(57))});
      std::vector<std::uint64_t>& set = used[line % kSets];
      const auto found = std::find(set.rbegin(), set.rend(), line);
      const bool hit = found != set.rend() && static_cast<std::uint64_t>(found - set.rbegin()) < ways;
      ++(hit ? expected.hits : expected.fills);
      if (found != set.rend()) {
        set.erase(std::next(found).base());
      }
      set.push_back(line);
    }
    fills.finish();
    EXPECT_EQ(fills.file(), expected) << ways;
  }
}

}  // namespace
}  // namespace kvsim::sim
