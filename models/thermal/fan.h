// SPDX-License-Identifier: Apache-2.0
// A fan that follows a temperature through trips with hysteresis, and takes time to change its speed.
#pragma once

#include <cstddef>

#include "configs/spec/thermal_spec.h"
#include "configs/units/quantity.h"

namespace kvsim::model {

class Fan {
 public:
  /// Precondition: the specification is checked.
  explicit Fan(const config::FanSpec& spec) : spec_(&spec) {}

  /// Looks at its sensor: chooses the speed that it goes for.
  void poll(Celsius reading);
  /// Lets it spin up or down.
  void advance(Picoseconds time);

  [[nodiscard]] double target() const;
  [[nodiscard]] double speed() const { return speed_; }
  /// At its speed, between the points that are given; beyond them that of the nearest.
  [[nodiscard]] KelvinPerWatt resistance() const;

 private:
  const config::FanSpec* spec_;
  std::size_t level_ = 0;  ///< trips passed
  double speed_ = 0;
};

}  // namespace kvsim::model
