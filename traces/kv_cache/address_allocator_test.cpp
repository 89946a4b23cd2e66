// SPDX-License-Identifier: Apache-2.0
#include "traces/kv_cache/address_allocator.h"

#include <algorithm>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "configs/error/error.h"
#include "traces/record/random_records.h"

namespace kvsim::trace {
namespace {

using namespace kvsim::literals;

TEST(AddressAllocator, TakesTheLowestHoleInWholeLines) {
  AddressAllocator memory(4096, 1000_B);  // 15 lines
  EXPECT_EQ(memory.left(), 960_B);
  EXPECT_EQ(memory.allocate(1_B), Address{4096});
  EXPECT_EQ(memory.allocate(65_B), Address{4160});
  EXPECT_EQ(memory.allocate(64_B), Address{4288});
  EXPECT_EQ(memory.in_use(), 256_B);
  EXPECT_EQ(memory.free(4160), 128_B);
  EXPECT_EQ(memory.allocate(129_B), Address{4352});  // the hole of 128 B is too small
  EXPECT_EQ(memory.allocate(64_B), Address{4160});
}

TEST(AddressAllocator, HolesThatTouchBecomeOne) {
  for (const auto& order :
       std::vector<std::vector<Address>>{{0, 64, 128}, {128, 64, 0}, {0, 128, 64}, {64, 0, 128}}) {
    AddressAllocator memory(0, 192_B);
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(memory.allocate(64_B));
    }
    EXPECT_FALSE(memory.allocate(1_B));
    for (const Address address : order) {
      memory.free(address);
    }
    EXPECT_EQ(memory.largest_hole(), 192_B);
    EXPECT_EQ(memory.allocate(192_B), Address{0});
  }
}

TEST(AddressAllocator, ScatteredHolesDoNotHoldWhatTheirSumWould) {
  AddressAllocator memory(0, 256_B);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(memory.allocate(64_B));
  }
  memory.free(0);
  memory.free(128);
  EXPECT_EQ(memory.left(), 128_B);
  EXPECT_EQ(memory.largest_hole(), 64_B);
  EXPECT_FALSE(memory.allocate(128_B));
}

TEST(AddressAllocator, MisuseIsABug) {
  AddressAllocator memory(0, 256_B);
  ASSERT_TRUE(memory.allocate(128_B));
  EXPECT_THROW(memory.free(64), InternalError);
  EXPECT_THROW(memory.shrink(0, 129_B), InternalError);
  EXPECT_THROW(static_cast<void>(memory.allocate(0_B)), InternalError);
  memory.free(0);
  EXPECT_THROW(memory.free(0), InternalError);
  EXPECT_THROW(AddressAllocator(32, 256_B), InternalError);
}

/// The lowest place that a naive search, line by line, finds.
std::optional<Address> naive_place(const std::vector<bool>& taken, std::size_t lines) {
  for (std::size_t at = 0; at + lines <= taken.size(); ++at) {
    const auto begin = taken.begin() + static_cast<std::ptrdiff_t>(at);
    if (std::find(begin, begin + static_cast<std::ptrdiff_t>(lines), true) ==
        begin + static_cast<std::ptrdiff_t>(lines)) {
      return at * 64;
    }
  }
  return std::nullopt;
}

TEST(AddressAllocator, DoesWhatASearchLineByLineDoes) {
  Rng rng(1);
  std::vector<bool> taken(64);
  std::map<Address, std::size_t> live;
  AddressAllocator memory(0, 4096_B);
  for (int step = 0; step < 10'000; ++step) {
    if (live.empty() || rng.below(2) == 0) {
      const auto bytes = rng.between(1, 600);
      const auto lines = static_cast<std::size_t>((bytes + 63) / 64);
      const auto address = memory.allocate(Bytes(bytes));
      ASSERT_EQ(address, naive_place(taken, lines));
      if (address) {
        live[*address] = lines;
        std::fill_n(taken.begin() + static_cast<std::ptrdiff_t>(*address / 64), lines, true);
      }
    } else {
      const auto it = std::next(live.begin(), static_cast<std::ptrdiff_t>(rng.below(live.size())));
      const auto line = taken.begin() + static_cast<std::ptrdiff_t>(it->first / 64);
      std::size_t kept = 0;
      if (rng.below(3) == 0) {
        kept = 1 + rng.below(it->second);
        memory.shrink(it->first, Bytes(static_cast<std::int64_t>(kept * 64)));
      } else {
        memory.free(it->first);
      }
      std::fill(line + static_cast<std::ptrdiff_t>(kept), line + static_cast<std::ptrdiff_t>(it->second),
                false);
      kept > 0 ? void(it->second = kept) : void(live.erase(it));
    }
    ASSERT_EQ(memory.in_use(), Bytes(64 * std::count(taken.begin(), taken.end(), true)));
  }
}

}  // namespace
}  // namespace kvsim::trace
