// SPDX-License-Identifier: Apache-2.0
#include "models/critical_path/ownership.h"

#include <numeric>

namespace kvsim::model {

std::string_view to_string(Owner owner) {
  static constexpr std::array<std::string_view, kOwners> kNames = {
      "weights", "kv_read",    "kv_write", "other_data", "row",    "refresh",
      "turnaround", "queue", "latency",  "compute",    "barrier"};
  return kNames.at(static_cast<std::size_t>(owner));
}

Picoseconds Ownership::total() const {
  return Picoseconds(std::accumulate(parts_.begin(), parts_.end(), std::int64_t{0}));
}

Ownership& Ownership::operator+=(const Ownership& other) {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    parts_[i] += other.parts_[i];
  }
  return *this;
}

Ownership operator-(const Ownership& a, const Ownership& b) {
  Ownership difference;
  for (std::size_t i = 0; i < a.parts_.size(); ++i) {
    difference.parts_[i] = a.parts_[i] - b.parts_[i];
  }
  return difference;
}

}  // namespace kvsim::model
