// SPDX-License-Identifier: Apache-2.0
#include "models/thermal/power_allocator.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "configs/error/error.h"

namespace kvsim::model {
namespace {

constexpr int kFractionBits = 10;

std::int64_t to_fixed(std::int64_t value) {
  return value * (1 << kFractionBits);
}
std::int64_t from_fixed(std::int64_t value) {
  return value >> kFractionBits;
}
std::int64_t times(std::int64_t a, std::int64_t b) {
  return (a * b) >> kFractionBits;
}
std::int64_t milli(Celsius temperature) {
  return std::llround(temperature.count() * 1000);
}
/// mW for a degree, as the kernel takes its constants: fixed point, for a millidegree.
std::int64_t constant(double milliwatts_per_kelvin) {
  return std::llround(milliwatts_per_kelvin / 1000 * (1 << kFractionBits));
}

Milliwatts most_power(const PowerActor& actor) {
  return actor.core_power.back() * actor.cores;
}

/// The highest point whose power, at the load that there is, the budget covers.
std::size_t point_for(const PowerActor& actor, Milliwatts budget, std::int64_t percent) {
  const Milliwatts core = budget * 100 / std::max<std::int64_t>(percent, 1);
  std::size_t point = actor.core_power.size() - 1;
  while (point > 0 && core < actor.core_power[point]) {
    --point;
  }
  return point;
}

}  // namespace

std::vector<Milliwatts> divvy_up(std::span<const Milliwatts> requests, std::span<const Milliwatts> most,
                                 Milliwatts budget) {
  const Milliwatts total =
      std::max<Milliwatts>(1, std::accumulate(requests.begin(), requests.end(), Milliwatts{0}));
  std::vector<Milliwatts> granted;
  std::vector<Milliwatts> room;
  Milliwatts extra = 0;
  Milliwatts all_room = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Milliwatts share = (requests[i] * budget + total / 2) / total;  // rounded to the closest
    extra += std::max<Milliwatts>(0, share - most[i]);
    granted.push_back(std::min(share, most[i]));
    room.push_back(most[i] - granted.back());
    all_room += room.back();
  }
  if (extra == 0 || all_room == 0) {
    return granted;
  }
  extra = std::min(extra, all_room);
  for (std::size_t i = 0; i < granted.size(); ++i) {
    granted[i] += room[i] * extra / all_room;
  }
  return granted;
}

PowerAllocator::PowerAllocator(const AllocatorSpec& spec, std::vector<PowerActor> actors)
    : spec_(spec), actors_(std::move(actors)) {
  check(spec_.switch_on < spec_.target, "the target lies above the start");
  for (const PowerActor& actor : actors_) {
    check(!actor.core_power.empty(), "an actor has operating points");
    points_.push_back(actor.core_power.size() - 1);
    if (spec.sustainable_power == 0) {
      spec_.sustainable_power += actor.core_power.front() * actor.cores;
    }
  }
  const std::int64_t span = milli(spec_.target) - milli(spec_.switch_on);
  const config::PidSpec& pid = spec_.pid;
  k_po_ = pid.k_po ? constant(*pid.k_po) : to_fixed(spec_.sustainable_power) / span;
  k_pu_ = pid.k_pu ? constant(*pid.k_pu) : to_fixed(2 * spec_.sustainable_power) / span;
  k_i_ = pid.k_i ? constant(*pid.k_i) : std::max<std::int64_t>(1, k_pu_ / 10);
  k_d_ = constant(pid.k_d);
}

Milliwatts PowerAllocator::control(std::int64_t error_milli, Milliwatts most) {
  const std::int64_t error = to_fixed(error_milli);
  const std::int64_t proportional = times(error < 0 ? k_po_ : k_pu_, error);
  std::int64_t integral = times(k_i_, error_sum_);
  if (error < to_fixed(milli(spec_.pid.integral_cutoff))) {
    const std::int64_t next = integral + times(k_i_, error);
    if (std::abs(next) < to_fixed(most)) {
      integral = next;
      error_sum_ += error;
    }
  }
  std::int64_t differential = times(k_d_, error - last_error_);
  differential = to_fixed(differential) / spec_.period_ms;  // the kernel's div_frac, by a plain number
  last_error_ = error;
  const Milliwatts power = spec_.sustainable_power + from_fixed(proportional + integral + differential);
  return std::clamp<Milliwatts>(power, 0, most);
}

void PowerAllocator::allocate(std::int64_t error, std::span<const ActorLoad> loads) {
  std::vector<Milliwatts> requests;
  std::vector<Milliwatts> most;
  for (std::size_t i = 0; i < actors_.size(); ++i) {
    const Milliwatts wish = actors_[i].core_power[loads[i].point] * loads[i].percent / 100;
    requests.push_back(from_fixed(actors_[i].weight * wish));
    most.push_back(most_power(actors_[i]));
  }
  budget_ = control(error, std::accumulate(most.begin(), most.end(), Milliwatts{0}));
  granted_ = divvy_up(requests, most, budget_);
  for (std::size_t i = 0; i < actors_.size(); ++i) {
    points_[i] = point_for(actors_[i], granted_[i], loads[i].percent);
  }
}

const std::vector<std::size_t>& PowerAllocator::poll(Celsius temperature, std::span<const ActorLoad> loads) {
  check(loads.size() == actors_.size(), "each actor has a load");
  active_ = temperature >= spec_.switch_on;
  if (active_) {
    allocate(milli(spec_.target) - milli(temperature), loads);
    return points_;
  }
  error_sum_ = 0;
  last_error_ = 0;
  for (std::size_t i = 0; i < actors_.size(); ++i) {
    points_[i] = actors_[i].core_power.size() - 1;
  }
  return points_;
}

}  // namespace kvsim::model
