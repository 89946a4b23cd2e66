// SPDX-License-Identifier: Apache-2.0
#include "models/thermal/firmware_limit.h"

namespace kvsim::model {

std::size_t RaspberryPiLimit::poll(Celsius temperature) {
  if (temperature >= second_) {
    steps_ = most_;
  } else if (temperature >= first_) {
    steps_ += steps_ < most_ ? 1 : 0;
  } else if (temperature < first_ - hysteresis_) {
    steps_ -= steps_ > 0 ? 1 : 0;
  }
  return steps_;
}

}  // namespace kvsim::model
