// SPDX-License-Identifier: Apache-2.0
#include "models/page_cache/page_cache.h"

#include <algorithm>

#include "configs/error/error.h"

namespace kvsim::model {

PageCache::PageCache(BlockDevice& device, const CacheSetup& setup)
    : setup_(setup), lru_(pages_, *this), queue_(device, setup.block) {
  check(setup.memory >= Bytes(0) && setup.min_free >= Bytes(0), "memory is not negative");
  check(setup.read_ahead.count() % kPageBytes == 0, "read-ahead is whole pages");
  check(setup.block.max_request.count() >= kPageBytes && setup.block.max_request.count() % kPageBytes == 0 &&
            setup.block.max_segments >= 1,
        "the longest request is whole pages");
  check(0 < setup.dirty_background && setup.dirty_background <= setup.dirty_limit && setup.dirty_limit <= 1,
        "dirty limits are shares, the background one less");
  lru_.set_marks(marks(setup.memory));
}

// __setup_per_zone_wmarks(): a quarter and a half above the minimum.
FrameMarks PageCache::marks(Bytes memory) const {
  const std::int64_t min = setup_.min_free.count() / kPageBytes;
  return {.frames = memory.count() / kPageBytes, .min = min, .low = min + min / 4, .high = min + min / 2};
}

FileId PageCache::add_file(Bytes size, const std::vector<FileExtent>& extents) {
  check(size > Bytes(0), "a file has bytes");
  const std::int64_t pages = (size.count() + kPageBytes - 1) / kPageBytes;
  check(pages < static_cast<std::int64_t>(kNoPage - pages_.size()), "pages of all files have numbers");
  const std::int64_t io_pages = queue_.limits().max_request.count() / kPageBytes;
  File file{.base = static_cast<PageId>(pages_.size()),
            .pages = pages,
            .extents = {},
            .advice = {{.end = pages}},
            .window = {setup_.read_ahead.count() / kPageBytes, io_pages},
            .dirty = {},
            .dirtied = {}};
  std::int64_t placed = 0;
  for (const FileExtent& extent : extents) {
    check(extent.bytes > Bytes(0) && extent.bytes.count() % kPageBytes == 0, "extents are whole pages");
    const std::int64_t count = extent.bytes.count() / kPageBytes;
    file.extents.push_back({.first = placed, .pages = count, .offset = extent.offset});
    placed += count;
  }
  check(placed >= pages, "the extents hold the file");
  pages_.resize(pages_.size() + static_cast<std::size_t>(pages));
  files_.push_back(std::move(file));
  return FileId(files_.size() - 1);
}

PageCache::File& PageCache::file_of(PageId page) {
  return *std::prev(std::upper_bound(files_.begin(), files_.end(), page,
                                     [](PageId id, const File& file) { return id < file.base; }));
}

PageRun PageCache::range(const File& file, Bytes first, Bytes bytes) const {
  check(first >= Bytes(0) && bytes > Bytes(0) && bytes <= Bytes(file.pages * kPageBytes) &&
            first <= Bytes(file.pages * kPageBytes) - bytes,
        "an access stays within its file");
  const std::int64_t page = first.count() / kPageBytes;
  return {.first = page, .pages = (first + bytes - Bytes(1)).count() / kPageBytes + 1 - page};
}

Touched PageCache::touch(FileId id, Bytes first, Bytes bytes, const Access& access, Picoseconds now) {
  File& file = file_of(id);
  const PageRun run = range(file, first, bytes);
  Call call{.file = file, .access = access, .now = now, .demand = run};
  write_expired(now);
  std::int64_t visited = 0;
  switch (access.path) {
    case AccessPath::mapped:
      visited = touch_mapped(call, run);
      break;
    case AccessPath::read:
      visited = access.write ? write_call(call, run, first, bytes) : read_call(call, run);
      if (!access.write) {
        file.window.note_read(first + bytes);
      }
      break;
    case AccessPath::direct:
      direct_call(call, run);
      break;
  }
  return finish_call(call, visited);
}

Touched PageCache::populate(FileId id, Bytes first, Bytes bytes, Picoseconds now) {
  File& file = file_of(id);
  const PageRun run = range(file, first, bytes);
  // FOLL_TOUCH: each page is marked accessed, besides the accessed bit of its entry.
  Call call{.file = file, .access = {}, .now = now, .demand = run, .mark_accessed = true};
  const std::int64_t visited = touch_mapped(call, run);
  return finish_call(call, visited);
}

Touched PageCache::finish_call(Call& call, std::int64_t visited) {
  counters_.asked += Bytes(visited * kPageBytes);
  counters_.from_device += Bytes(call.demanded * kPageBytes);
  counters_.from_cache += Bytes((visited - call.demanded) * kPageBytes);
  counters_.minor_faults += call.result.minor_faults;
  counters_.major_faults += call.result.major_faults;
  call.result.done = call.now;
  call.result.failed = failed_;
  failed_.reset();
  return call.result;
}

Touched PageCache::lock(FileId id, Bytes first, Bytes bytes, Picoseconds now) {
  File& file = file_of(id);
  const PageRun run = range(file, first, bytes);
  Call call{.file = file, .access = {}, .now = now, .demand = run, .mark_accessed = true};
  std::int64_t visited = 0;
  // Page by page: a page that is locked is not reclaimed while the next ones come.
  for (; visited < run.pages; ++visited) {
    if (touch_mapped(call, {.first = run.first + visited, .pages = 1}) == 0) {
      break;
    }
    lru_.lock(file.base + static_cast<PageId>(run.first + visited));
  }
  return finish_call(call, visited);
}

void PageCache::unlock(FileId id, Bytes first, Bytes bytes) {
  const File& file = file_of(id);
  const PageRun run = range(file, first, bytes);
  for (std::int64_t i = run.first; i < run.first + run.pages; ++i) {
    lru_.unlock(file.base + static_cast<PageId>(i));
  }
}

void PageCache::advise(FileId id, Bytes first, Bytes bytes, MapAdvice advice) {
  File& file = file_of(id);
  const PageRun run = range(file, first, bytes);
  const std::int64_t end = run.first + run.pages;
  std::vector<AdviceRange> ranges;
  std::int64_t from = 0;
  for (const AdviceRange& old : file.advice) {
    if (from < run.first) {
      ranges.push_back({.end = std::min(old.end, run.first), .advice = old.advice});
    }
    if (from < end && old.end >= end) {
      ranges.push_back({.end = end, .advice = advice});
    }
    if (old.end > end) {
      ranges.push_back(old);
    }
    from = old.end;
  }
  file.advice = std::move(ranges);
}

void PageCache::advise(FileId id, FileAdvice advice) {
  File& file = file_of(id);
  file.random = advice == FileAdvice::random;
  if (advice != FileAdvice::random) {
    file.window.set_sequential(advice == FileAdvice::sequential);
  }
}

void PageCache::will_need(FileId id, Bytes first, Bytes bytes, Picoseconds now) {
  File& file = file_of(id);
  const PageRun run = range(file, first, bytes);
  Call call{.file = file, .access = {}, .now = now, .demand = {}};
  collect(now);
  force_read(call, run.first, run.pages);
}

void PageCache::drop(FileId id, Bytes first, Bytes bytes) {
  const File& file = file_of(id);
  const PageRun run = range(file, first, bytes);
  for (std::int64_t i = run.first; i < run.first + run.pages; ++i) {
    const PageId page = file.base + static_cast<PageId>(i);
    if (!pages_[page].has(page_flag::mapped)) {
      drop_page(page);
    }
  }
}

void PageCache::set_memory(Bytes memory, Picoseconds now) {
  check(memory >= Bytes(0), "memory is not negative");
  collect(now);
  lru_.set_marks(marks(memory));
}

CacheCounters PageCache::counters() const {
  CacheCounters counters = counters_;
  counters.requests = queue_.requests();
  counters.lru = lru_.counters();
  return counters;
}

Bytes PageCache::resident(FileId id) const {
  const File& file = files_[static_cast<std::size_t>(id)];
  const auto first = pages_.begin() + file.base;
  return Bytes(kPageBytes *
               std::count_if(first, first + file.pages, [](const Page& page) { return page.resident(); }));
}

Bytes PageCache::mapped(FileId id) const {
  const File& file = files_[static_cast<std::size_t>(id)];
  const auto first = pages_.begin() + file.base;
  return Bytes(kPageBytes * std::count_if(first, first + file.pages,
                                          [](const Page& page) { return page.has(page_flag::mapped); }));
}

}  // namespace kvsim::model
