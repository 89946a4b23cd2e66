// SPDX-License-Identifier: Apache-2.0
#include "models/page_cache/window.h"

#include <algorithm>
#include <bit>

#include "models/page_cache/page.h"

namespace kvsim::model {

namespace {

constexpr std::int64_t kLotsOfMisses = 100;  // MMAP_LOTSAMISS

// get_init_ra_size()
std::int64_t first_size(std::int64_t wanted, std::int64_t most) {
  const auto size = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(wanted)));
  if (size <= most / 32) {
    return 4 * size;
  }
  return size <= most / 4 ? 2 * size : most;
}

// get_next_ra_size()
std::int64_t next_size(std::int64_t size, std::int64_t most) {
  if (size < most / 16) {
    return 4 * size;
  }
  return size <= most / 2 ? 2 * size : most;
}

// count_history_pages(): pages in memory just before this one, counted up to `most`.
std::int64_t history(std::int64_t page, std::int64_t most, const PagePresence& presence) {
  std::int64_t count = 0;
  while (count < most && count < page && presence.present(page - 1 - count)) {
    ++count;
  }
  return count;
}

}  // namespace

std::optional<ReadPlan> ReadAheadWindow::around(std::int64_t page) {
  if (misses_ < kLotsOfMisses * 10) {
    ++misses_;
  }
  if (misses_ > kLotsOfMisses) {
    return std::nullopt;
  }
  start_ = std::max<std::int64_t>(0, page - limit_ / 2);
  size_ = limit_;
  async_ = limit_ / 4;
  return plan();
}

std::int64_t ReadAheadWindow::most(std::int64_t wanted) const {
  return wanted > limit_ && io_limit_ > limit_ ? std::min(wanted, io_limit_) : limit_;
}

bool ReadAheadWindow::expected(std::int64_t page) const {
  return page == start_ + size_ - async_ || page == start_ + size_;
}

bool ReadAheadWindow::goes_on(std::int64_t page) const {
  const std::int64_t end = read_end_ ? read_end_->count() / kPageBytes : -2;
  return page == end || page == end + 1;
}

void ReadAheadWindow::advance(std::int64_t most) {
  start_ += size_;
  size_ = next_size(size_, most);
  async_ = size_;
}

void ReadAheadWindow::begin(std::int64_t page, std::int64_t wanted, std::int64_t most) {
  start_ = page;
  size_ = first_size(wanted, most);
  async_ = size_ > wanted ? size_ - wanted : size_;
}

std::optional<std::int64_t> ReadAheadWindow::last_read() const {
  return read_end_ ? std::optional((read_end_->count() - 1) / kPageBytes) : std::nullopt;
}

// A window whose marker is the very page that is asked for would start the next one at once: take both
// together.
ReadPlan ReadAheadWindow::submit(std::int64_t page, std::int64_t most) {
  if (page == start_ && size_ == async_) {
    const std::int64_t more = next_size(size_, most);
    if (size_ + more <= most) {
      async_ = more;
      size_ += more;
    } else {
      size_ = most;
      async_ = most / 2;
    }
  }
  return plan();
}

// ondemand_readahead()
ReadPlan ReadAheadWindow::on_miss(std::int64_t page, std::int64_t wanted, const PagePresence& presence) {
  const std::int64_t most = this->most(wanted);
  if (page == 0) {
    begin(page, wanted, most);
  } else if (expected(page)) {
    advance(most);
  } else if (wanted > most || goes_on(page)) {
    begin(page, wanted, most);
  } else {
    // try_context_readahead(): the pages that a sequential reader would have left behind.
    std::int64_t size = history(page, most, presence);
    if (size <= wanted) {
      return {.first = page, .pages = wanted};  // a lone small read; the state stays
    }
    if (size >= page) {
      size *= 2;
    }
    start_ = page;
    size_ = std::min(size + wanted, most);
    async_ = 1;
  }
  return submit(page, most);
}

std::optional<ReadPlan> ReadAheadWindow::on_marker(std::int64_t page, std::int64_t wanted,
                                                   const PagePresence& presence) {
  const std::int64_t most = this->most(wanted);
  if (page == 0) {
    begin(page, wanted, most);
  } else if (expected(page)) {
    advance(most);
  } else {
    // Somebody else's window: go on from the first page that is missing.
    std::int64_t start = page + 1;
    while (start - page <= most && presence.present(start)) {
      ++start;
    }
    if (start - page > most) {
      return std::nullopt;
    }
    start_ = start;
    size_ = next_size(start - page + wanted, most);
    async_ = size_;
  }
  return submit(page, most);
}

}  // namespace kvsim::model
