// SPDX-License-Identifier: Apache-2.0
// The rules by which governors choose an operating point, with the kernel's whole numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "models/clocks/opp_table.h"

namespace kvsim::model {

/// Points that a governor may choose: floors and caps of others.
struct PointRange {
  std::size_t low = 0;
  std::size_t high = 0;
};

/// drivers/cpufreq/cpufreq_ondemand.c, od_update(): above the threshold to the top; else in proportion to the
/// load between the least and the highest clock of the table. `percent` is the busiest core's.
[[nodiscard]] std::size_t ondemand(const OppTable& table, PointRange range, std::int64_t percent,
                                   std::int64_t up_threshold);

/// What utilisation counts in: a core that is busy all the time at its highest clock.
inline constexpr std::int64_t kFullUtilisation = 1024;
/// A core's utilisation in kernel's units: busy share of time x clock over highest clock.
[[nodiscard]] std::int64_t utilisation(const OppTable& table, std::size_t point, double busy);

/// kernel/sched/cpufreq_schedutil.c: highest clock x 1.25 x utilisation, and the point at or above it.
[[nodiscard]] std::size_t schedutil(const OppTable& table, PointRange range, std::int64_t utilisation);

struct OndemandTuning {
  std::int64_t up_threshold = 40;
  std::int64_t down_differential = 20;
};

/// Rockchip's dmc_ondemand (rockchip_dmc.c), which is devfreq's simple_ondemand: above the threshold to the
/// top, down to the differential below it as now, below that so fast that the load is in the middle. Busy and
/// total count the cycles of the busiest channel.
[[nodiscard]] std::size_t dmc_ondemand(const OppTable& table, PointRange range, std::size_t now, double load,
                                       const OndemandTuning& tuning);

/// A wish of another domain.
struct ClockVote {
  Hertz clock;  ///< of that domain
  Hertz from;
  Hertz wish;
};
/// The fastest wish of those that count.
[[nodiscard]] std::size_t tegra_votes(const OppTable& table, PointRange range,
                                      std::span<const ClockVote> votes);

/// Qualcomm's bandwidth monitor (drivers/soc/qcom/icc-bwmon.c): up as soon as a sample lies above the point's
/// bandwidth; down when so many samples in a row lay below the next slower point's, by the highest of them.
class BandwidthMonitor {
 public:
  BandwidthMonitor(Bytes bytes_per_clock, std::int64_t down_samples)
      : bytes_per_clock_(bytes_per_clock), down_samples_(down_samples) {}

  [[nodiscard]] std::size_t sample(const OppTable& table, PointRange range, std::size_t now,
                                   BytesPerSecond measured);

 private:
  [[nodiscard]] Hertz clock_for(BytesPerSecond bandwidth) const;

  Bytes bytes_per_clock_;
  std::int64_t down_samples_;
  std::int64_t calm_ = 0;
  BytesPerSecond highest_;
};

}  // namespace kvsim::model
