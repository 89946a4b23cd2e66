// SPDX-License-Identifier: Apache-2.0
#include "models/board/zone.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kvsim::model {
namespace {

std::vector<config::TripSpec> passive_trips(const config::ThermalZoneSpec& spec) {
  std::vector<config::TripSpec> trips = spec.trips;
  std::erase_if(trips, [](const config::TripSpec& trip) { return trip.kind != config::TripKind::passive; });
  return trips;
}

/// Of a busy core by operating point, as the kernel works it out: coefficient x MHz x mV^2, in whole mW.
PowerActor actor_of(const ClockDomain& domain, std::int64_t weight) {
  PowerActor actor{.core_power = {}, .cores = domain.spec().cores, .weight = weight};
  const std::int64_t coefficient = std::llround(domain.spec().power_coefficient.count() * 1e12);
  for (const config::OppSpec& point : domain.spec().opps) {
    const std::int64_t millivolts = std::llround(point.voltage.count() * 1000);
    const std::int64_t megahertz = point.clock.count() / 1'000'000;
    actor.core_power.push_back(coefficient * megahertz * millivolts * millivolts / 1'000'000'000);
  }
  return actor;
}

AllocatorSpec allocator_spec(const config::ThermalZoneSpec& spec) {
  const std::vector<config::TripSpec> trips = passive_trips(spec);
  const Watts sustainable = spec.sustainable_power.value_or(Watts());
  return {.switch_on = trips[0].at,
          .target = trips[1].at,
          .period_ms = std::max<std::int64_t>(1, std::llround(milliseconds(spec.passive_polling))),
          .sustainable_power = std::llround(sustainable.count() * 1000),
          .pid = spec.pid};
}

}  // namespace

Zone::Zone(const config::ThermalZoneSpec& spec, std::span<const ClockDomain> domains,
           std::vector<std::size_t> cooled)
    : spec_(spec), cooled_(std::move(cooled)), loads_(cooled_.size()), next_(spec.polling) {
  std::vector<PowerActor> actors;
  for (std::size_t i = 0; i < cooled_.size(); ++i) {
    top_.push_back(domains[cooled_[i]].table().top());
    actors.push_back(actor_of(domains[cooled_[i]], spec.cooling[i].weight));
  }
  points_ = top_;
  if (spec.governor == config::ThermalGovernor::step_wise) {
    step_wise_.emplace(spec.trips, top_);
  } else if (spec.governor == config::ThermalGovernor::power_allocator) {
    allocator_.emplace(allocator_spec(spec), std::move(actors));
  } else if (spec.governor == config::ThermalGovernor::raspberry_pi) {
    const std::vector<config::TripSpec> trips = passive_trips(spec);
    raspberry_pi_.emplace(trips[0].at, trips[1].at, trips[0].hysteresis, *std::ranges::max_element(top_));
  }
}

bool Zone::is_active() const {
  return (step_wise_ && step_wise_->is_active()) || (allocator_ && allocator_->is_active()) ||
         (raspberry_pi_ && raspberry_pi_->is_active());
}

bool Zone::is_critical(Celsius reading) const {
  return std::ranges::any_of(spec_.trips, [&](const config::TripSpec& trip) {
    return trip.kind == config::TripKind::critical && reading >= trip.at;
  });
}

void Zone::poll_allocator(Celsius reading, std::span<const ClockDomain> domains) {
  std::vector<ActorLoad> loads;
  for (std::size_t i = 0; i < cooled_.size(); ++i) {
    const ClockDomain& domain = domains[cooled_[i]];
    const double cores = static_cast<double>(domain.spec().cores);
    loads.push_back({domain.point(), static_cast<std::int64_t>(100 * cores * loads_[i].busy() + 1e-6)});
  }
  points_ = allocator_->poll(reading, loads);
}

void Zone::poll(Celsius reading, std::span<const ClockDomain> domains) {
  if (step_wise_) {
    const std::vector<std::size_t>& states = step_wise_->poll(reading);
    for (std::size_t i = 0; i < points_.size(); ++i) {
      points_[i] = top_[i] - states[i];
    }
  } else if (allocator_) {
    poll_allocator(reading, domains);
  } else if (raspberry_pi_) {
    const std::size_t steps = raspberry_pi_->poll(reading);
    for (std::size_t i = 0; i < points_.size(); ++i) {
      points_[i] = top_[i] - std::min(steps, top_[i]);
    }
  }
  for (LoadSum& load : loads_) {
    load.clear();
  }
  next_ += is_active() ? spec_.passive_polling : spec_.polling;
}

}  // namespace kvsim::model
