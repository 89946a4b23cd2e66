// SPDX-License-Identifier: Apache-2.0
// One page of a file, resident or not: 16 bytes, so that 20 GB of weights take 80 MB of the simulator.
#pragma once

#include <cstdint>
#include <vector>

#include "configs/units/quantity.h"

namespace kvsim::model {

inline constexpr std::int64_t kPageBytes = 4096;

/// Place in the array of all pages of all files; the pages of a file follow each other.
using PageId = std::uint32_t;
inline constexpr PageId kNoPage = 0xffff'ffff;

namespace page_flag {
enum : std::uint16_t {
  resident = 1 << 0,
  in_flight = 1 << 1,    ///< being read: locked, not up to date
  active = 1 << 2,       ///< on the active list
  referenced = 1 << 3,   ///< PG_referenced
  mapped = 1 << 4,       ///< has a page table entry
  young = 1 << 5,        ///< whose accessed bit is set
  marker = 1 << 6,       ///< PG_readahead: using it starts the next read-ahead
  dirty = 1 << 7,        ///< PG_dirty
  writeback = 1 << 8,    ///< being written
  locked = 1 << 9,       ///< mlock: on no list
  workingset = 1 << 10,  ///< was active before; outlives eviction
  shadow = 1 << 11,      ///< not resident: `aux` is the age at its eviction
  pinned = 1 << 13,      ///< somebody works with it: not to be taken away
  code = 1 << 14,        ///< of a program that runs: mapped executable
  used = 1 << 12,        ///< asked for since it was read
};
}  // namespace page_flag

struct Page {
  PageId next = kNoPage;  ///< towards the tail of its list
  PageId prev = kNoPage;
  std::uint32_t aux = 0;  ///< evicted: age of the lists at that time
  std::uint16_t flags = 0;

  [[nodiscard]] bool has(int flag) const { return (flags & flag) != 0; }
  [[nodiscard]] bool resident() const { return has(page_flag::resident); }
  /// Can be used without waiting.
  [[nodiscard]] bool uptodate() const {
    return (flags & (page_flag::resident | page_flag::in_flight)) == page_flag::resident;
  }
  void set(int flag) { flags = static_cast<std::uint16_t>(flags | flag); }
  void clear(int flag) { flags = static_cast<std::uint16_t>(flags & ~flag); }
};
static_assert(sizeof(Page) == 16);

using PageTable = std::vector<Page>;

}  // namespace kvsim::model
