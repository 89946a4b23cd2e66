// SPDX-License-Identifier: Apache-2.0
// Resolved description of a device's clocks: domains, their operating points, and what chooses among these.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/units/quantity.h"

namespace kvsim::config {

/// What a domain's clock drives.
enum class ClockKind { cpu, gpu, npu, dram };

/// What chooses the operating point, by the name that the kernel has for it. tegra_votes: of other domains'
/// clocks; bwmon: Qualcomm's bandwidth monitor.
enum class ClockGovernor {
  performance,
  powersave,
  userspace,
  ondemand,
  schedutil,
  dmc_ondemand,
  tegra_votes,
  bwmon
};

struct OppSpec {
  Hertz clock;
  Volts voltage;

  bool operator==(const OppSpec&) const = default;
};

/// At this clock of another domain, or above, the domain has to run this fast at least.
struct ClockVoteSpec {
  std::string domain;
  Hertz from;
  Hertz clock;

  bool operator==(const ClockVoteSpec&) const = default;
};

/// While the system has this status, the domain does not go below this clock.
struct ClockFloorSpec {
  std::string status;
  Hertz clock;

  bool operator==(const ClockFloorSpec&) const = default;
};

struct ClockDomainSpec {
  std::string name;
  ClockKind kind = ClockKind::cpu;
  std::optional<std::int64_t> cluster{};  ///< of the device, whose cores it clocks
  std::int64_t cores = 1;                 ///< that it clocks; of a DRAM, channels
  std::vector<OppSpec> opps;              ///< the slowest first
  ClockGovernor governor = ClockGovernor::performance;
  std::optional<Hertz> pinned{};         ///< by userspace
  Picoseconds sampling{10'000'000'000};  ///< the governor looks so often
  std::int64_t up_threshold = 80;        ///< percent of load above which it goes to the top
  std::int64_t down_differential = 20;   ///< percent below that, down to which it stays
  std::int64_t down_samples = 16;        ///< bwmon: calm samples before it goes down
  Picoseconds switch_stall;              ///< nothing clocked by the domain works while it changes
  std::string status;                    ///< of the system, at the start
  std::vector<ClockFloorSpec> floors;
  std::vector<ClockVoteSpec> votes;
  Bytes bytes_per_clock;     ///< bwmon: of one channel
  Farads power_coefficient;  ///< what the kernel believes of a core: power = this x voltage^2 x clock

  bool operator==(const ClockDomainSpec&) const = default;
};

struct ClocksSpec {
  std::vector<ClockDomainSpec> domains;

  bool operator==(const ClocksSpec&) const = default;
};

}  // namespace kvsim::config
