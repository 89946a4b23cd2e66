// SPDX-License-Identifier: Apache-2.0
// read(), write() and O_DIRECT. Linux 6.1, mm/filemap.c.
#include <algorithm>

#include "models/page_cache/page_cache.h"
#include "models/page_cache/presence.h"

namespace kvsim::model {

// filemap_read()
std::int64_t PageCache::read_call(Call& call, const PageRun& run) {
  call.now += setup_.call;
  const std::optional<std::int64_t> last = call.file.window.last_read();
  for (std::int64_t i = run.first; i < run.first + run.pages; ++i) {
    collect(call.now);
    if (!bring_in(call, i)) {
      return i - run.first;
    }
    const PageId id = call.file.base + static_cast<PageId>(i);
    wait_for(call, id);
    pages_[id].set(page_flag::used);
    if (i != run.first || i != last) {  // small reads of one page are one access
      lru_.mark_accessed(id);
    }
    call.now += setup_.copy_page + call.access.each_page;
  }
  return run.pages;
}

// filemap_get_pages(): the page is there or on its way afterwards.
bool PageCache::bring_in(Call& call, std::int64_t index) {
  File& file = call.file;
  Page& page = pages_[file.base + static_cast<PageId>(index)];
  const std::int64_t wanted = call.demand.first + call.demand.pages - index;
  const Presence presence(pages_, file);
  if (!page.resident()) {
    if (file.random || file.window.limit() == 0) {
      force_read(call, index, file.random ? wanted : 1);
    } else {
      read_pages(call, file.window.on_miss(index, wanted, presence));
    }
  } else if (page.has(page_flag::marker) && !page.has(page_flag::writeback)) {
    page.clear(page_flag::marker);
    if (const auto plan = file.window.on_marker(index, wanted, presence)) {
      page.set(page_flag::pinned);
      read_pages(call, *plan);
      page.clear(page_flag::pinned);
    }
  }
  return page.resident() || read_one(call, index);
}

// generic_perform_write(): a page that is written in part must be read first.
std::int64_t PageCache::write_call(Call& call, const PageRun& run, Bytes first, Bytes bytes) {
  call.now += setup_.call;
  const std::int64_t last = run.first + run.pages - 1;
  for (std::int64_t i = run.first; i <= last; ++i) {
    collect(call.now);
    const PageId id = call.file.base + static_cast<PageId>(i);
    Page& page = pages_[id];
    const bool in_part = (i == run.first && first.count() % kPageBytes != 0) ||
                         (i == last && (first + bytes).count() % kPageBytes != 0);
    if (!page.resident()) {
      if (in_part ? !read_one(call, i) : !take_frame(call, id, true)) {
        call.result.out_of_memory = true;
        return i - run.first;
      }
    }
    wait_for(call, id);
    page.set(page_flag::used);
    make_dirty(call, i);
    call.now += setup_.copy_page + call.access.each_page;
    balance_dirty(call);
  }
  return run.pages;
}

// generic_file_direct_write() and its like: dirty pages are written first, cached ones dropped by a write.
void PageCache::direct_call(Call& call, const PageRun& run) {
  call.now += setup_.call;
  collect(call.now);
  File& file = call.file;
  if (!file.dirty.empty() || file.writeback > 0) {
    Call flush{.file = file, .access = {}, .now = call.now, .demand = {}};
    write_back(file, file.pages, flush);
    while (file.writeback > 0 && wait_any(flush)) {
    }
    call.now = flush.now;
    call.result.waited += flush.result.waited;
  }
  const Bytes bytes(run.pages * kPageBytes);
  submit_run(file, run, call.access.write ? StorageOp::write : StorageOp::read, call);
  while (direct_left_ > 0 && wait_any(call)) {
  }
  if (!call.access.write) {
    counters_.direct_read += bytes;
    call.result.read += bytes;
    return;
  }
  counters_.direct_written += bytes;
  for (std::int64_t i = run.first; i < run.first + run.pages; ++i) {
    drop_page(file.base + static_cast<PageId>(i));
  }
}

void PageCache::drop_page(PageId id) {
  const Page& page = pages_[id];
  constexpr int kBusy = page_flag::in_flight | page_flag::dirty | page_flag::writeback | page_flag::locked;
  if (page.resident() && !page.has(kBusy)) {
    evict(id);
    lru_.forget(id);
  }
}

}  // namespace kvsim::model
