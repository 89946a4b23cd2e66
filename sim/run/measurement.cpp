// SPDX-License-Identifier: Apache-2.0
#include "sim/run/measurement.h"

#include <algorithm>
#include <cmath>

namespace kvsim::sim {

Measurement::Measurement(const model::TimeAccount& path, const model::MemoryCounters& memory,
                         const model::DramActivity& activity) {
  values_[kTime] = path.total().as_double();
  for (std::size_t i = 0; i < model::kOwners; ++i) {
    values_[kParts + i] = path.part(static_cast<model::Owner>(i)).as_double();
  }
  values_[kMemory] = memory.read.as_double();
  values_[kMemory + 1] = memory.written.as_double();
  values_[kMemory + 2] = static_cast<double>(memory.row_hits);
  values_[kMemory + 3] = static_cast<double>(memory.row_misses);
  values_[kMemory + 4] = static_cast<double>(memory.row_conflicts);
  values_[kActivity] = static_cast<double>(activity.activates);
  values_[kActivity + 1] = static_cast<double>(activity.reads);
  values_[kActivity + 2] = static_cast<double>(activity.writes);
  values_[kActivity + 3] = static_cast<double>(activity.refreshes_all);
  values_[kActivity + 4] = static_cast<double>(activity.refreshes_bank);
  for (std::size_t i = 0; i < model::kBackgrounds; ++i) {
    values_[kBackground + i] = activity.background[i].as_double();
  }
}

model::DramActivity Measurement::activity() const {
  const auto whole = [this](std::size_t i) { return static_cast<std::int64_t>(std::llround(values_[i])); };
  model::DramActivity activity{.activates = whole(kActivity),
                               .reads = whole(kActivity + 1),
                               .writes = whole(kActivity + 2),
                               .refreshes_all = whole(kActivity + 3),
                               .refreshes_bank = whole(kActivity + 4)};
  for (std::size_t i = 0; i < model::kBackgrounds; ++i) {
    activity.background[i] = Picoseconds(whole(kBackground + i));
  }
  return activity;
}

double Measurement::largest_part() const {
  return *std::max_element(values_.begin() + kParts, values_.begin() + kMemory);
}

Measurement Measurement::times(const Measurement& other) const {
  Measurement product = *this;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    product.values_[i] *= other.values_[i];
  }
  return product;
}

Measurement& Measurement::operator+=(const Measurement& other) {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    values_[i] += other.values_[i];
  }
  return *this;
}

Measurement Measurement::on_line(const Measurement& a, const Measurement& b, double at) {
  Measurement result = a * (1 - at);
  return result += b * at;
}

}  // namespace kvsim::sim
