// SPDX-License-Identifier: Apache-2.0
// The events to come of one device, in order of time; of two at one time, the older one first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "configs/units/quantity.h"

namespace kvsim::model {

template <class Kind>
class Calendar {
 public:
  struct Event {
    Picoseconds time = {};
    std::uint64_t order = 0;
    Kind kind{};
    std::uint32_t index = 0;  ///< of what it is about
    std::uint32_t stamp = 0;  ///< tells one that was called off
  };

  [[nodiscard]] bool empty() const { return events_.empty(); }
  [[nodiscard]] Picoseconds next_time() const { return events_.front().time; }

  void add(Picoseconds time, Kind kind, std::uint32_t index, std::uint32_t stamp = 0) {
    events_.push_back({time, order_++, kind, index, stamp});
    std::push_heap(events_.begin(), events_.end(), later);
  }

  Event take() {
    std::pop_heap(events_.begin(), events_.end(), later);
    const Event first = events_.back();
    events_.pop_back();
    return first;
  }

 private:
  static bool later(const Event& a, const Event& b) {
    return a.time != b.time ? a.time > b.time : a.order > b.order;
  }

  std::vector<Event> events_;
  std::uint64_t order_ = 0;
};

}  // namespace kvsim::model
