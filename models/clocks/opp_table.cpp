// SPDX-License-Identifier: Apache-2.0
#include "models/clocks/opp_table.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "configs/units/text.h"

namespace kvsim::model {

OppTable::OppTable(std::vector<config::OppSpec> points) : points_(std::move(points)) {
  if (points_.empty()) {
    throw UserError("a clock domain has no operating points");
  }
  for (std::size_t i = 1; i < points_.size(); ++i) {
    if (points_[i].clock <= points_[i - 1].clock || points_[i].voltage < points_[i - 1].voltage) {
      throw UserError(fmt::format("operating points must rise: {} at {} follows {} at {}",
                                  to_text(points_[i].clock), to_text(points_[i].voltage),
                                  to_text(points_[i - 1].clock), to_text(points_[i - 1].voltage)));
    }
  }
}

std::size_t OppTable::at_least(Hertz clock) const {
  const auto found = std::ranges::lower_bound(points_, clock, {}, &config::OppSpec::clock);
  return found == points_.end() ? top() : static_cast<std::size_t>(found - points_.begin());
}

std::size_t OppTable::at_most(Hertz clock) const {
  const auto above = std::ranges::upper_bound(points_, clock, {}, &config::OppSpec::clock);
  return above == points_.begin() ? 0 : static_cast<std::size_t>(above - points_.begin()) - 1;
}

std::size_t OppTable::closest(Hertz clock) const {
  const std::size_t low = at_most(clock);
  const std::size_t high = at_least(clock);
  return clock - points_[low].clock > points_[high].clock - clock ? high : low;
}

}  // namespace kvsim::model
