// SPDX-License-Identifier: Apache-2.0
// Linux' thermal governor step_wise (drivers/thermal/gov_step_wise.c of 6.12): one step a poll.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "configs/spec/thermal_spec.h"
#include "configs/units/quantity.h"

namespace kvsim::model {

/// Cooling states count from 0, which is no cooling.
class StepWise {
 public:
  /// `most` has the highest state of each cooling device; all devices act for all passive trips.
  StepWise(std::vector<config::TripSpec> trips, std::vector<std::size_t> most);

  /// A poll of the zone. Returns the states that devices go to, each the highest that any trip asks for.
  const std::vector<std::size_t>& poll(Celsius temperature);

  [[nodiscard]] const std::vector<std::size_t>& states() const { return states_; }
  /// A passive trip has been passed, and not its hysteresis below it.
  [[nodiscard]] bool is_active() const;

 private:
  enum class Trend { stable, raising, dropping };

  [[nodiscard]] std::optional<std::size_t> target(std::optional<std::size_t> last, bool throttle, Trend trend,
                                                  std::size_t device) const;

  std::vector<config::TripSpec> trips_;
  std::vector<std::size_t> most_;
  std::vector<bool> passed_;                                      ///< by trip
  std::vector<std::vector<std::optional<std::size_t>>> targets_;  ///< by trip and device; none: no wish
  std::vector<std::vector<bool>> initialized_;
  std::vector<std::size_t> states_;
  std::optional<Celsius> last_;
};

}  // namespace kvsim::model
