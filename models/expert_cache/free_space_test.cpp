// SPDX-License-Identifier: Apache-2.0
#include "models/expert_cache/free_space.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "traces/record/spread.h"

namespace kvsim::model {
namespace {

using namespace kvsim::literals;
using Runs = std::vector<SpaceRun>;

TEST(FreeSpace, OneRunWhereThereIsOneAndSeveralWhereNot) {
  FreeSpace space(40_B);
  const Runs a = space.take(10_B);
  const Runs b = space.take(10_B);
  const Runs c = space.take(15_B);
  EXPECT_EQ(c, (Runs{{.first = 20_B, .bytes = 15_B}}));
  space.give_back(a);
  EXPECT_EQ(space.free(), 15_B);
  EXPECT_EQ(space.take(4_B), (Runs{{.first = 0_B, .bytes = 4_B}}));
  EXPECT_EQ(space.take(11_B), (Runs{{.first = 4_B, .bytes = 6_B}, {.first = 35_B, .bytes = 5_B}}));
  EXPECT_EQ(space.free(), 0_B);
  space.give_back(b);
  EXPECT_EQ(space.take(10_B), b);
}

TEST(FreeSpace, NeighboursBecomeOneRun) {
  FreeSpace space(30_B);
  const Runs a = space.take(10_B), b = space.take(10_B), c = space.take(10_B);
  space.give_back(a);
  space.give_back(c);
  space.give_back(b);
  EXPECT_EQ(space.take(30_B), (Runs{{.first = 0_B, .bytes = 30_B}}));
}

/// Against a map of single bytes.
TEST(FreeSpace, HandsEachByteOutOnce) {
  constexpr std::int64_t kSize = 200;
  FreeSpace space{Bytes(kSize)};
  std::vector<bool> taken(kSize);
  std::vector<Runs> held;
  trace::SplitMix64 draws(7);
  for (int i = 0; i < 4000; ++i) {
    const auto wanted = static_cast<std::int64_t>(1 + draws.below(40));
    if (wanted <= space.free().count()) {
      held.push_back(space.take(Bytes(wanted)));
      std::int64_t got = 0;
      for (const SpaceRun& run : held.back()) {
        for (std::int64_t at = run.first.count(); at < (run.first + run.bytes).count(); ++at) {
          ASSERT_FALSE(taken[static_cast<std::size_t>(at)]);
          taken[static_cast<std::size_t>(at)] = true;
          ++got;
        }
      }
      ASSERT_EQ(got, wanted);
    } else {
      const auto which = held.begin() + static_cast<std::ptrdiff_t>(draws.below(held.size()));
      for (const SpaceRun& run : *which) {
        for (std::int64_t at = run.first.count(); at < (run.first + run.bytes).count(); ++at) {
          taken[static_cast<std::size_t>(at)] = false;
        }
      }
      space.give_back(*which);
      held.erase(which);
    }
    ASSERT_EQ(space.free().count(), std::count(taken.begin(), taken.end(), false));
  }
}

}  // namespace
}  // namespace kvsim::model
