// SPDX-License-Identifier: Apache-2.0
#include "models/storage/map_cache.h"

#include <algorithm>
#include <utility>

namespace kvsim::model {

MapCache::MapCache(std::uint32_t pages, std::uint32_t capacity, std::int64_t journal)
    : slot_of_(pages, kNone),
      capacity_(std::max<std::uint32_t>(std::min(capacity, pages), 1)),
      journal_(journal),
      is_changed_(pages) {
  slots_.reserve(capacity_);
}

bool MapCache::use(std::uint32_t page) {
  std::uint32_t slot = slot_of_[page];
  const bool held = slot != kNone;
  if (held) {
    if (slot == first_) {
      return true;
    }
    unlink(slot);
  } else if (slots_.size() < capacity_) {
    slot = static_cast<std::uint32_t>(slots_.size());
    slots_.push_back({});
  } else {
    slot = last_;
    unlink(slot);
    slot_of_[slots_[slot].page] = kNone;
  }
  slots_[slot].page = page;
  slot_of_[page] = slot;
  push_front(slot);
  return held;
}

void MapCache::unlink(std::uint32_t slot) {
  const Slot& s = slots_[slot];
  (s.before == kNone ? first_ : slots_[s.before].after) = s.after;
  (s.after == kNone ? last_ : slots_[s.after].before) = s.before;
}

void MapCache::push_front(std::uint32_t slot) {
  slots_[slot].before = kNone;
  slots_[slot].after = first_;
  (first_ == kNone ? last_ : slots_[first_].before) = slot;
  first_ = slot;
}

void MapCache::note_change(std::uint32_t page) {
  ++changes_;
  if (!is_changed_[page]) {
    is_changed_[page] = true;
    changed_.push_back(page);
  }
}

std::vector<std::uint32_t> MapCache::take_changed() {
  changes_ = 0;
  for (const std::uint32_t page : changed_) {
    is_changed_[page] = false;
  }
  return std::exchange(changed_, {});
}

}  // namespace kvsim::model
