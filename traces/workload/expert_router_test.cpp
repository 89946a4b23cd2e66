// SPDX-License-Identifier: Apache-2.0
#include "traces/workload/expert_router.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvsim::trace {
namespace {

config::LlmSpec model_of(std::int64_t layers, std::int64_t count, std::int64_t used) {
  config::LlmSpec model;
  model.layers = layers;
  model.experts = config::Experts{.count = count, .used = used, .ffn = 768};
  return model;
}

std::vector<std::int64_t> copy(std::span<const std::int64_t> experts) {
  return {experts.begin(), experts.end()};
}

TEST(ExpertRouter, ATokenTakesDifferentExperts) {
  for (const std::int64_t used : {1, 7, 8}) {
    for (const double popularity : {0.0, 1.5, 4.0}) {
      ExpertRouter router(model_of(3, 8, used), {.popularity = popularity, .reuse = 0.5}, 7);
      for (std::uint32_t position = 0; position < 50; ++position) {
        const auto chosen = copy(router.choose(Layer(position % 3), Token(position / 3)));
        const std::set<std::int64_t> different(chosen.begin(), chosen.end());
        ASSERT_EQ(std::ssize(different), used);
        ASSERT_GE(*different.begin(), 0);
        ASSERT_LT(*different.rbegin(), 8);
      }
    }
  }
}

TEST(ExpertRouter, FollowsFromTheSeed) {
  const auto sequence = [](std::uint64_t seed, std::uint32_t layer) {
    ExpertRouter router(model_of(2, 64, 6), {}, seed);
    std::vector<std::int64_t> all;
    for (std::uint32_t position = 0; position < 20; ++position) {
      const auto chosen = copy(router.choose(Layer(layer), Token(position)));
      all.insert(all.end(), chosen.begin(), chosen.end());
    }
    return all;
  };
  EXPECT_EQ(sequence(1, 0), sequence(1, 0));
  EXPECT_NE(sequence(1, 0), sequence(2, 0));
  EXPECT_NE(sequence(1, 0), sequence(1, 1)) << "each layer has its own favourites";
}

TEST(ExpertRouter, KeepsSoManyOfTheTokenBefore) {
  for (const double reuse : {0.0, 0.3, 1.0}) {
    ExpertRouter router(model_of(1, 4096, 8), {.popularity = 0, .reuse = reuse}, 3);
    std::vector<std::int64_t> before = copy(router.choose(Layer(0), Token(0)));
    double kept = 0;
    constexpr int kTokens = 2000;
    for (std::uint32_t position = 1; position <= kTokens; ++position) {
      const std::vector<std::int64_t> chosen = copy(router.choose(Layer(0), Token(position)));
      kept += static_cast<double>(std::count_if(chosen.begin(), chosen.end(), [&](std::int64_t expert) {
        return std::find(before.begin(), before.end(), expert) != before.end();
      }));
      before = chosen;
    }
    // A fresh draw hits one of the eight by chance with 8 / 4096.
    EXPECT_NEAR(kept / 8 / kTokens, reuse, 0.012);
  }
}

TEST(ExpertRouter, DrawsByZipfsLaw) {
  ExpertRouter router(model_of(1, 16, 1), {.popularity = 1, .reuse = 0}, 5);
  std::map<std::int64_t, double> count;
  constexpr std::uint32_t kTokens = 40000;
  for (std::uint32_t position = 0; position < kTokens; ++position) {
    ++count[router.choose(Layer(0), Token(position)).front()];
  }
  std::vector<double> shares;
  double harmonic = 0;
  for (const auto& [expert, times] : count) {
    shares.push_back(times / kTokens);
  }
  std::sort(shares.rbegin(), shares.rend());
  ASSERT_EQ(shares.size(), 16U);
  for (int rank = 1; rank <= 16; ++rank) {
    harmonic += 1.0 / rank;
  }
  for (std::size_t rank = 1; rank <= 16; ++rank) {
    EXPECT_NEAR(shares[rank - 1], 1 / static_cast<double>(rank) / harmonic, 0.01) << rank;
  }
}

TEST(ExpertRouter, KeepsNothingAcrossAGapAndForgetsNothingWhenAskedTwice) {
  ExpertRouter one(model_of(1, 64, 6), {.popularity = 1, .reuse = 1}, 9);
  ExpertRouter other(model_of(1, 64, 6), {.popularity = 1, .reuse = 1}, 9);
  static_cast<void>(one.choose(Layer(0), Token(4)));
  const std::vector<std::int64_t> after_gap = copy(one.choose(Layer(0), Token(100)));
  EXPECT_EQ(after_gap, copy(other.choose(Layer(0), Token(100))));
  EXPECT_EQ(after_gap, copy(one.choose(Layer(0), Token(100))));
  EXPECT_EQ(after_gap, copy(one.choose(Layer(0), Token(101)))) << "all are kept";
}

TEST(ExpertRouter, GroupsRowsByExpert) {
  ExpertRouter router(model_of(2, 16, 4), {}, 1), again(model_of(2, 16, 4), {}, 1);
  const std::vector<ExpertGroup> groups = router.route(Layer(1), Token(10), 2, 30);
  std::set<std::pair<std::uint32_t, std::uint32_t>> places;
  std::int64_t last = -1;
  for (const ExpertGroup& group : groups) {
    EXPECT_GT(group.expert, last);
    last = group.expert;
    for (const ExpertGroup::Member& member : group.members) {
      EXPECT_TRUE(places.emplace(member.row, member.slot).second);
    }
  }
  EXPECT_EQ(places.size(), 30U * 4);
  EXPECT_EQ(places.begin()->first, 2U);
  const std::vector<std::int64_t> first = copy(again.choose(Layer(1), Token(12)));
  for (const ExpertGroup& group : groups) {
    const bool takes = group.members.front().row == 2;
    EXPECT_EQ(takes, std::find(first.begin(), first.end(), group.expert) != first.end());
  }
}

/// Share of the experts asked for in `tokens` that an LRU cache of so many experts of all layers has.
double hit_share(std::size_t capacity, std::uint32_t tokens, std::uint64_t seed) {
  using Key = std::pair<std::int64_t, std::int64_t>;
  ExpertRouter router(model_of(48, 128, 8), {}, seed);
  std::list<Key> order;
  std::map<Key, std::list<Key>::iterator> held;
  double hits = 0;
  for (std::uint32_t position = 0; position < tokens; ++position) {
    for (std::int64_t layer = 0; layer < 48; ++layer) {
      for (const std::int64_t expert :
           router.choose(Layer(static_cast<std::uint32_t>(layer)), Token(position))) {
        const Key key{layer, expert};
        if (const auto found = held.find(key); found != held.end()) {
          ++hits;
          order.splice(order.begin(), order, found->second);
          continue;
        }
        order.push_front(key);
        held[key] = order.begin();
        if (held.size() > capacity) {
          held.erase(order.back());
          order.pop_back();
        }
      }
    }
  }
  return hits / (tokens * 48.0 * 8);
}

TEST(ExpertRouter, AnLruCacheHitsAboutAsOftenAsMeasuredOnAPhone) {
  // Qwen3-30B-A3B Q4_K_M, 256 tokens, 1051 MiB of experts per token: 53.0 % with a cache of 2000 MiB, 76.5 %
  // with 4000 (BigMoeOnEdge, docs/bench-data). Popularity and re-use were set by these two rows.
  const double expert_mib = 1051.0 / (48 * 8);
  for (const std::uint64_t seed : {1, 2}) {
    EXPECT_NEAR(hit_share(static_cast<std::size_t>(2000 / expert_mib), 256, seed), 0.530, 0.05);
    EXPECT_NEAR(hit_share(static_cast<std::size_t>(4000 / expert_mib), 256, seed), 0.765, 0.05);
  }
}

}  // namespace
}  // namespace kvsim::trace
