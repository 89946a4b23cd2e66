// SPDX-License-Identifier: Apache-2.0
#include "models/dram/fifo.h"

#include <deque>

#include <gtest/gtest.h>

#include "configs/error/test_support.h"

namespace kvsim::model {
namespace {

TEST(Fifo, KeepsTheOrderThroughGrowthAndWrapping) {
  Fifo<std::uint64_t> fifo;
  std::deque<std::uint64_t> reference;
  Random random(4);
  for (int i = 0; i < 100'000; ++i) {
    // Phases that mostly fill and phases that mostly drain.
    const std::uint64_t pushes = (i / 500) % 2 == 0 ? 6 : 4;
    if (reference.empty() || random.below(10) < pushes) {
      const std::uint64_t value = random.next();
      fifo.push(value);
      reference.push_back(value);
    } else {
      fifo.pop();
      reference.pop_front();
    }
    ASSERT_EQ(fifo.size(), reference.size());
    ASSERT_EQ(fifo.empty(), reference.empty());
    if (!reference.empty()) {
      ASSERT_EQ(fifo.front(), reference.front());
    }
  }
}

TEST(Fifo, InsertSortsAndKeepsEqualsInTheirOrder) {
  struct Item {
    std::uint64_t key = 0;
    int sequence = 0;
  };
  Fifo<Item> fifo;
  Random random(5);
  for (int i = 0; i < 1000; ++i) {
    fifo.insert({random.below(50), i}, [](const Item& a, const Item& b) { return a.key < b.key; });
  }
  Item before = fifo.front();
  for (fifo.pop(); !fifo.empty(); fifo.pop()) {
    ASSERT_TRUE(before.key < fifo.front().key ||
                (before.key == fifo.front().key && before.sequence < fifo.front().sequence));
    before = fifo.front();
  }
}

}  // namespace
}  // namespace kvsim::model
