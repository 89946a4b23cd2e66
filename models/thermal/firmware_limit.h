// SPDX-License-Identifier: Apache-2.0
// Limits that are not Linux': Raspberry Pi's firmware, and caps of a clock above a temperature.
#pragma once

#include <cstddef>

#include "configs/units/quantity.h"

namespace kvsim::model {

/// "Between 80 and 85 C the cores are throttled back progressively" (raspberrypi/documentation,
/// frequency-management): above the first limit one step slower a poll, below it one step faster; from the
/// second limit on at the slowest. How long a step takes is not public.
class RaspberryPiLimit {
 public:
  RaspberryPiLimit(Celsius first, Celsius second, Celsius hysteresis, std::size_t most)
      : first_(first), second_(second), hysteresis_(hysteresis), most_(most) {}

  /// A poll; returns by how many steps clocks are slower than their fastest.
  std::size_t poll(Celsius temperature);
  [[nodiscard]] bool is_active() const { return steps_ > 0; }

 private:
  Celsius first_;
  Celsius second_;
  Celsius hysteresis_;
  std::size_t most_;
  std::size_t steps_ = 0;
};

/// Holds from a temperature on until it falls below hysteresis (rockchip,high-temp and temp-hysteresis;
/// temp_soft_limit of a Raspberry Pi 3B+).
class TemperatureCap {
 public:
  TemperatureCap(Celsius above, Celsius hysteresis) : above_(above), hysteresis_(hysteresis) {}

  /// A poll; true while the cap holds.
  bool poll(Celsius temperature) {
    holds_ = holds_ ? temperature >= above_ - hysteresis_ : temperature > above_;
    return holds_;
  }
  [[nodiscard]] bool holds() const { return holds_; }

 private:
  Celsius above_;
  Celsius hysteresis_;
  bool holds_ = false;
};

}  // namespace kvsim::model
