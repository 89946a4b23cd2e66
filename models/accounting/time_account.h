// SPDX-License-Identifier: Apache-2.0
// Where an operator's time goes: every picosecond has one owner.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "configs/units/quantity.h"
#include "traces/record/record.h"

namespace kvsim::model {

/// What a picosecond was spent on.
enum class Owner : std::uint8_t {
  weights,     ///< data beats of weights,
  kv_read,     ///< of cached keys and values read,
  kv_write,    ///< of keys and values written,
  other_data,  ///< of everything else that the cores ask for
  masters,     ///< of what other masters ask for
  row,         ///< precharge, activate and activate windows: row misses and conflicts
  refresh,     ///< a bank or rank refreshing, and opening its rows again
  turnaround,  ///< the data bus changing direction or rank
  queue,       ///< any other wait: command bus, interconnect
  latency,     ///< a request or its data on the way, with nothing before it
  compute,     ///< arithmetic not hidden behind memory
  barrier,     ///< threads meeting between operators
  storage,     ///< weights that are not in memory: faults, and waiting for the device
};
inline constexpr int kOwners = static_cast<int>(Owner::storage) + 1;

[[nodiscard]] std::string_view to_string(Owner owner);

[[nodiscard]] constexpr bool is_data(Owner owner) {
  return owner <= Owner::masters;
}

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

/// Time by owner.
class TimeAccount {
 public:
  void add(Owner owner, Picoseconds time) { parts_[static_cast<std::size_t>(owner)] += time.count(); }
  [[nodiscard]] Picoseconds part(Owner owner) const {
    return Picoseconds(parts_[static_cast<std::size_t>(owner)]);
  }
  [[nodiscard]] Picoseconds total() const;
  TimeAccount& operator+=(const TimeAccount& other);
  friend TimeAccount operator-(const TimeAccount& a, const TimeAccount& b);
  bool operator==(const TimeAccount&) const = default;

 private:
  std::array<std::int64_t, kOwners> parts_{};
};

/// What the data buses did, summed over the channels.
struct BusTime {
  TimeAccount beats;  ///< data beats by what they carried
  TimeAccount gaps;   ///< idle while a request waited, by what held it
  std::int64_t channels = 1;
};
[[nodiscard]] BusTime operator-(const BusTime& a, const BusTime& b);

/// What an engine did.
struct EngineTime {
  TimeAccount stalls;       ///< stood still, by what held the line it needed,
  Picoseconds behind_data;  ///< or behind the data beats of others
};

/// Divides `elapsed` among its owners. Data beats own their time. What else the last engine lost has two
/// witnesses: the gaps on the buses, which tell the truth where the buses are the bound, and the engine's
/// stalls, which do where it is the engine. Each counts by how much of the engine's stalls was behind data.
/// The rest is arithmetic that memory did not hide. The parts add up to `elapsed` exactly.
[[nodiscard]] TimeAccount settle(Picoseconds elapsed, const BusTime& bus, const EngineTime& engine);

}  // namespace kvsim::model
