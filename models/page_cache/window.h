// SPDX-License-Identifier: Apache-2.0
// The read-ahead state of an open file and the rules that move it. Linux 6.1, mm/readahead.c, mm/filemap.c.
#pragma once

#include <cstdint>
#include <optional>

#include "configs/units/quantity.h"

namespace kvsim::model {

/// What to read: pages from `first`, the last `async` of them ahead of need. The first of those, if it is
/// read now, starts the next read-ahead when it is used.
struct ReadPlan {
  std::int64_t first = 0;
  std::int64_t pages = 0;
  std::int64_t async = 0;

  bool operator==(const ReadPlan&) const = default;
};

/// Tells which pages of the file are in memory or on their way.
class PagePresence {
 public:
  virtual ~PagePresence() = default;
  [[nodiscard]] virtual bool present(std::int64_t page) const = 0;
};

class ReadAheadWindow {
 public:
  /// `limit`: read_ahead_kb of the device. `io_limit`: pages of its longest request, up to which one large
  /// read may go beyond `limit`.
  ReadAheadWindow(std::int64_t limit, std::int64_t io_limit)
      : device_limit_(limit), limit_(limit), io_limit_(io_limit) {}

  /// POSIX_FADV_SEQUENTIAL doubles the window, NORMAL takes that back.
  void set_sequential(bool sequential) { limit_ = sequential ? 2 * device_limit_ : device_limit_; }
  [[nodiscard]] std::int64_t limit() const { return limit_; }
  [[nodiscard]] std::int64_t forced_limit() const { return limit_ > io_limit_ ? limit_ : io_limit_; }

  /// A mapped page is not there: read around it. None: the file is missed so often that reading around has
  /// been given up.
  [[nodiscard]] std::optional<ReadPlan> around(std::int64_t page);
  /// A mapped page was found: it had been read before. Takes back one miss.
  void mapped_hit() { misses_ -= misses_ > 0 ? 1 : 0; }

  /// `wanted` pages from `page` on are asked for and `page` is not there.
  [[nodiscard]] ReadPlan on_miss(std::int64_t page, std::int64_t wanted, const PagePresence& presence);
  /// The same, and `page` is there and bears the marker.
  [[nodiscard]] std::optional<ReadPlan> on_marker(std::int64_t page, std::int64_t wanted,
                                                  const PagePresence& presence);
  /// Where a read() ended; the next one may go on from there.
  void note_read(Bytes end) { read_end_ = end; }
  /// Page of the last byte that a read() took.
  [[nodiscard]] std::optional<std::int64_t> last_read() const;

 private:
  [[nodiscard]] std::int64_t most(std::int64_t wanted) const;
  [[nodiscard]] bool expected(std::int64_t page) const;
  [[nodiscard]] bool goes_on(std::int64_t page) const;
  void advance(std::int64_t most);
  void begin(std::int64_t page, std::int64_t wanted, std::int64_t most);
  [[nodiscard]] ReadPlan submit(std::int64_t page, std::int64_t most);
  [[nodiscard]] ReadPlan plan() const { return {.first = start_, .pages = size_, .async = async_}; }

  std::int64_t device_limit_;
  std::int64_t limit_;
  std::int64_t io_limit_;
  std::int64_t start_ = 0;  ///< file_ra_state: the last window,
  std::int64_t size_ = 0;
  std::int64_t async_ = 0;   ///< and how much of its end was read ahead of need
  std::int64_t misses_ = 0;  ///< mmap_miss
  std::optional<Bytes> read_end_;
};

}  // namespace kvsim::model
