// SPDX-License-Identifier: Apache-2.0
// Windows worked out by hand from the rules of mm/readahead.c (Linux 6.1), with 32 pages of read-ahead.
#include "models/page_cache/window.h"

#include <set>

#include <gtest/gtest.h>

#include "models/page_cache/page.h"

namespace kvsim::model {
namespace {

class Pages final : public PagePresence {
 public:
  [[nodiscard]] bool present(std::int64_t page) const override { return in.contains(page); }
  void read(const ReadPlan& plan) {
    for (std::int64_t i = 0; i < plan.pages; ++i) {
      in.insert(plan.first + i);
    }
  }
  std::set<std::int64_t> in;
};

constexpr std::int64_t kLimit = 32;

ReadPlan plan(std::int64_t first, std::int64_t pages, std::int64_t async) {
  return {.first = first, .pages = pages, .async = async};
}

TEST(Window, FirstReadOfAFileDependsOnItsSize) {
  const Pages none;
  // Pages wanted: 1 -> 4 (x4 up to a 32nd of the limit), 2 -> 4 and 8 -> 16 (x2 up to a quarter), 9 -> the
  // limit.
  EXPECT_EQ(ReadAheadWindow(kLimit, kLimit).on_miss(0, 1, none), plan(0, 4, 3));
  EXPECT_EQ(ReadAheadWindow(kLimit, kLimit).on_miss(0, 2, none), plan(0, 4, 2));
  EXPECT_EQ(ReadAheadWindow(kLimit, kLimit).on_miss(0, 8, none), plan(0, 16, 8));
  EXPECT_EQ(ReadAheadWindow(kLimit, kLimit).on_miss(0, 9, none), plan(0, 32, 23));
}

TEST(Window, SequentialReadsRampUpToTheLimit) {
  Pages pages;
  ReadAheadWindow window(kLimit, kLimit);
  pages.read(window.on_miss(0, 1, pages));                  // 0..3, marker 1
  EXPECT_EQ(window.on_marker(1, 1, pages), plan(4, 8, 8));  // 4 -> 8, marker 4
  EXPECT_EQ(window.on_marker(4, 1, pages), plan(12, 16, 16));
  EXPECT_EQ(window.on_marker(12, 1, pages), plan(28, 32, 32));
  EXPECT_EQ(window.on_marker(28, 1, pages), plan(60, 32, 32));
}

TEST(Window, SequentialAdviceDoublesTheLimit) {
  const Pages none;
  ReadAheadWindow window(kLimit, kLimit);
  window.set_sequential(true);
  EXPECT_EQ(window.limit(), 64);  // 256 KiB
  EXPECT_EQ(window.on_miss(0, 32, none), plan(0, 64, 32));
  window.set_sequential(false);
  EXPECT_EQ(window.limit(), 32);
}

TEST(Window, AReadThatGoesOnFromTheLastOneBeginsAStream) {
  const Pages none;
  ReadAheadWindow window(kLimit, kLimit);
  window.note_read(Bytes(51 * kPageBytes));
  EXPECT_EQ(window.on_miss(51, 2, none), plan(51, 4, 2));
  ReadAheadWindow inside(kLimit, kLimit);
  inside.note_read(Bytes(50 * kPageBytes + 100));
  EXPECT_EQ(inside.on_miss(51, 1, none), plan(51, 4, 3));
  EXPECT_EQ(inside.last_read(), 50);
}

TEST(Window, ALoneSmallReadReadsNoMoreAndLeavesTheStreamAlone) {
  Pages pages;
  ReadAheadWindow window(kLimit, kLimit);
  pages.read(window.on_miss(0, 4, pages));  // 0..7, marker 4
  EXPECT_EQ(window.on_miss(1000, 2, pages), plan(1000, 2, 0));
  EXPECT_EQ(window.on_marker(4, 4, pages), plan(8, 16, 16));  // the stream goes on
}

TEST(Window, CachedPagesBeforeAMissAreTakenForAStream) {
  Pages pages;
  for (std::int64_t i = 90; i < 100; ++i) {
    pages.in.insert(i);
  }
  // Ten pages of history and two wanted; the window hits no marker of its own.
  EXPECT_EQ(ReadAheadWindow(kLimit, kLimit).on_miss(100, 2, pages), plan(100, 12, 1));
  // History no longer than what is wanted may be chance.
  EXPECT_EQ(ReadAheadWindow(kLimit, kLimit).on_miss(100, 10, pages), plan(100, 10, 0));
  // History from the start of the file counts twice.
  Pages whole;
  for (std::int64_t i = 0; i < 6; ++i) {
    whole.in.insert(i);
  }
  EXPECT_EQ(ReadAheadWindow(kLimit, kLimit).on_miss(6, 1, whole), plan(6, 13, 1));
}

TEST(Window, AMarkerOfAnotherStreamGoesOnFromTheFirstHole) {
  Pages pages;
  for (std::int64_t i = 200; i < 208; ++i) {
    pages.in.insert(i);
  }
  // Hole at 208, 8 after the marker; 8 + 1 pages, doubled.
  EXPECT_EQ(ReadAheadWindow(kLimit, kLimit).on_marker(200, 1, pages), plan(208, 18, 18));
  for (std::int64_t i = 208; i < 300; ++i) {
    pages.in.insert(i);
  }
  EXPECT_EQ(ReadAheadWindow(kLimit, kLimit).on_marker(200, 1, pages), std::nullopt);
}

TEST(Window, ALargeReadMayGoUpToTheLongestRequest) {
  const Pages none;
  EXPECT_EQ(ReadAheadWindow(kLimit, 320).on_miss(0, 100, none), plan(0, 100, 100 / 2));
  EXPECT_EQ(ReadAheadWindow(kLimit, 320).on_miss(0, 1000, none).pages, 320);
}

TEST(Window, ReadAroundStopsAfterAHundredMissesAndHitsTakeMissesBack) {
  ReadAheadWindow window(kLimit, kLimit);
  EXPECT_EQ(window.around(5), plan(0, 32, 8));
  EXPECT_EQ(window.around(1000), plan(984, 32, 8));
  for (int i = 0; i < 98; ++i) {
    EXPECT_TRUE(window.around(1000));
  }
  EXPECT_FALSE(window.around(1000));
  window.mapped_hit();
  window.mapped_hit();
  EXPECT_TRUE(window.around(1000));
  EXPECT_FALSE(window.around(1000));
  for (int i = 0; i < 5000; ++i) {
    (void)window.around(1000);  // the count ends at 1000
  }
  for (int i = 0; i < 901; ++i) {
    window.mapped_hit();
  }
  EXPECT_TRUE(window.around(1000));
}

}  // namespace
}  // namespace kvsim::model
