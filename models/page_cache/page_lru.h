// SPDX-License-Identifier: Apache-2.0
// Linux's two lists of file pages, with refault distances, and reclaim from them: which page goes when a
// frame is needed. Linux 6.1, mm/vmscan.c, mm/workingset.c, mm/swap.c, mm/page_alloc.c.
#pragma once

#include <cstdint>

#include "models/page_cache/page.h"

namespace kvsim::model {

/// What reclaim asks of the owner of the pages.
class ReclaimOwner {
 public:
  virtual ~ReclaimOwner() = default;
  /// The page leaves memory; it is clean, on no list, and its frame is counted as free.
  virtual void evict(PageId page) = 0;
  /// Whether there is a place for the contents.
  [[nodiscard]] virtual bool may_evict(PageId /*page*/) const { return true; }
  /// Reclaim met a dirty page at the end of the inactive list; it goes back to the active list.
  virtual void met_dirty(PageId page) = 0;
};

/// Page frames: of all that file pages may use, how many reclaim keeps free.
struct FrameMarks {
  std::int64_t frames = 0;  ///< in use or free
  std::int64_t min = 0;     ///< below it, whoever needs a frame reclaims
  std::int64_t low = 0;     ///< below it, kswapd wakes,
  std::int64_t high = 0;    ///< and goes on up to here
};

struct LruCounters {
  std::int64_t evicted = 0;
  std::int64_t refaults = 0;   ///< pages read again of which the eviction is remembered
  std::int64_t activated = 0;  ///< of those, put on the active list at once
  std::int64_t kswapd_runs = 0;
  std::int64_t direct_runs = 0;
  std::int64_t scanned = 0;
};

class PageLru {
 public:
  PageLru(PageTable& pages, ReclaimOwner& owner) : pages_(pages), owner_(owner) {}

  /// Reclaims what no longer fits.
  void set_marks(const FrameMarks& marks);
  [[nodiscard]] const FrameMarks& marks() const { return marks_; }

  /// Takes a frame for the page and puts it on a list. False if no frame can be had.
  [[nodiscard]] bool add(PageId page);
  /// The page leaves memory otherwise than by reclaim: dropped, file gone.
  void forget(PageId page);
  /// mlock and munlock.
  void lock(PageId page);
  void unlock(PageId page);
  /// mark_page_accessed: of read() and of MAP_POPULATE, not of loads through a mapping.
  void mark_accessed(PageId page);

  [[nodiscard]] std::int64_t resident() const { return active_.pages + inactive_.pages + locked_; }
  [[nodiscard]] std::int64_t free() const { return marks_.frames - resident(); }
  [[nodiscard]] std::int64_t active() const { return active_.pages; }
  [[nodiscard]] std::int64_t inactive() const { return inactive_.pages; }
  [[nodiscard]] std::int64_t locked() const { return locked_; }
  [[nodiscard]] const LruCounters& counters() const { return counters_; }
  /// From the next page to go to the newest.
  template <class Visit>
  void visit_inactive(Visit visit) const {
    for (PageId page = inactive_.tail; page != kNoPage; page = pages_[page].prev) {
      visit(page);
    }
  }

 private:
  struct List {
    PageId head = kNoPage;
    PageId tail = kNoPage;
    std::int64_t pages = 0;
  };
  /// One pass over the lists.
  struct Scan {
    std::int64_t wanted = 0;
    std::int64_t scanned = 0;
    std::int64_t reclaimed = 0;
  };
  enum class Fate : std::uint8_t { evict, keep, activate };

  void push(List& list, PageId page);
  void unlink(List& list, PageId page);
  List& list_of(PageId page) { return pages_[page].has(page_flag::active) ? active_ : inactive_; }
  void refault(PageId page);

  // page_reclaim.cpp
  void balance();
  bool balance_once();
  bool reclaim_directly(std::int64_t wanted);
  void shrink(int priority, Scan& scan);
  void shrink_inactive(std::int64_t pages, Scan& scan);
  void shrink_active(std::int64_t pages);
  void evict(PageId page);
  [[nodiscard]] Fate examine(PageId page);
  [[nodiscard]] bool inactive_is_low() const;

  PageTable& pages_;
  ReclaimOwner& owner_;
  FrameMarks marks_;
  List active_;
  List inactive_;
  std::int64_t locked_ = 0;
  std::uint32_t age_ = 0;  ///< nonresident_age: evictions and activations
  std::int64_t activations_seen_ = 0;
  LruCounters counters_;
};

}  // namespace kvsim::model
