// SPDX-License-Identifier: Apache-2.0
// Operating points of a clock domain, and how Linux finds one for a wish.
#pragma once

#include <cstddef>
#include <vector>

#include "configs/spec/clock_spec.h"
#include "configs/units/quantity.h"

namespace kvsim::model {

class OppTable {
 public:
  /// Throws UserError unless clocks rise from point to point, and voltages do not fall.
  explicit OppTable(std::vector<config::OppSpec> points);

  [[nodiscard]] std::size_t size() const { return points_.size(); }
  [[nodiscard]] std::size_t top() const { return points_.size() - 1; }
  [[nodiscard]] Hertz clock(std::size_t point) const { return points_[point].clock; }
  [[nodiscard]] Volts voltage(std::size_t point) const { return points_[point].voltage; }

  /// The slowest point at or above a clock; the fastest if there is none (CPUFREQ_RELATION_L,
  /// dev_pm_opp_find_freq_ceil).
  [[nodiscard]] std::size_t at_least(Hertz clock) const;
  /// The fastest point at or below a clock; the slowest if there is none (CPUFREQ_RELATION_H).
  [[nodiscard]] std::size_t at_most(Hertz clock) const;
  /// The point next to a clock, of two equally near ones the slower (CPUFREQ_RELATION_C).
  [[nodiscard]] std::size_t closest(Hertz clock) const;

 private:
  std::vector<config::OppSpec> points_;
};

}  // namespace kvsim::model
