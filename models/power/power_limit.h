// SPDX-License-Identifier: Apache-2.0
// A regulator's or a supply's limit: the average power of window after window, and steps of clocks for it.
#pragma once

#include <cstddef>

#include "configs/spec/power_spec.h"
#include "configs/units/quantity.h"

namespace kvsim::model {

class PowerLimit {
 public:
  /// `most` is by how many steps clocks can go down.
  PowerLimit(const config::PowerLimitSpec& spec, std::size_t most)
      : limit_(spec.limit), release_(spec.limit * spec.release), most_(most) {}

  /// A window has passed with this average: above the limit one step down, below its release one up. Returns
  /// how many steps clocks are down.
  std::size_t window(Watts average);

  [[nodiscard]] std::size_t steps() const { return steps_; }
  /// Windows above the limit.
  [[nodiscard]] std::size_t alarms() const { return alarms_; }

 private:
  Watts limit_;
  Watts release_;
  std::size_t most_;
  std::size_t steps_ = 0;
  std::size_t alarms_ = 0;
};

}  // namespace kvsim::model
