// SPDX-License-Identifier: Apache-2.0
#include "models/thermal/fan.h"

#include <algorithm>

namespace kvsim::model {

void Fan::poll(Celsius reading) {
  while (level_ < spec_->trips.size() && reading >= spec_->trips[level_].at) {
    ++level_;
  }
  while (level_ > 0 && reading < spec_->trips[level_ - 1].at - spec_->hysteresis) {
    --level_;
  }
}

double Fan::target() const {
  return level_ == 0 ? 0 : spec_->trips[level_ - 1].speed;
}

void Fan::advance(Picoseconds time) {
  const double goal = target();
  if (spec_->spin_up.count() == 0) {
    speed_ = goal;
    return;
  }
  const double most = ratio(time, spec_->spin_up);
  speed_ += std::clamp(goal - speed_, -most, most);
}

KelvinPerWatt Fan::resistance() const {
  const auto& points = spec_->points;
  std::size_t above = 0;
  while (above < points.size() && points[above].speed < speed_) {
    ++above;
  }
  if (above == 0 || above == points.size()) {
    return points[above == 0 ? 0 : above - 1].resistance;
  }
  const config::FanPointSpec& low = points[above - 1];
  const config::FanPointSpec& high = points[above];
  const double share = (speed_ - low.speed) / (high.speed - low.speed);
  return low.resistance + (high.resistance - low.resistance) * share;
}

}  // namespace kvsim::model
