// SPDX-License-Identifier: Apache-2.0
#include "models/clocks/governors.h"

#include <algorithm>
#include <cmath>

#include "configs/error/error.h"

namespace kvsim::model {
namespace {

std::int64_t kilohertz(Hertz clock) {
  return clock.count() / 1000;
}

Hertz from_kilohertz(std::int64_t kilohertz) {
  return Hertz(kilohertz * 1000);
}

std::size_t within(PointRange range, std::size_t point) {
  return std::clamp(point, std::min(range.low, range.high), range.high);
}

}  // namespace

std::size_t ondemand(const OppTable& table, PointRange range, std::int64_t percent,
                     std::int64_t up_threshold) {
  if (percent > up_threshold) {
    return range.high;
  }
  const std::int64_t low = kilohertz(table.clock(0));
  const std::int64_t high = kilohertz(table.clock(table.top()));
  return within(range, table.closest(from_kilohertz(low + percent * (high - low) / 100)));
}

std::int64_t utilisation(const OppTable& table, std::size_t point, double busy) {
  const double share = busy * ratio(table.clock(point), table.clock(table.top()));
  return std::llround(std::clamp(share, 0.0, 1.0) * static_cast<double>(kFullUtilisation));
}

std::size_t schedutil(const OppTable& table, PointRange range, std::int64_t utilisation) {
  const std::int64_t wish = std::min(kFullUtilisation, utilisation + (utilisation >> 2));
  const std::int64_t clock = kilohertz(table.clock(table.top())) * wish / kFullUtilisation;
  return within(range, table.at_least(from_kilohertz(clock)));
}

std::size_t dmc_ondemand(const OppTable& table, PointRange range, std::size_t now, double load,
                         const OndemandTuning& tuning) {
  check(tuning.down_differential < tuning.up_threshold, "thresholds are in order");
  constexpr std::int64_t kTotal = 1'000'000;  // cycles of a window, as the counters have them
  const std::int64_t busy = std::llround(std::clamp(load, 0.0, 1.0) * static_cast<double>(kTotal));
  if (busy * 100 > kTotal * tuning.up_threshold) {
    return range.high;
  }
  if (busy * 100 > kTotal * (tuning.up_threshold - tuning.down_differential)) {
    return within(range, now);
  }
  const std::int64_t share = busy * kilohertz(table.clock(now)) / kTotal;
  const std::int64_t clock = share * 100 / (tuning.up_threshold - tuning.down_differential / 2);
  return within(range, table.at_least(from_kilohertz(clock)));
}

std::size_t tegra_votes(const OppTable& table, PointRange range, std::span<const ClockVote> votes) {
  std::size_t point = range.low;
  for (const ClockVote& vote : votes) {
    if (vote.clock >= vote.from) {
      point = std::max(point, table.at_least(vote.wish));
    }
  }
  return within(range, point);
}

Hertz BandwidthMonitor::clock_for(BytesPerSecond bandwidth) const {
  return Hertz(std::llround(std::ceil(bandwidth.count() / bytes_per_clock_.as_double())));
}

std::size_t BandwidthMonitor::sample(const OppTable& table, PointRange range, std::size_t now,
                                     BytesPerSecond measured) {
  const Hertz needed = clock_for(measured);
  if (needed > table.clock(now)) {
    calm_ = 0;
    highest_ = BytesPerSecond();
    return within(range, table.at_least(needed));
  }
  if (now == 0 || needed >= table.clock(now - 1)) {
    calm_ = 0;
    highest_ = BytesPerSecond();
    return within(range, now);
  }
  highest_ = std::max(highest_, measured);
  if (++calm_ < down_samples_) {
    return within(range, now);
  }
  const std::size_t point = table.at_least(clock_for(highest_));
  calm_ = 0;
  highest_ = BytesPerSecond();
  return within(range, point);
}

}  // namespace kvsim::model
