// SPDX-License-Identifier: Apache-2.0
// For tests: a memory that knows nothing but the records it is given.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "traces/record/record.h"

namespace kvsim::trace {

/// The memory as the records make it: bytes that were allocated, and what was last written there.
class ShadowMemory {
 public:
  ShadowMemory(Address base, std::size_t bytes) : base_(base), bytes_(bytes) {}

  void put(const Record& record) {
    if (const auto* alloc = std::get_if<Alloc>(&record)) {
      take(*alloc);
    } else if (const auto* free = std::get_if<Free>(&record)) {
      ASSERT_TRUE(live_.contains(free->address));
      ASSERT_EQ(live_[free->address], free->bytes);
      live_.erase(free->address);
    } else {
      copy(std::get<Extent>(record));
    }
  }

  template <class Visit>  // of each byte, in order
  void for_each_byte(const Extent& e, Visit visit) {
    for (std::uint32_t row = 0; row < e.rows; ++row) {
      const Address begin = e.address + row * static_cast<Address>(e.stride.count());
      ASSERT_TRUE(is_live(begin, e.row_bytes));
      for (std::int64_t i = 0; i < e.row_bytes.count(); ++i) {
        visit(bytes_[begin - base_ + static_cast<std::size_t>(i)]);
      }
    }
  }

  [[nodiscard]] Bytes live_bytes() const {
    Bytes sum{};
    for (const auto& [address, bytes] : live_) {
      sum += bytes;
    }
    return sum;
  }
  [[nodiscard]] Bytes largest_hole() const {
    Bytes largest{};
    Address end = base_;
    for (const auto& [address, bytes] : live_) {
      largest = std::max(largest, Bytes(static_cast<std::int64_t>(address - end)));
      end = address + static_cast<Address>(bytes.count());
    }
    return std::max(largest, Bytes(static_cast<std::int64_t>(base_ + bytes_.size() - end)));
  }
  /// All that was read has been written elsewhere.
  [[nodiscard]] bool settled() const { return carried_.empty(); }

 private:
  void take(const Alloc& alloc) {
    const auto next = live_.lower_bound(alloc.address);
    const Address end = alloc.address + static_cast<Address>(alloc.bytes.count());
    ASSERT_TRUE(alloc.address >= base_ && end <= base_ + bytes_.size() && alloc.address % 64 == 0);
    ASSERT_TRUE(next == live_.end() || end <= next->first);
    ASSERT_TRUE(next == live_.begin() ||
                std::prev(next)->first + static_cast<Address>(std::prev(next)->second.count()) <=
                    alloc.address);
    live_.emplace(alloc.address, alloc.bytes);
  }
  void copy(const Extent& e) {
    if (e.access == Access::read) {
      for_each_byte(e, [&](std::uint8_t byte) { carried_.push_back(byte); });
      return;
    }
    ASSERT_EQ(static_cast<std::int64_t>(carried_.size()), total_bytes(e).count());
    for_each_byte(e, [&](std::uint8_t& byte) {
      byte = carried_.front();
      carried_.pop_front();
    });
  }
  [[nodiscard]] bool is_live(Address address, Bytes bytes) const {
    const auto next = live_.upper_bound(address);
    return next != live_.begin() &&
           address + static_cast<Address>(bytes.count()) <=
               std::prev(next)->first + static_cast<Address>(std::prev(next)->second.count());
  }

  Address base_;
  std::vector<std::uint8_t> bytes_;
  std::map<Address, Bytes> live_;
  std::deque<std::uint8_t> carried_;  // by a copy, from its read to its write
};

}  // namespace kvsim::trace
