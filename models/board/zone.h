// SPDX-License-Identifier: Apache-2.0
// A thermal zone: its governor, whichever it is, and the clock domains that this one holds down.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "configs/spec/thermal_spec.h"
#include "models/board/load_sum.h"
#include "models/clocks/clock_domain.h"
#include "models/thermal/firmware_limit.h"
#include "models/thermal/power_allocator.h"
#include "models/thermal/step_wise.h"

namespace kvsim::model {

class Zone {
 public:
  /// `cooled` has the index of each domain that it cools. Precondition: the specification is checked.
  Zone(const config::ThermalZoneSpec& spec, std::span<const ClockDomain> domains,
       std::vector<std::size_t> cooled);

  [[nodiscard]] const config::ThermalZoneSpec& spec() const { return spec_; }
  [[nodiscard]] const std::vector<std::size_t>& cooled() const { return cooled_; }
  /// The fastest point that each of them may take.
  [[nodiscard]] const std::vector<std::size_t>& points() const { return points_; }
  [[nodiscard]] Picoseconds next() const { return next_; }

  void add_load(std::size_t cooled, double busy, Picoseconds time) {
    loads_[cooled].add_cores(busy, busy, time);
  }
  /// A poll, which is due now.
  void poll(Celsius reading, std::span<const ClockDomain> domains);
  [[nodiscard]] bool is_critical(Celsius reading) const;

 private:
  void poll_allocator(Celsius reading, std::span<const ClockDomain> domains);
  [[nodiscard]] bool is_active() const;

  config::ThermalZoneSpec spec_;
  std::vector<std::size_t> cooled_;
  std::vector<std::size_t> top_;
  std::vector<std::size_t> points_;
  std::vector<LoadSum> loads_;
  std::optional<StepWise> step_wise_{};
  std::optional<PowerAllocator> allocator_{};
  std::optional<RaspberryPiLimit> raspberry_pi_{};
  Picoseconds next_;
};

}  // namespace kvsim::model
