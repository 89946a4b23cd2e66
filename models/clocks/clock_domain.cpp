// SPDX-License-Identifier: Apache-2.0
#include "models/clocks/clock_domain.h"

#include <algorithm>

#include "configs/error/error.h"

namespace kvsim::model {

using config::ClockGovernor;

ClockDomain::ClockDomain(const config::ClockDomainSpec& spec)
    : spec_(spec), table_(spec.opps), monitor_(spec.bytes_per_clock, spec.down_samples) {
  caps_.fill(table_.top());
  point_ = table_.top();
  set_status(spec_.status);
  if (!is_sampled()) {
    point_ = std::clamp(wish({}, {}), range().low, range().high);
  }
  switches_ = 0;
}

bool ClockDomain::is_sampled() const {
  return spec_.governor != ClockGovernor::performance && spec_.governor != ClockGovernor::powersave &&
         spec_.governor != ClockGovernor::userspace;
}

PointRange ClockDomain::range() const {
  const std::size_t high = *std::ranges::min_element(caps_);
  return {std::min(floor_, high), high};
}

ClockLimit ClockDomain::limit() const {
  if (point_ == table_.top()) {
    return ClockLimit::none;
  }
  const auto tightest = std::ranges::min_element(caps_);
  if (*tightest > point_) {
    return ClockLimit::governor;
  }
  return static_cast<ClockLimit>(tightest - caps_.begin());
}

std::size_t ClockDomain::wish(const DomainLoad& load, std::span<const ClockVote> votes) {
  const PointRange allowed = range();
  switch (spec_.governor) {
    case ClockGovernor::performance:
      return allowed.high;
    case ClockGovernor::powersave:
      return allowed.low;
    case ClockGovernor::userspace:
      return std::clamp(table_.at_least(*spec_.pinned), allowed.low, allowed.high);
    case ClockGovernor::ondemand:
      return ondemand(table_, allowed, static_cast<std::int64_t>(100 * load.busiest + 1e-9),
                      spec_.up_threshold);
    case ClockGovernor::schedutil:
      return schedutil(table_, allowed, utilisation(table_, point_, load.busiest));
    case ClockGovernor::dmc_ondemand:
      return dmc_ondemand(table_, allowed, point_, load.busiest,
                          {spec_.up_threshold, spec_.down_differential});
    case ClockGovernor::tegra_votes:
      return tegra_votes(table_, allowed, votes);
    case ClockGovernor::bwmon:
      // The interconnect framework takes the highest of all peak votes.
      return std::max(monitor_.sample(table_, allowed, point_, load.bandwidth),
                      tegra_votes(table_, allowed, votes));
  }
  check(false, "every governor has a rule");
  return allowed.high;
}

bool ClockDomain::go_to(std::size_t point) {
  if (point == point_) {
    return false;
  }
  point_ = point;
  ++switches_;
  return true;
}

bool ClockDomain::sample(const DomainLoad& load, std::span<const ClockVote> votes) {
  return go_to(wish(load, votes));
}

bool ClockDomain::apply_limits() {
  const PointRange allowed = range();
  return go_to(is_sampled() ? std::clamp(point_, allowed.low, allowed.high) : wish({}, {}));
}

bool ClockDomain::cap(ClockLimit cause, std::size_t highest) {
  check(cause != ClockLimit::none && cause != ClockLimit::governor, "causes are others'");
  caps_[static_cast<std::size_t>(cause)] = std::min(highest, table_.top());
  return apply_limits();
}

bool ClockDomain::set_status(const std::string& status) {
  floor_ = 0;
  for (const config::ClockFloorSpec& floor : spec_.floors) {
    if (floor.status == status) {
      floor_ = table_.at_least(floor.clock);
    }
  }
  return apply_limits();
}

}  // namespace kvsim::model
