// SPDX-License-Identifier: Apache-2.0
// Anonymous memory that does not fit, and where it goes: a swap area on a device, or zram. Linux 6.1,
// mm/swap_state.c, mm/vmscan.c.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/page_cache/block_queue.h"
#include "models/page_cache/page_lru.h"

namespace kvsim::model {

/// Compressed memory in place of a device. Its pages take room from those that it serves.
struct ZramSetup {
  double ratio = 3;      ///< a page is stored in 1 / ratio of its size
  Picoseconds compress;  ///< of the processor, for each page
  Picoseconds decompress;
};

struct SwapSetup {
  Bytes memory;          ///< for anonymous pages, what is kept free, and zram's store
  Bytes min_free;        ///< as of the page cache
  Bytes area;            ///< that can be swapped out: on the device, or before compression
  Bytes offset;          ///< of the area on the device
  int page_cluster = 3;  ///< read-ahead of up to 2^page_cluster pages
  std::optional<ZramSetup> zram;
  BlockLimits block;
  Picoseconds minor_fault;
  Picoseconds major_fault;
};

struct SwapTouched {
  Picoseconds done = {};
  std::int64_t minor_faults = 0;  ///< first use, or read ahead before
  std::int64_t major_faults = 0;
  Picoseconds waited = {};
  bool out_of_memory = false;  ///< memory and area are full: the killer's turn
};

struct SwapCounters {
  std::int64_t swapped_out = 0, swapped_in = 0;  ///< pages
  std::int64_t read_ahead = 0;                   ///< of those swapped in,
  std::int64_t wasted = 0;                       ///< and not used before they went again
  Picoseconds processor;                         ///< compressing; decompressing is waited for in the fault
  LruCounters lru;
};

class AnonymousMemory final : private ReclaimOwner {
 public:
  /// `device` is not used by zram.
  AnonymousMemory(BlockDevice& device, const SwapSetup& setup, std::int64_t pages);
  AnonymousMemory(const AnonymousMemory&) = delete;
  AnonymousMemory& operator=(const AnonymousMemory&) = delete;

  SwapTouched touch(std::int64_t first, std::int64_t pages, bool write, Picoseconds now);
  [[nodiscard]] SwapCounters counters() const;
  [[nodiscard]] std::int64_t resident() const { return lru_.resident(); }
  [[nodiscard]] std::int64_t swapped() const { return in_use_ - lru_.resident(); }
  /// Frames that zram's store holds.
  [[nodiscard]] std::int64_t store() const;

 private:
  static constexpr std::uint32_t kNoSlot = 0xffff'ffff;
  struct Call {
    Picoseconds now;
    SwapTouched result;
  };

  bool fault(Call& call, PageId page);
  bool swap_in(Call& call, PageId page);
  [[nodiscard]] std::int64_t window(std::uint32_t slot);
  void read_around(Call& call, PageId page);
  void read_run(std::uint32_t slot, std::int64_t pages, Picoseconds now);
  void collect(Picoseconds now);
  void finish(const BlockDone& done);
  void wait_for(Call& call, PageId page);
  void evict(PageId page) override;
  [[nodiscard]] bool may_evict(PageId page) const override;
  void met_dirty(PageId /*page*/) override {}
  std::uint32_t take_slot(PageId page);
  void free_slot(PageId page);
  void flush_writes();
  void resize();

  SwapSetup setup_;
  PageTable pages_;
  PageLru lru_;
  BlockQueue queue_;
  std::vector<std::uint32_t> slot_of_;
  std::vector<PageId> page_in_;  ///< by slot
  std::vector<bool> touched_;    ///< has contents
  std::int64_t in_use_ = 0;      ///< pages with contents
  std::int64_t slots_used_ = 0;
  std::uint32_t next_slot_ = 0;
  std::uint32_t last_slot_ = 0;  ///< that was read for a fault,
  std::int64_t last_window_ = 0;
  std::int64_t hits_ = 4;  ///< swapin_readahead_hits
  std::uint32_t write_first_ = 0;
  std::int64_t write_pages_ = 0;
  Picoseconds now_;
  SwapCounters counters_;
};

}  // namespace kvsim::model
