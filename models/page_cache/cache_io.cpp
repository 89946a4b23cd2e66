// SPDX-License-Identifier: Apache-2.0
// Reads into the cache, and what happens when requests are done.
#include <algorithm>

#include "configs/error/error.h"
#include "models/page_cache/page_cache.h"

namespace kvsim::model {

namespace {

constexpr std::int64_t kForcedChunk = 512;  // force_page_cache_ra() reads 2 MiB at a time
constexpr int kReclaimRetries = 16;         // MAX_RECLAIM_RETRIES

}  // namespace

void PageCache::collect(Picoseconds now) {
  while (const std::optional<BlockDone> done = queue_.next_until(now)) {
    finish_request(*done);
  }
}

bool PageCache::wait_any(Call& call) {
  const std::optional<BlockDone> done = queue_.next();
  if (!done) {
    return false;
  }
  if (done->done > call.now) {
    call.result.waited += done->done - call.now;
    call.now = done->done;
  }
  finish_request(*done);
  return true;
}

void PageCache::wait_for(Call& call, PageId page) {
  while (pages_[page].has(page_flag::in_flight)) {
    check(wait_any(call), "a page in flight has a request");
  }
}

void PageCache::finish_request(const BlockDone& done) {
  if (done.status != StorageStatus::ok && !failed_) {
    failed_ = done;
  }
  if (done.run.page == kNoPage) {
    --direct_left_;
    return;
  }
  const auto pages = static_cast<PageId>(done.run.bytes.count() / kPageBytes);
  const int flag = done.run.op == StorageOp::read ? page_flag::in_flight : page_flag::writeback;
  for (PageId page = done.run.page; page < done.run.page + pages; ++page) {
    pages_[page].clear(flag);
  }
  if (done.run.op == StorageOp::write) {
    file_of(done.run.page).writeback -= pages;
    writeback_ -= pages;
  }
}

// Read-ahead gives up when no frame is to be had (__GFP_NORETRY); what is asked for waits for pages under
// way, and looks again when there are none.
bool PageCache::take_frame(Call& call, PageId page, bool may_wait) {
  for (int idle = 0; idle < kReclaimRetries;) {
    const bool added = lru_.add(page);
    if (reclaim_met_dirty_) {
      wake_flusher(call);
    }
    if (added || !may_wait) {
      return added;
    }
    idle = wait_any(call) ? 0 : idle + 1;
  }
  return false;
}

// wakeup_flusher_threads()
void PageCache::wake_flusher(const Call& call) {
  reclaim_met_dirty_ = false;
  for (File& file : files_) {
    write_back(file, file.pages, call);
  }
}

// page_cache_ra_unbounded() after do_page_cache_ra(): what is there splits the run.
void PageCache::read_pages(Call& call, const ReadPlan& plan) {
  File& file = call.file;
  const std::int64_t end = std::min(plan.first + plan.pages, file.pages);
  const std::int64_t marker = plan.async > 0 ? end - plan.async : -1;
  PageRun run{.first = plan.first};
  for (std::int64_t i = plan.first; i < end; ++i) {
    const PageId id = file.base + static_cast<PageId>(i);
    Page& page = pages_[id];
    if (page.resident()) {
      submit_run(file, run, StorageOp::read, call);
      run = {.first = i + 1};
      continue;
    }
    if (!take_frame(call, id, false)) {
      break;
    }
    page.clear(page_flag::used);
    page.set(page_flag::in_flight | (i == marker ? page_flag::marker : 0));
    ++run.pages;
    if (i >= call.demand.first && i < call.demand.first + call.demand.pages) {
      ++call.demanded;
      page.set(page_flag::used);
    } else {
      counters_.read_ahead += Bytes(kPageBytes);
    }
    call.result.read += Bytes(kPageBytes);
  }
  submit_run(file, run, StorageOp::read, call);
}

bool PageCache::read_one(Call& call, std::int64_t index) {
  const PageId id = call.file.base + static_cast<PageId>(index);
  if (!take_frame(call, id, true)) {
    call.result.out_of_memory = true;
    return false;
  }
  pages_[id].set(page_flag::in_flight | page_flag::used);
  ++call.demanded;
  call.result.read += Bytes(kPageBytes);
  submit_run(call.file, {.first = index, .pages = 1}, StorageOp::read, call);
  return true;
}

void PageCache::force_read(Call& call, std::int64_t first, std::int64_t pages) {
  pages = std::min({pages, call.file.window.forced_limit(), call.file.pages - first});
  for (const std::int64_t end = first + pages; first < end; first += kForcedChunk) {
    read_pages(call, {.first = first, .pages = std::min(kForcedChunk, end - first)});
  }
}

void PageCache::submit_run(File& file, const PageRun& run, StorageOp op, const Call& call) {
  auto extent = std::prev(
      std::upper_bound(file.extents.begin(), file.extents.end(), run.first,
                       [](std::int64_t page, const PlacedExtent& placed) { return page < placed.first; }));
  for (std::int64_t i = run.first; i < run.first + run.pages; ++extent) {
    const std::int64_t end = std::min(run.first + run.pages, extent->first + extent->pages);
    const bool direct = call.access.path == AccessPath::direct;
    const std::int64_t requests =
        queue_.submit({.op = op,
                       .offset = extent->offset + Bytes((i - extent->first) * kPageBytes),
                       .bytes = Bytes((end - i) * kPageBytes),
                       .page = direct ? kNoPage : file.base + static_cast<PageId>(i),
                       .lane = call.access.lane},
                      call.now);
    direct_left_ += direct ? requests : 0;
    i = end;
  }
}

void PageCache::evict(PageId page) {
  if (!pages_[page].has(page_flag::used)) {
    counters_.wasted += Bytes(kPageBytes);
  }
}

}  // namespace kvsim::model
