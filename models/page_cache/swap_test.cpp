// SPDX-License-Identifier: Apache-2.0
#include "models/page_cache/swap.h"

#include <random>

#include <gtest/gtest.h>

#include "configs/error/error.h"
#include "models/page_cache/page_cache_testing.h"

namespace kvsim::model {
namespace {

using namespace literals;
using testing::TestDisk;

SwapSetup setup(std::int64_t frames, std::int64_t slots) {
  SwapSetup setup;
  setup.memory = Bytes(frames * kPageBytes);
  setup.area = Bytes(slots * kPageBytes);
  return setup;
}

TEST(Swap, NothingGoesWhileAllFits) {
  TestDisk disk;
  AnonymousMemory memory(disk, setup(100, 100), 100);
  const SwapTouched touched = memory.touch(0, 100, true, {});
  EXPECT_EQ(touched.minor_faults, 100);
  EXPECT_TRUE(disk.log.empty());
  EXPECT_EQ(memory.swapped(), 0);
}

TEST(Swap, WhatDoesNotFitGoesOutInRunsAndComesBackInClusters) {
  TestDisk disk;
  AnonymousMemory memory(disk, setup(1000, 2000), 2000);
  Picoseconds now = memory.touch(0, 2000, true, {}).done;
  EXPECT_GE(memory.swapped(), 1000);
  std::int64_t written = 0;
  for (const StorageRequest& request : disk.log) {
    EXPECT_EQ(request.op, StorageOp::write);
    written += request.bytes.count() / kPageBytes;
  }
  EXPECT_EQ(written, memory.counters().swapped_out);
  disk.log.clear();
  const SwapTouched back = memory.touch(0, 1, false, now);  // slot 0
  EXPECT_EQ(back.major_faults, 1);
  ASSERT_FALSE(disk.log.empty());
  // Four read-ahead hits are granted at the start: 4 + 2 pages, rounded up to 8.
  EXPECT_EQ(disk.log[0].op, StorageOp::read);
  EXPECT_EQ(disk.log[0].bytes, Bytes(8 * kPageBytes));
  now = back.done;
  const SwapTouched rest = memory.touch(1, 7, false, now);
  EXPECT_EQ(rest.major_faults, 0);
  EXPECT_EQ(rest.minor_faults, 7);
}

TEST(Swap, ScatteredFaultsShrinkTheWindowToOnePage) {
  TestDisk disk;
  AnonymousMemory memory(disk, setup(2000, 8000), 8000);
  Picoseconds now = memory.touch(0, 8000, true, {}).done;
  disk.log.clear();
  std::vector<std::int64_t> sizes;
  for (std::int64_t page = 0; page < 5000; page += 1000) {
    now = memory.touch(page, 1, false, now).done;
  }
  for (const StorageRequest& request : disk.log) {
    if (request.op == StorageOp::read) {
      sizes.push_back(request.bytes.count() / kPageBytes);
    }
  }
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{8, 4, 2, 1, 1}));
}

TEST(Swap, CleanPagesAreNotWrittenAgain) {
  TestDisk disk;
  AnonymousMemory memory(disk, setup(1000, 4000), 2000);
  Picoseconds now = memory.touch(0, 2000, true, {}).done;
  for (int pass = 0; pass < 3; ++pass) {
    now = memory.touch(0, 2000, false, now).done;
  }
  // Each page was written once, the second time round it was already there.
  EXPECT_LE(memory.counters().swapped_out, 2000);
  EXPECT_GT(memory.counters().swapped_in, 3000);
  const std::int64_t before = memory.counters().swapped_out;
  now = memory.touch(0, 2000, true, now).done;
  memory.touch(0, 2000, true, now);
  EXPECT_GT(memory.counters().swapped_out, before + 1000);
}

TEST(Swap, FullMemoryAndAreaIsAResult) {
  TestDisk disk;
  AnonymousMemory memory(disk, setup(100, 50), 1000);
  const SwapTouched touched = memory.touch(0, 1000, true, {});
  EXPECT_TRUE(touched.out_of_memory);
  EXPECT_EQ(memory.resident() + memory.swapped(), 150);
}

TEST(Swap, ZramTakesRoomAndTimeOfTheProcessor) {
  TestDisk disk;
  SwapSetup with = setup(1000, 2000);
  with.zram = ZramSetup{.ratio = 4, .compress = 5_us, .decompress = 2_us};
  AnonymousMemory memory(disk, with, 1600);
  const SwapTouched first = memory.touch(0, 1600, true, {});
  EXPECT_FALSE(first.out_of_memory);
  EXPECT_TRUE(disk.log.empty());
  EXPECT_EQ(memory.store(), (memory.swapped() + 3) / 4);
  EXPECT_LE(memory.resident() + memory.store(), 1000);
  EXPECT_EQ(memory.counters().processor, memory.counters().swapped_out * 5_us);
  const SwapTouched back = memory.touch(0, 1, false, first.done);
  EXPECT_EQ(back.waited, 2_us);
  EXPECT_EQ(back.major_faults, 1);
}

TEST(Swap, ContentsAreInMemoryOrInOneSlotUnderRandomUse) {
  for (const bool zram : {false, true}) {
    TestDisk disk;
    disk.keep_log = false;
    SwapSetup with = setup(300, 700);
    with.min_free = Bytes(16 * kPageBytes);
    if (zram) {
      with.zram = ZramSetup{.ratio = 3, .compress = 5_us, .decompress = 2_us};
    }
    AnonymousMemory memory(disk, with, 700);
    std::mt19937 random(7);
    Picoseconds now;
    for (int i = 0; i < 20'000; ++i) {
      const auto page = static_cast<std::int64_t>(random() % 700);
      const SwapTouched touched = memory.touch(page, 1, random() % 3 == 0, now);
      ASSERT_EQ(touched.out_of_memory, false) << i;
      now = touched.done;
      ASSERT_LE(memory.resident() + memory.store(), 300);
    }
    const SwapCounters counters = memory.counters();
    EXPECT_EQ(counters.lru.evicted - counters.swapped_in, memory.swapped());
    EXPECT_EQ(disk.read, Bytes(zram ? 0 : counters.swapped_in * kPageBytes));
    EXPECT_EQ(disk.written, Bytes(zram ? 0 : counters.swapped_out * kPageBytes));
  }
}

TEST(Swap, ImpossibleSetupsAreRefused) {
  TestDisk disk;
  EXPECT_THROW(AnonymousMemory(disk, setup(10, 10), 0), InternalError);
  SwapSetup wrong = setup(10, 10);
  wrong.zram = ZramSetup{.ratio = 0.5, .compress = {}, .decompress = {}};
  EXPECT_THROW(AnonymousMemory(disk, wrong, 10), InternalError);
  AnonymousMemory memory(disk, setup(10, 10), 10);
  EXPECT_THROW(memory.touch(5, 6, false, {}), InternalError);
}

}  // namespace
}  // namespace kvsim::model
