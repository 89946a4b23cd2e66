// SPDX-License-Identifier: Apache-2.0
#include "models/page_cache/page_lru.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace kvsim::model {
namespace {

class Owner final : public ReclaimOwner {
 public:
  void evict(PageId page) override { evicted.push_back(page); }
  void met_dirty(PageId page) override { dirty.push_back(page); }
  std::vector<PageId> evicted;
  std::vector<PageId> dirty;
};

struct Bench {
  explicit Bench(const FrameMarks& marks, std::size_t count = 1000) : pages(count) { lru.set_marks(marks); }
  PageTable pages;
  Owner owner;
  PageLru lru{pages, owner};
};

TEST(PageLru, PagesUsedOnceGoInTheOrderInWhichTheyCame) {
  Bench bench({.frames = 100, .min = 4, .low = 8, .high = 12});
  for (PageId page = 0; page < 300; ++page) {
    ASSERT_TRUE(bench.lru.add(page));
  }
  EXPECT_TRUE(std::is_sorted(bench.owner.evicted.begin(), bench.owner.evicted.end()));
  EXPECT_EQ(bench.owner.evicted.front(), 0U);
  EXPECT_GE(bench.lru.free(), 8);
  EXPECT_EQ(static_cast<std::int64_t>(bench.owner.evicted.size()) + bench.lru.resident(), 300);
}

TEST(PageLru, SecondAccessActivatesAndAnActivePageOutlivesTheScan) {
  Bench bench({.frames = 100, .min = 4, .low = 8, .high = 12});
  ASSERT_TRUE(bench.lru.add(0));
  bench.lru.mark_accessed(0);
  EXPECT_EQ(bench.lru.active(), 0);
  bench.lru.mark_accessed(0);
  EXPECT_EQ(bench.lru.active(), 1);
  for (PageId page = 1; page < 500; ++page) {
    ASSERT_TRUE(bench.lru.add(page));
  }
  EXPECT_TRUE(bench.pages[0].resident());
}

TEST(PageLru, AMappedPageGoesRoundOnceAndStaysIfItIsUsedAgain) {
  Bench bench({.frames = 100, .min = 4, .low = 8, .high = 12});
  for (PageId page = 0; page < 92; ++page) {
    ASSERT_TRUE(bench.lru.add(page));
    bench.pages[page].set(page_flag::mapped | page_flag::young);
  }
  // A first look at all of them: each is young, kept and marked. A second takes from the end what is needed.
  ASSERT_TRUE(bench.lru.add(92));
  EXPECT_FALSE(bench.pages[0].resident());
  for (PageId page = 40; page < 50; ++page) {
    ASSERT_TRUE(bench.pages[page].has(page_flag::referenced)) << page;
    bench.pages[page].set(page_flag::young);
  }
  for (PageId page = 93; page < 300; ++page) {
    ASSERT_TRUE(bench.lru.add(page));
  }
  for (PageId page = 40; page < 50; ++page) {
    EXPECT_TRUE(bench.pages[page].resident()) << page;
    EXPECT_TRUE(bench.pages[page].has(page_flag::active)) << page;
  }
  EXPECT_FALSE(bench.pages[60].resident());
}

TEST(PageLru, RefaultWithinTheLengthOfTheActiveListActivates) {
  // 40 active pages; evictions are counted by age. A page that comes back after up to 40 of them is
  // activated.
  for (const int after : {10, 600}) {
    Bench bench({.frames = 1000, .min = 0, .low = 0, .high = 0}, 5000);
    for (PageId page = 0; page < 300; ++page) {
      ASSERT_TRUE(bench.lru.add(page));
      bench.lru.mark_accessed(page);
      bench.lru.mark_accessed(page);
    }
    PageId next = 1000;
    while (bench.owner.evicted.empty()) {
      ASSERT_TRUE(bench.lru.add(next++));
    }
    const PageId back = bench.owner.evicted.front();
    const std::uint32_t age = bench.pages[back].aux;
    // Reclaim frees some at a time: stop at the first eviction that is `after` later.
    while (bench.pages[bench.owner.evicted.back()].aux - age < static_cast<std::uint32_t>(after)) {
      ASSERT_TRUE(bench.lru.add(next++));
    }
    const std::uint32_t distance = bench.pages[bench.owner.evicted.back()].aux + 1 - age;
    const std::int64_t active = bench.lru.active();
    ASSERT_TRUE(bench.lru.add(back));
    EXPECT_EQ(bench.lru.counters().refaults, 1);
    EXPECT_EQ(distance <= active, after == 10) << distance << " " << active;
    EXPECT_EQ(bench.pages[back].has(page_flag::active), distance <= active) << distance << " " << active;
  }
}

TEST(PageLru, CodeStaysOnTheActiveListWhileItIsUsed) {
  Bench bench({.frames = 60, .min = 2, .low = 4, .high = 6});
  ASSERT_TRUE(bench.lru.add(0));
  for (PageId page = 1; page < 900; ++page) {
    bench.pages[0].set(page_flag::mapped | page_flag::code | page_flag::young);
    ASSERT_TRUE(bench.lru.add(page));
    bench.lru.mark_accessed(page);
    bench.lru.mark_accessed(page);
  }
  EXPECT_TRUE(bench.pages[0].resident());
  EXPECT_FALSE(bench.pages[1].resident());
}

TEST(PageLru, LockedPagesNeverGoAndNothingIsLeftIfAllAreLocked) {
  Bench bench({.frames = 20, .min = 0, .low = 0, .high = 0});
  for (PageId page = 0; page < 20; ++page) {
    ASSERT_TRUE(bench.lru.add(page));
    bench.lru.lock(page);
  }
  EXPECT_FALSE(bench.lru.add(20));
  EXPECT_FALSE(bench.pages[20].resident());
  bench.lru.unlock(7);
  EXPECT_TRUE(bench.lru.add(20));
  EXPECT_EQ(bench.owner.evicted, std::vector<PageId>{7});
  EXPECT_EQ(bench.lru.locked(), 19);
}

TEST(PageLru, DirtyPagesAreToldAndKept) {
  Bench bench({.frames = 20, .min = 0, .low = 0, .high = 0});
  for (PageId page = 0; page < 20; ++page) {
    ASSERT_TRUE(bench.lru.add(page));
    bench.pages[page].set(page_flag::dirty);
  }
  bench.pages[19].clear(page_flag::dirty);
  EXPECT_TRUE(bench.lru.add(20));
  EXPECT_EQ(bench.owner.evicted, std::vector<PageId>{19});
  EXPECT_FALSE(bench.owner.dirty.empty());
}

TEST(PageLru, ShrinkingMemoryEvictsAtOnce) {
  Bench bench({.frames = 500, .min = 8, .low = 10, .high = 12});
  for (PageId page = 0; page < 400; ++page) {
    ASSERT_TRUE(bench.lru.add(page));
  }
  bench.lru.set_marks({.frames = 100, .min = 8, .low = 10, .high = 12});
  EXPECT_GE(bench.lru.free(), 12);
  EXPECT_GT(bench.lru.resident(), 0);
}

// The same rules on std::list and std::map, without flags, links or run counts; slow and plain.
class Reference {
 public:
  explicit Reference(const FrameMarks& marks) : marks_(marks) {}

  bool resident(PageId page) const { return where_.contains(page); }
  std::int64_t free() const { return marks_.frames - static_cast<std::int64_t>(where_.size()); }
  void touch(PageId page) {
    if (resident(page)) {
      young_.insert(page);
    }
  }
  void add(PageId page) {
    if (free() - 1 < marks_.low) {
      kswapd();
    }
    ASSERT_GE(free(), marks_.min + 1);
    bool active = false;
    if (const auto it = shadow_.find(page); it != shadow_.end()) {
      active = age_ - it->second <= static_cast<std::int64_t>(active_.size());
      shadow_.erase(it);
    }
    age_ += active ? 1 : 0;
    activated_ += active ? 1 : 0;
    place(page, active);
    young_.insert(page);
  }
  const std::list<PageId>& inactive() const { return inactive_; }
  const std::list<PageId>& active() const { return active_; }

 private:
  void place(PageId page, bool active) {
    std::list<PageId>& list = active ? active_ : inactive_;
    list.push_front(page);
    where_[page] = active;
  }
  void kswapd() {
    for (int failures = 0; failures < 2 && free() < marks_.high;) {
      const std::int64_t before = free();
      balance();
      failures = free() > before ? 0 : failures + 1;
    }
  }
  void balance() {
    for (int priority = 12; priority >= 1 && free() < marks_.high;) {
      std::int64_t scanned = 0;
      std::int64_t freed = 0;
      const bool deactivate = activated_ != seen_ || inactive_.size() < active_.size();
      auto inactive = static_cast<std::int64_t>(inactive_.size()) >> priority;
      auto active = static_cast<std::int64_t>(active_.size()) >> priority;
      const std::int64_t wanted = std::max<std::int64_t>(marks_.high, 32);
      while ((inactive > 0 || active > 0) && freed < wanted) {
        for (int i = 0; i < 32 && inactive > 0; ++i, --inactive, ++scanned) {
          freed += look() ? 1 : 0;
        }
        for (int i = 0; i < 32 && active > 0; ++i, --active) {
          if (deactivate && !active_.empty()) {
            const PageId page = active_.back();
            active_.pop_back();
            young_.erase(page);
            place(page, false);
          }
        }
      }
      if (scanned < wanted || freed == 0) {
        --priority;
      }
    }
    seen_ = activated_;
  }
  bool look() {
    if (inactive_.empty()) {
      return false;
    }
    const PageId page = inactive_.back();
    inactive_.pop_back();
    const bool seen_before = referenced_.erase(page) > 0;
    if (young_.erase(page) > 0) {
      referenced_.insert(page);
      place(page, seen_before);
      return false;
    }
    where_.erase(page);
    shadow_[page] = age_++;
    return true;
  }

  FrameMarks marks_;
  std::list<PageId> active_, inactive_;
  std::map<PageId, bool> where_;
  std::set<PageId> young_, referenced_;
  std::map<PageId, std::int64_t> shadow_;
  std::int64_t age_ = 0, activated_ = 0, seen_ = 0;
};

TEST(PageLru, RandomAccessesAgreeWithAPlainReference) {
  for (const unsigned seed : {1U, 2U, 3U, 4U}) {
    const FrameMarks marks{.frames = 400, .min = 16, .low = 20, .high = 24};
    Bench bench(marks, 1200);
    Reference reference(marks);
    std::mt19937 random(seed);
    const std::uint32_t span = 300 + 300 * (seed - 1);  // fits, and does not
    for (int i = 0; i < 30'000; ++i) {
      // Scans and scattered accesses by turns.
      const PageId page =
          (i / 2000) % 2 == 0 ? static_cast<PageId>(i) % span : static_cast<PageId>(random() % span);
      ASSERT_EQ(bench.pages[page].resident(), reference.resident(page)) << i;
      if (reference.resident(page)) {
        bench.pages[page].set(page_flag::young);
        reference.touch(page);
      } else {
        ASSERT_TRUE(bench.lru.add(page));
        bench.pages[page].set(page_flag::young);
        reference.add(page);
      }
      ASSERT_EQ(bench.lru.active(), static_cast<std::int64_t>(reference.active().size())) << i;
      ASSERT_EQ(bench.lru.free(), reference.free()) << i;
    }
    auto expected = reference.inactive().rbegin();
    bench.lru.visit_inactive([&](PageId page) { EXPECT_EQ(page, *expected++); });
    EXPECT_EQ(seed > 1, bench.lru.counters().evicted > 0);
  }
}

}  // namespace
}  // namespace kvsim::model
