// SPDX-License-Identifier: Apache-2.0
// Who owns the time on a critical path.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "configs/units/quantity.h"
#include "traces/record/record.h"

namespace kvsim::model {

/// What a picosecond of a critical path was spent on.
enum class Owner : std::uint8_t {
  weights,     ///< data beats of weights,
  kv_read,     ///< of cached keys and values read,
  kv_write,    ///< of keys and values written,
  other_data,  ///< of everything else
  row,         ///< precharge, activate and activate windows: row misses and conflicts
  refresh,     ///< a bank or rank refreshing, and opening its rows again
  turnaround,  ///< the data bus changing direction or rank
  queue,       ///< any other wait in a queue: command bus, interconnect, cache
  latency,     ///< a request or its data on the way, with nothing before it
  compute,     ///< arithmetic not hidden behind memory
  barrier,     ///< threads meeting between operators
};
inline constexpr int kOwners = static_cast<int>(Owner::barrier) + 1;

[[nodiscard]] std::string_view to_string(Owner owner);

[[nodiscard]] constexpr Owner data_owner(trace::Kind kind, trace::Access access) {
  switch (kind) {
    case trace::Kind::weights:
      return Owner::weights;
    case trace::Kind::kv:
      return access == trace::Access::read ? Owner::kv_read : Owner::kv_write;
    default:
      return Owner::other_data;
  }
}

/// A critical path up to some event, cut into the time each owner has of it. Events merge by max-plus: the event
/// takes over the path of whichever predecessor it had to wait for, and adds its own delay. So the parts always add
/// up to the event's time since the path began.
class Ownership {
 public:
  void add(Owner owner, Picoseconds time) { parts_[static_cast<std::size_t>(owner)] += time.count(); }
  [[nodiscard]] Picoseconds part(Owner owner) const {
    return Picoseconds(parts_[static_cast<std::size_t>(owner)]);
  }
  [[nodiscard]] Picoseconds total() const;
  Ownership& operator+=(const Ownership& other);
  friend Ownership operator-(const Ownership& a, const Ownership& b);
  bool operator==(const Ownership&) const = default;

 private:
  std::array<std::int64_t, kOwners> parts_{};
};

}  // namespace kvsim::model
