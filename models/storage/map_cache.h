// SPDX-License-Identifier: Apache-2.0
// Which pages of the mapping table the controller holds, least recently used out first, and which have
// changed since they were last written to flash.
#pragma once

#include <cstdint>
#include <vector>

#include "models/storage/map_table.h"

namespace kvsim::model {

class MapCache {
 public:
  /// Of a table of `pages`, it holds `capacity`; after `journal` changes the changed ones must be written.
  MapCache(std::uint32_t pages, std::uint32_t capacity, std::int64_t journal);

  /// Uses a page, which is held from now on. False if it was not.
  bool use(std::uint32_t page);
  [[nodiscard]] bool holds(std::uint32_t page) const { return slot_of_[page] != kNone; }

  /// A stretch of units within one page has moved.
  void note_change(std::uint32_t page);
  [[nodiscard]] bool is_journal_full() const { return changes_ >= journal_; }
  /// The pages that have changed; the journal is empty after it.
  [[nodiscard]] std::vector<std::uint32_t> take_changed();

 private:
  static constexpr std::uint32_t kNone = 0xffff'ffff;
  struct Slot {
    std::uint32_t page = kNone;
    std::uint32_t before = kNone;
    std::uint32_t after = kNone;
  };
  void unlink(std::uint32_t slot);
  void push_front(std::uint32_t slot);

  std::vector<std::uint32_t> slot_of_;
  std::vector<Slot> slots_;
  std::uint32_t capacity_;
  std::uint32_t first_ = kNone, last_ = kNone;
  std::int64_t journal_;
  std::int64_t changes_ = 0;
  std::vector<std::uint32_t> changed_;
  std::vector<bool> is_changed_;
};

}  // namespace kvsim::model
