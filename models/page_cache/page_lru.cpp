// SPDX-License-Identifier: Apache-2.0
#include "models/page_cache/page_lru.h"

#include "configs/error/error.h"

namespace kvsim::model {

void PageLru::push(List& list, PageId id) {
  Page& page = pages_[id];
  page.prev = kNoPage;
  page.next = list.head;
  (list.head == kNoPage ? list.tail : pages_[list.head].prev) = id;
  list.head = id;
  ++list.pages;
}

void PageLru::unlink(List& list, PageId id) {
  const Page& page = pages_[id];
  (page.prev == kNoPage ? list.head : pages_[page.prev].next) = page.next;
  (page.next == kNoPage ? list.tail : pages_[page.next].prev) = page.prev;
  --list.pages;
}

void PageLru::set_marks(const FrameMarks& marks) {
  check(0 <= marks.min && marks.min <= marks.low && marks.low <= marks.high, "watermarks rise");
  marks_ = marks;
  if (free() < marks_.low) {
    balance();
  }
  if (free() < marks_.min) {
    reclaim_directly(marks_.min - free());
  }
}

bool PageLru::add(PageId id) {
  if (free() - 1 < marks_.low) {
    balance();
  }
  if (free() - 1 < marks_.min && !reclaim_directly(32) && free() < 1) {
    return false;
  }
  Page& page = pages_[id];
  page.clear(page_flag::active | page_flag::referenced);
  page.set(page_flag::resident);
  if (page.has(page_flag::shadow)) {
    refault(id);
  }
  push(list_of(id), id);
  return true;
}

// mm/workingset.c: the page would have stayed, had the inactive list been longer by as much as the distance.
// If the active list is at least that long, its pages have to compete with this one. Without swap the
// anonymous lists do not count.
void PageLru::refault(PageId id) {
  Page& page = pages_[id];
  page.clear(page_flag::shadow);
  ++counters_.refaults;
  const std::uint32_t distance = age_ - page.aux;
  if (distance <= active_.pages) {
    page.set(page_flag::active);
    ++age_;
    ++counters_.activated;
  }
}

void PageLru::forget(PageId id) {
  Page& page = pages_[id];
  if (page.has(page_flag::locked)) {
    --locked_;
  } else {
    unlink(list_of(id), id);
  }
  page.flags = 0;
}

void PageLru::lock(PageId id) {
  Page& page = pages_[id];
  if (!page.has(page_flag::locked)) {
    unlink(list_of(id), id);
    page.set(page_flag::locked);
    page.clear(page_flag::active);
    ++locked_;
  }
}

void PageLru::unlock(PageId id) {
  Page& page = pages_[id];
  if (page.has(page_flag::locked)) {
    page.clear(page_flag::locked);
    --locked_;
    push(inactive_, id);
  }
}

void PageLru::mark_accessed(PageId id) {
  Page& page = pages_[id];
  if (!page.has(page_flag::referenced)) {
    page.set(page_flag::referenced);
  } else if ((page.flags & (page_flag::active | page_flag::locked)) == 0) {
    unlink(inactive_, id);
    page.set(page_flag::active);
    page.clear(page_flag::referenced);
    push(active_, id);
    ++age_;
  }
}

}  // namespace kvsim::model
