// SPDX-License-Identifier: Apache-2.0
// A clock domain at work: its operating point, the governor that chooses it, and the caps of heat and power.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "configs/spec/clock_spec.h"
#include "models/clocks/governors.h"
#include "models/clocks/opp_table.h"

namespace kvsim::model {

/// Why a domain is not at its fastest point.
enum class ClockLimit { none, governor, heat, temperature_cap, over_current, supply, critical };

/// What happened in a domain since its governor looked last.
struct DomainLoad {
  double busiest = 0;          ///< share of the time that the busiest core worked; of a DRAM, channel
  BytesPerSecond bandwidth{};  ///< of a DRAM's busiest channel
};

class ClockDomain {
 public:
  /// At the point that its governor begins with: the fastest, or with powersave and userspace theirs.
  explicit ClockDomain(const config::ClockDomainSpec& spec);

  [[nodiscard]] const config::ClockDomainSpec& spec() const { return spec_; }
  [[nodiscard]] const OppTable& table() const { return table_; }
  [[nodiscard]] std::size_t point() const { return point_; }
  [[nodiscard]] Hertz clock() const { return table_.clock(point_); }
  [[nodiscard]] Volts voltage() const { return table_.voltage(point_); }
  /// Whether its governor looks at loads at all.
  [[nodiscard]] bool is_sampled() const;
  [[nodiscard]] std::int64_t switches() const { return switches_; }
  [[nodiscard]] ClockLimit limit() const;

  /// The governor looks. True if the point changes. `votes` are for tegra_votes and bwmon.
  bool sample(const DomainLoad& load, std::span<const ClockVote> votes = {});

  /// The fastest point that `cause` allows from now on. A faster point is left at once; when a cap goes up,
  /// governors that look at loads wait for their next look, as in Linux. True if the point changes.
  bool cap(ClockLimit cause, std::size_t highest);
  /// The system's status, which has a floor or none. True if the point changes.
  bool set_status(const std::string& status);

 private:
  [[nodiscard]] PointRange range() const;
  [[nodiscard]] std::size_t wish(const DomainLoad& load, std::span<const ClockVote> votes);
  bool go_to(std::size_t point);
  bool apply_limits();

  static constexpr std::size_t kLimits = 7;

  config::ClockDomainSpec spec_;
  OppTable table_;
  BandwidthMonitor monitor_;
  std::array<std::size_t, kLimits> caps_{};
  std::size_t floor_ = 0;
  std::size_t point_ = 0;
  std::int64_t switches_ = 0;
};

}  // namespace kvsim::model
