// SPDX-License-Identifier: Apache-2.0
#include "models/accounting/time_account.h"

#include <algorithm>
#include <numeric>

namespace kvsim::model {

namespace {

Picoseconds rounded(double picoseconds) {
  return Picoseconds(static_cast<std::int64_t>(picoseconds));
}

/// Factor that brings `sum` down to `room` if it is more.
double fitted(double sum, double room) {
  return sum > room ? room / sum : 1;
}

/// Buses that move data or keep requests waiting for more than this share of the time begin to be the bound
/// whatever the engine says.
constexpr double kRestless = 0.85;

}  // namespace

std::string_view to_string(Owner owner) {
  static constexpr std::array<std::string_view, kOwners> kNames = {
      "weights",    "kv_read", "kv_write", "other_data", "other_masters", "row",    "refresh",
      "turnaround", "queue",   "latency",  "compute",    "barrier",       "storage"};
  return kNames.at(static_cast<std::size_t>(owner));
}

Picoseconds TimeAccount::total() const {
  return Picoseconds(std::accumulate(parts_.begin(), parts_.end(), std::int64_t{0}));
}

TimeAccount& TimeAccount::operator+=(const TimeAccount& other) {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    parts_[i] += other.parts_[i];
  }
  return *this;
}

TimeAccount operator-(const TimeAccount& a, const TimeAccount& b) {
  TimeAccount difference;
  for (std::size_t i = 0; i < a.parts_.size(); ++i) {
    difference.parts_[i] = a.parts_[i] - b.parts_[i];
  }
  return difference;
}

BusTime operator-(const BusTime& a, const BusTime& b) {
  return {.beats = a.beats - b.beats, .gaps = a.gaps - b.gaps, .channels = a.channels};
}

TimeAccount settle(Picoseconds elapsed, const BusTime& bus, const EngineTime& engine) {
  TimeAccount account;
  const double channels = static_cast<double>(bus.channels);
  // Beats of write-backs may end after the operator, so that beats alone could be more than its time.
  const double beats = std::min(elapsed.as_double(), bus.beats.total().as_double() / channels);
  for (int i = 0; i < kOwners && beats > 0; ++i) {
    const auto owner = static_cast<Owner>(i);
    account.add(owner, rounded(beats * ratio(bus.beats.part(owner), bus.beats.total())));
  }
  const double room = (elapsed - account.total()).as_double();
  const double stalls = engine.stalls.total().as_double();
  const double all = stalls + engine.behind_data.as_double();
  const double occupied = ratio(bus.beats.total() + bus.gaps.total(), elapsed * bus.channels);
  const double bus_bound = std::clamp(
      std::max(all > 0 ? engine.behind_data.as_double() / all : 0, (occupied - kRestless) / (1 - kRestless)),
      0.0, 1.0);
  const double gap_scale = fitted(bus.gaps.total().as_double() / channels, room) / channels;
  const double stall_scale = fitted(stalls, room);
  for (int i = 0; i < kOwners; ++i) {
    const auto owner = static_cast<Owner>(i);
    account.add(owner, rounded(bus_bound * gap_scale * bus.gaps.part(owner).as_double() +
                               (1 - bus_bound) * stall_scale * engine.stalls.part(owner).as_double()));
  }
  account.add(Owner::compute, elapsed - account.total());
  return account;
}

}  // namespace kvsim::model
