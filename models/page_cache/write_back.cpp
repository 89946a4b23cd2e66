// SPDX-License-Identifier: Apache-2.0
// Dirty pages and their way to the device. Linux 6.1, mm/page-writeback.c, fs/fs-writeback.c.
#include <algorithm>

#include "models/page_cache/page_cache.h"

namespace kvsim::model {

namespace {

constexpr std::int64_t kBatch = 1024;  // MIN_WRITEBACK_PAGES, 4 MiB

}  // namespace

void PageCache::make_dirty(Call& call, std::int64_t index) {
  File& file = call.file;
  Page& page = pages_[file.base + static_cast<PageId>(index)];
  if (page.has(page_flag::dirty)) {
    return;
  }
  if (file.dirty.empty()) {
    file.dirtied = call.now;
  }
  page.set(page_flag::dirty);
  file.dirty.add(index);
  ++dirty_;
}

void PageCache::write_back(File& file, std::int64_t most, const Call& call) {
  Call flusher{.file = file, .access = {}, .now = call.now, .demand = {}};
  while (most > 0 && !file.dirty.empty()) {
    const PageRun run = file.dirty.take(std::min(most, kBatch));
    for (std::int64_t i = run.first; i < run.first + run.pages; ++i) {
      Page& page = pages_[file.base + static_cast<PageId>(i)];
      page.clear(page_flag::dirty);
      page.set(page_flag::writeback);
    }
    dirty_ -= run.pages;
    writeback_ += run.pages;
    file.writeback += run.pages;
    most -= run.pages;
    counters_.written_back += Bytes(run.pages * kPageBytes);
    submit_run(file, run, StorageOp::write, flusher);
  }
}

// balance_dirty_pages(): above the background limit the flusher writes; above the middle of both limits the
// writer waits for it.
void PageCache::balance_dirty(Call& call) {
  const double usable =
      static_cast<double>(lru_.free() - lru_.marks().high + lru_.active() + lru_.inactive());
  const auto background = static_cast<std::int64_t>(setup_.dirty_background * usable);
  const auto limit = static_cast<std::int64_t>(setup_.dirty_limit * usable);
  // wb_writeback(): in chunks, file after file, until below.
  for (std::size_t file = 0; file < files_.size() && dirty_ > background;) {
    write_back(files_[file], kBatch, call);
    file += files_[file].dirty.empty() ? 1 : 0;
  }
  while (dirty_ + writeback_ > (background + limit) / 2 && writeback_ > 0 && wait_any(call)) {
  }
}

void PageCache::write_expired(Picoseconds now) {
  if (dirty_ == 0) {
    return;
  }
  for (File& file : files_) {
    if (!file.dirty.empty() && now - file.dirtied >= setup_.dirty_expire) {
      write_back(file, file.pages, {.file = file, .access = {}, .now = now, .demand = {}});
    }
  }
}

Touched PageCache::sync(FileId id, Picoseconds now) {
  File& file = file_of(id);
  Call call{.file = file, .access = {}, .now = now, .demand = {}};
  collect(now);
  write_back(file, file.pages, call);
  while (file.writeback > 0 && wait_any(call)) {
  }
  return finish_call(call, 0);
}

void PageCache::met_dirty(PageId /*page*/) {
  reclaim_met_dirty_ = true;
}

}  // namespace kvsim::model
