// SPDX-License-Identifier: Apache-2.0
#include "models/thermal/step_wise.h"

#include <algorithm>
#include <utility>

namespace kvsim::model {

StepWise::StepWise(std::vector<config::TripSpec> trips, std::vector<std::size_t> most)
    : trips_(std::move(trips)), most_(std::move(most)), states_(most_.size()) {
  std::erase_if(trips_, [](const config::TripSpec& trip) { return trip.kind != config::TripKind::passive; });
  passed_.resize(trips_.size());
  targets_.assign(trips_.size(), std::vector<std::optional<std::size_t>>(most_.size()));
  initialized_.assign(trips_.size(), std::vector<bool>(most_.size()));
}

bool StepWise::is_active() const {
  return std::ranges::find(passed_, true) != passed_.end();
}

std::optional<std::size_t> StepWise::target(std::optional<std::size_t> last, bool throttle, Trend trend,
                                            std::size_t device) const {
  const std::size_t state = states_[device];
  const std::size_t most = most_[device];
  if (throttle) {
    if (trend == Trend::raising) {
      return std::min(state + 1, most);
    }
    if (trend == Trend::dropping) {
      // Not below one step while the trip holds.
      return std::clamp<std::size_t>(state == 0 ? 0 : state - 1, std::min<std::size_t>(1, most), most);
    }
  } else if (trend == Trend::dropping) {
    return state == 0 ? std::nullopt : std::optional(state - 1);
  }
  return last;
}

const std::vector<std::size_t>& StepWise::poll(Celsius temperature) {
  Trend trend = Trend::stable;
  if (last_ && temperature != *last_) {
    trend = temperature > *last_ ? Trend::raising : Trend::dropping;
  }
  last_ = temperature;
  for (std::size_t t = 0; t < trips_.size(); ++t) {
    const Celsius threshold = passed_[t] ? trips_[t].at - trips_[t].hysteresis : trips_[t].at;
    passed_[t] = temperature >= threshold;
    for (std::size_t d = 0; d < most_.size(); ++d) {
      if (!initialized_[t][d]) {
        initialized_[t][d] = true;
        targets_[t][d] = passed_[t] ? std::optional(std::min(states_[d] + 1, most_[d])) : std::nullopt;
      } else {
        targets_[t][d] = target(targets_[t][d], passed_[t], trend, d);
      }
    }
  }
  for (std::size_t d = 0; d < most_.size(); ++d) {
    states_[d] = 0;
    for (std::size_t t = 0; t < trips_.size(); ++t) {
      states_[d] = std::max(states_[d], targets_[t][d].value_or(0));
    }
  }
  return states_;
}

}  // namespace kvsim::model
