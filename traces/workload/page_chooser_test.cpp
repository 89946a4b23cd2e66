// SPDX-License-Identifier: Apache-2.0
#include "traces/workload/page_chooser.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace kvsim::trace {
namespace {

using Pages = std::vector<std::uint32_t>;

Pages choose(PageChooser& chooser, std::uint32_t token, std::uint32_t pages, std::uint32_t wanted,
             std::uint32_t head = 0) {
  const auto chosen = chooser.choose(
      {.layer = Layer(1), .head = Head(head), .query = Token(token), .pages = pages, .wanted = wanted});
  return {chosen.begin(), chosen.end()};
}

std::int64_t common(const Pages& a, const Pages& b) {
  Pages both;
  std::ranges::set_intersection(a, b, std::back_inserter(both));
  return std::ssize(both);
}

TEST(PageChooser, AQueryReadsDifferentPagesAndTheNewest) {
  for (const double popularity : {0.0, 1.0, 4.0}) {
    for (const double reuse : {0.0, 0.8, 1.0}) {
      for (const std::uint32_t wanted : {1U, 4U, 15U}) {
        PageChooser chooser({.popularity = popularity, .reuse = reuse}, 7);
        for (std::uint32_t token = 256; token < 800; ++token) {
          const std::uint32_t pages = token / 16 + 1;
          const Pages chosen = choose(chooser, token, pages, wanted);
          ASSERT_EQ(chosen.size(), wanted);
          ASSERT_EQ(chosen.back(), pages - 1);
          ASSERT_TRUE(std::ranges::adjacent_find(chosen, std::greater_equal()) == chosen.end());
        }
      }
    }
  }
}

TEST(PageChooser, FollowsFromSeedHeadAndPosition) {
  const auto sequence = [](std::uint64_t seed, std::uint32_t head) {
    PageChooser chooser({}, seed);
    Pages all;
    for (std::uint32_t token = 1000; token < 1010; ++token) {
      const Pages chosen = choose(chooser, token, 64, 8, head);
      EXPECT_EQ(chosen, choose(chooser, token, 64, 8, head)) << "a second thread of the head";
      all.insert(all.end(), chosen.begin(), chosen.end());
    }
    return all;
  };
  EXPECT_EQ(sequence(1, 0), sequence(1, 0));
  EXPECT_NE(sequence(1, 0), sequence(2, 0));
  EXPECT_NE(sequence(1, 0), sequence(1, 1));
}

/// Of 4096 pages that are all alike hardly one is drawn twice by chance.
TEST(PageChooser, KeepsSoManyOfTheTokenBefore) {
  for (const double reuse : {0.0, 0.3, 0.8, 1.0}) {
    PageChooser chooser({.popularity = 0, .reuse = reuse}, 3);
    Pages before = choose(chooser, 0, 4096, 33);
    double kept = 0;
    constexpr int kTokens = 500;
    for (std::uint32_t token = 1; token <= kTokens; ++token) {
      const Pages chosen = choose(chooser, token, 4096, 33);
      kept += static_cast<double>(common(before, chosen) - 1);  // the newest
      before = chosen;
    }
    EXPECT_NEAR(kept / kTokens / 32, reuse, 0.02);
  }
  PageChooser chooser({.popularity = 0, .reuse = 1}, 3);
  const Pages before = choose(chooser, 0, 4096, 33);
  EXPECT_LT(common(before, choose(chooser, 2, 4096, 33)), 5) << "a token was left out: nothing is kept";
}

/// One page besides the newest, by popularity alone. The newest has some rank, so that the first page, whose
/// rank is 1, is drawn in 1 / (H - 1 / rank) of all cases, where H is the sum of 1 / r over all 16.
TEST(PageChooser, DrawsByZipfsLaw) {
  PageChooser chooser({.popularity = 1, .reuse = 0}, 5);
  std::vector<double> counts(16);
  constexpr int kDraws = 40'000;
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    ++counts[choose(chooser, 2 * i, 16, 2).front()];
  }
  EXPECT_EQ(counts[15], 0) << "the newest is not drawn";
  EXPECT_EQ(std::ranges::count(counts, 0.0), 1);
  double harmonic = 0;
  for (int rank = 1; rank <= 16; ++rank) {
    harmonic += 1.0 / rank;
  }
  EXPECT_GE(counts[0] / kDraws, 1 / harmonic - 0.01) << "the first page leads";
  EXPECT_LE(counts[0] / kDraws, 1 / (harmonic - 0.5) + 0.01);
}

/// An order of popularity does not change when pages come in or, at a probe, are gone.
TEST(PageChooser, AnOrderOfFewerPagesIsPartOfThatOfMore) {
  PageChooser grown({.popularity = 1, .reuse = 0}, 9);
  static_cast<void>(choose(grown, 4000, 256, 8));
  PageChooser fresh({.popularity = 1, .reuse = 0}, 9);
  EXPECT_EQ(choose(grown, 512, 32, 8), choose(fresh, 512, 32, 8));
}

}  // namespace
}  // namespace kvsim::trace
