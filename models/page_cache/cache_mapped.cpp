// SPDX-License-Identifier: Apache-2.0
// Loads and stores through a mapping: faults. Linux 6.1, mm/filemap.c, mm/memory.c.
#include <algorithm>

#include "models/page_cache/page_cache.h"
#include "models/page_cache/presence.h"

namespace kvsim::model {

namespace {

constexpr std::int64_t kFaultAround = 16;  // fault_around_bytes, 64 KiB

}  // namespace

MapAdvice PageCache::advice_at(const File& file, std::int64_t index) {
  return std::upper_bound(file.advice.begin(), file.advice.end(), index,
                          [](std::int64_t page, const AdviceRange& range) { return page < range.end; })
      ->advice;
}

std::int64_t PageCache::touch_mapped(Call& call, const PageRun& run) {
  const bool streamed = advice_at(call.file, run.first) == MapAdvice::sequential;
  // References through a mapping that is read once do not keep a page (folio_referenced_one()).
  const int seen = streamed ? page_flag::used : page_flag::used | page_flag::young;
  for (std::int64_t i = 0; i < run.pages; ++i) {
    const PageId id = call.file.base + static_cast<PageId>(run.first + i);
    if (!pages_[id].has(page_flag::mapped) && !fault(call, run.first + i)) {
      return i;
    }
    Page& page = pages_[id];
    page.set(seen);
    if (call.access.write && !page.has(page_flag::dirty)) {
      // Clean pages are write-protected, so that the first store is noticed.
      ++call.result.minor_faults;
      call.now += setup_.minor_fault;
      make_dirty(call, run.first + i);
    }
    if (call.mark_accessed) {
      lru_.mark_accessed(id);
    }
    call.now += call.access.each_page;
  }
  return run.pages;
}

bool PageCache::fault(Call& call, std::int64_t index) {
  collect(call.now);
  call.demand = {.first = index, .pages = 1};
  const MapAdvice advice = advice_at(call.file, index);
  const PageId id = call.file.base + static_cast<PageId>(index);
  const Page& page = pages_[id];
  if (page.uptodate() && (!page.has(page_flag::marker) || advice == MapAdvice::random)) {
    ++call.result.minor_faults;
    call.now += setup_.minor_fault;
  } else {
    // Waiting for a page, or starting a read-ahead, gives up mmap_lock; the fault is tried again, and counts
    // for the process as a major one (mm_account_fault()).
    ++call.result.major_faults;
    call.now += setup_.major_fault;
    if (page.resident()) {
      fault_present(call, index);
    } else if (!fault_absent(call, index, advice)) {
      return false;
    }
    wait_for(call, id);
  }
  map_around(call, index);
  return true;
}

// do_async_mmap_readahead()
void PageCache::fault_present(Call& call, std::int64_t index) {
  File& file = call.file;
  Page& page = pages_[file.base + static_cast<PageId>(index)];
  if (advice_at(file, index) == MapAdvice::random) {
    return;
  }
  file.window.mapped_hit();
  if (page.has(page_flag::marker) && !page.has(page_flag::writeback)) {
    page.clear(page_flag::marker);
    const Presence presence(pages_, file);
    if (const auto plan = file.window.on_marker(index, file.window.limit(), presence)) {
      page.set(page_flag::pinned);
      read_pages(call, *plan);
      page.clear(page_flag::pinned);
    }
  }
}

// do_sync_mmap_readahead()
bool PageCache::fault_absent(Call& call, std::int64_t index, MapAdvice advice) {
  File& file = call.file;
  if (advice == MapAdvice::sequential && file.window.limit() > 0) {
    const Presence presence(pages_, file);
    read_pages(call, file.window.on_miss(index, file.window.limit(), presence));
  } else if (advice == MapAdvice::normal && file.window.limit() > 0) {
    if (const auto plan = file.window.around(index)) {
      read_pages(call, *plan);
    }
  }
  return pages_[file.base + static_cast<PageId>(index)].resident() || read_one(call, index);
}

// zap_pte_range()
void PageCache::unmap(FileId id, Bytes first, Bytes bytes) {
  File& file = file_of(id);
  const PageRun run = range(file, first, bytes);
  for (std::int64_t i = run.first; i < run.first + run.pages; ++i) {
    const PageId page = file.base + static_cast<PageId>(i);
    if (pages_[page].has(page_flag::mapped)) {
      if (pages_[page].has(page_flag::young)) {
        lru_.mark_accessed(page);
      }
      pages_[page].clear(page_flag::mapped | page_flag::young | page_flag::code);
    }
  }
}

// filemap_map_pages(): maps what is there in the aligned 64 KiB, except markers.
void PageCache::map_around(Call& call, std::int64_t index) {
  File& file = call.file;
  const std::int64_t first = index - index % kFaultAround;
  const std::int64_t end = std::min(first + kFaultAround, file.pages);
  const int kind = file.code ? page_flag::mapped | page_flag::code : page_flag::mapped;
  const int flags = setup_.prefault_old ? kind : kind | page_flag::young;
  for (std::int64_t i = first; i < end; ++i) {
    Page& page = pages_[file.base + static_cast<PageId>(i)];
    if (!page.uptodate() || page.has(page_flag::marker)) {
      continue;
    }
    file.window.mapped_hit();
    if (!page.has(page_flag::mapped)) {
      page.set(flags);
    }
  }
  pages_[file.base + static_cast<PageId>(index)].set(kind);
}

}  // namespace kvsim::model
