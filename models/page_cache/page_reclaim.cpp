// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "models/page_cache/page_lru.h"

namespace kvsim::model {

namespace {

constexpr int kDefaultPriority = 12;        // DEF_PRIORITY: a pass looks at 1 / 2^priority of each list
constexpr std::int64_t kClusterPages = 32;  // SWAP_CLUSTER_MAX
constexpr std::int64_t kPagesPerGiB = 1 << 18;

}  // namespace

// kswapd() calls balance_pgdat() until the high mark is reached. It runs here in no time, when a frame is
// asked for. Linux gives up after 16 runs that freed nothing; a second one sees all accessed bits cleared.
void PageLru::balance() {
  ++counters_.kswapd_runs;
  for (int failures = 0; failures < 2 && free() < marks_.high;) {
    failures = balance_once() ? 0 : failures + 1;
  }
}

bool PageLru::balance_once() {
  const std::int64_t evicted = counters_.evicted;
  for (int priority = kDefaultPriority; priority >= 1 && free() < marks_.high;) {
    Scan scan{.wanted = std::max(marks_.high, kClusterPages)};
    shrink(priority, scan);
    if (scan.scanned < scan.wanted || scan.reclaimed == 0) {
      --priority;
    }
  }
  activations_seen_ = counters_.activated;
  return counters_.evicted > evicted;
}

// try_to_free_pages()
bool PageLru::reclaim_directly(std::int64_t wanted) {
  ++counters_.direct_runs;
  Scan scan{.wanted = std::max(wanted, kClusterPages)};
  for (int priority = kDefaultPriority; priority >= 0 && scan.reclaimed < scan.wanted; --priority) {
    shrink(priority, scan);
  }
  activations_seen_ = counters_.activated;
  return scan.reclaimed > 0;
}

// inactive_is_low(): the active list may be as long as the inactive one, up to 1 GiB; longer above.
bool PageLru::inactive_is_low() const {
  const std::int64_t gib = (inactive_.pages + active_.pages) / kPagesPerGiB;
  const auto ratio = gib == 0 ? 1 : static_cast<std::int64_t>(std::sqrt(10.0 * static_cast<double>(gib)));
  return inactive_.pages * ratio < active_.pages;
}

// shrink_node() and shrink_lruvec(), of file pages only.
void PageLru::shrink(int priority, Scan& scan) {
  // Refaults that were activated tell of a new working set: stale active pages have to give way.
  const bool deactivate = counters_.activated != activations_seen_ || inactive_is_low();
  std::int64_t inactive = inactive_.pages >> priority;
  std::int64_t active = active_.pages >> priority;
  while (inactive > 0 || active > 0) {
    const std::int64_t of_inactive = std::min(inactive, kClusterPages);
    const std::int64_t of_active = std::min(active, kClusterPages);
    inactive -= of_inactive;
    active -= of_active;
    shrink_inactive(of_inactive, scan);
    if (deactivate) {
      shrink_active(of_active);
    }
    if (scan.reclaimed >= scan.wanted) {
      break;
    }
  }
}

// shrink_inactive_list()
void PageLru::shrink_inactive(std::int64_t pages, Scan& scan) {
  for (pages = std::min(pages, inactive_.pages); pages > 0; --pages) {
    const PageId id = inactive_.tail;
    ++scan.scanned;
    ++counters_.scanned;
    unlink(inactive_, id);
    switch (examine(id)) {
      case Fate::evict:
        evict(id);
        ++scan.reclaimed;
        break;
      case Fate::keep:
        push(inactive_, id);
        break;
      case Fate::activate:
        pages_[id].set(page_flag::active);
        push(active_, id);
        break;
    }
  }
}

// shrink_folio_list() and folio_check_references(): a mapped page starts with its accessed bit set, and is
// activated when it has been accessed again by the time it comes to the end a second time.
PageLru::Fate PageLru::examine(PageId id) {
  Page& page = pages_[id];
  if (page.has(page_flag::in_flight | page_flag::pinned)) {
    return Fate::keep;
  }
  if (page.has(page_flag::writeback)) {
    return Fate::activate;
  }
  const bool was_referenced = page.has(page_flag::referenced);
  const bool young = page.has(page_flag::young);
  page.clear(page_flag::referenced | page_flag::young);
  if (young) {
    page.set(page_flag::referenced);
    return was_referenced || page.has(page_flag::code) ? Fate::activate : Fate::keep;
  }
  if (page.has(page_flag::dirty)) {
    owner_.met_dirty(id);
    return Fate::activate;
  }
  return owner_.may_evict(id) ? Fate::evict : Fate::keep;
}

void PageLru::evict(PageId id) {
  owner_.evict(id);
  Page& page = pages_[id];
  page.flags = static_cast<std::uint16_t>((page.flags & page_flag::workingset) | page_flag::shadow);
  page.aux = age_++;
  ++counters_.evicted;
}

// shrink_active_list(): whatever is at the end goes to the inactive list, accessed or not, except code.
void PageLru::shrink_active(std::int64_t pages) {
  for (pages = std::min(pages, active_.pages); pages > 0; --pages) {
    const PageId id = active_.tail;
    Page& page = pages_[id];
    ++counters_.scanned;
    unlink(active_, id);
    if (page.has(page_flag::code) && page.has(page_flag::young)) {
      page.clear(page_flag::young);
      push(active_, id);
      continue;
    }
    page.clear(page_flag::active | page_flag::young);
    page.set(page_flag::workingset);
    push(inactive_, id);
  }
}

}  // namespace kvsim::model
