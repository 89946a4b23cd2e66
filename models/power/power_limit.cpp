// SPDX-License-Identifier: Apache-2.0
#include "models/power/power_limit.h"

namespace kvsim::model {

std::size_t PowerLimit::window(Watts average) {
  if (average > limit_) {
    ++alarms_;
    steps_ += steps_ < most_ ? 1 : 0;
  } else if (average < release_ && steps_ > 0) {
    --steps_;
  }
  return steps_;
}

}  // namespace kvsim::model
