// SPDX-License-Identifier: Apache-2.0
// Linux' thermal governor power_allocator (drivers/thermal/gov_power_allocator.c) with the CPU as it sees it
// (drivers/thermal/cpufreq_cooling.c of 5.10): whole milliwatts, millidegrees and fixed-point constants as in
// the kernel, so that its rounding is here too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "configs/spec/thermal_spec.h"
#include "configs/units/quantity.h"

namespace kvsim::model {

using Milliwatts = std::int64_t;

/// A clock domain as the governor sees it.
struct PowerActor {
  std::vector<Milliwatts> core_power;  ///< of a busy core, by operating point, the slowest first
  std::int64_t cores = 1;
  std::int64_t weight = 1024;  ///< 1024 is once
};

/// What it does right now.
struct ActorLoad {
  std::size_t point = 0;     ///< its operating point
  std::int64_t percent = 0;  ///< load of its cores, summed up
};

struct AllocatorSpec {
  Celsius switch_on;
  Celsius target;
  std::int64_t period_ms = 100;      ///< of polls above switch_on
  Milliwatts sustainable_power = 0;  ///< 0: the actors' least powers, as Linux estimates it
  config::PidSpec pid{};
};

/// Shares `budget` among requests, none above its most; what that leaves over goes to those that have room.
[[nodiscard]] std::vector<Milliwatts> divvy_up(std::span<const Milliwatts> requests,
                                               std::span<const Milliwatts> most, Milliwatts budget);

class PowerAllocator {
 public:
  PowerAllocator(const AllocatorSpec& spec, std::vector<PowerActor> actors);

  /// A poll of the zone. Returns the highest operating point that each actor may go to.
  const std::vector<std::size_t>& poll(Celsius temperature, std::span<const ActorLoad> loads);

  /// At or above switch_on at the last poll.
  [[nodiscard]] bool is_active() const { return active_; }
  /// Of the last poll that was active.
  [[nodiscard]] Milliwatts budget() const { return budget_; }
  [[nodiscard]] const std::vector<Milliwatts>& granted() const { return granted_; }

 private:
  [[nodiscard]] Milliwatts control(std::int64_t error, Milliwatts most);
  void allocate(std::int64_t error, std::span<const ActorLoad> loads);

  AllocatorSpec spec_;
  std::vector<PowerActor> actors_;
  std::int64_t k_po_ = 0;  ///< fixed point, in mW for a millidegree
  std::int64_t k_pu_ = 0;
  std::int64_t k_i_ = 0;
  std::int64_t k_d_ = 0;
  std::int64_t error_sum_ = 0;
  std::int64_t last_error_ = 0;
  bool active_ = false;
  Milliwatts budget_ = 0;
  std::vector<Milliwatts> granted_;
  std::vector<std::size_t> points_;
};

}  // namespace kvsim::model
