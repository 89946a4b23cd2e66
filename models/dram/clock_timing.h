// SPDX-License-Identifier: Apache-2.0
// A part's timings in clock cycles, and the spacings between commands that follow from them.
#pragma once

#include <cstdint>

#include "configs/spec/dram_spec.h"
#include "configs/units/quantity.h"

namespace kvsim::model {

/// A count or a point in time of the DRAM's command clock CK.
using Cycle = std::int64_t;

/// Converts between picoseconds and CK cycles. The period is kept in femtoseconds: 2112 MHz is 473.485 ps,
/// and rounding it to 473 ps would raise the peak bandwidth by 0.1 %.
class CommandClock {
 public:
  explicit CommandClock(Hertz frequency)
      : femtoseconds_((1'000'000'000'000'000 + frequency.count() / 2) / frequency.count()),
        cycles_per_picosecond_(1000.0 / static_cast<double>(femtoseconds_)) {}

  /// Start of a cycle, rounded down to a picosecond.
  [[nodiscard]] Picoseconds time(Cycle cycle) const { return Picoseconds(cycle * femtoseconds_ / 1000); }
  /// First cycle that starts at or after `time`.
  [[nodiscard]] Cycle cycle_at(Picoseconds time) const {
    // A product is faster than a division; it may be off by one either way.
    auto cycle = static_cast<Cycle>(time.as_double() * cycles_per_picosecond_);
    cycle += cycle * femtoseconds_ < time.count() * 1000 ? 1 : 0;
    cycle += cycle * femtoseconds_ < time.count() * 1000 ? 1 : 0;
    return cycle - ((cycle - 1) * femtoseconds_ >= time.count() * 1000 ? 1 : 0);
  }
  /// Cycles that cover `time`, as JEDEC rounds a nanosecond timing: up.
  [[nodiscard]] Cycle cycles(Picoseconds time) const { return cycle_at(time); }
  /// Whole cycles that `time` holds.
  [[nodiscard]] Cycle whole_cycles(Picoseconds time) const { return time.count() * 1000 / femtoseconds_; }

 private:
  std::int64_t femtoseconds_;
  double cycles_per_picosecond_;
};

/// Spacings in CK cycles between commands of one channel. Names follow JEDEC where JEDEC has one.
struct ClockTiming {
  Cycle burst;          ///< data bus cycles of one column command
  Cycle read_latency;   ///< RD to first beat
  Cycle write_latency;  ///< WR to first beat
  Cycle tRCD, tRPpb, tRPab, tRAS, tRRD, tRRD_L, tFAW, tCCD, tCCD_L, tCCD_L_WR;
  Cycle tCCDMW;              ///< WR to masked WR, same bank
  Cycle read_to_precharge;   ///< RD to PRE, same bank
  Cycle write_to_precharge;  ///< WR to PRE, same bank
  Cycle read_to_write;       ///< RD to WR: the bus turns round
  Cycle write_to_read;       ///< WR to RD, same rank
  Cycle write_to_read_L;     ///< WR to RD, same bank group
  Cycle rank_switch;         ///< gap on the data bus when the rank changes
  Cycle tPPD;                ///< PRE to PRE, same rank
  Cycle tRFCab, tRFCpb;
  Cycle tpbR2pbR;          ///< REFpb to REFpb of another bank of the rank
  Cycle tpbR2act;          ///< REFpb to ACT of another bank of the rank
  bool refresh_activates;  ///< REFpb counts as an activate in tFAW (JESD209-3, -4)
  Cycle tREFI;             ///< between all-bank refreshes of a rank, rounded down
  Cycle tCKE, tXP, tSR, tXSR;
};

/// CK cycles that commands take on the command bus.
struct CommandLengths {
  Cycle activate;
  Cycle column;         ///< RD, WR, MWR
  Cycle other;          ///< PRE, REF, power-down and self-refresh entry
  bool split_activate;  ///< ACT is two commands, ACT-1 and ACT-2, which may have others between
};
[[nodiscard]] CommandLengths command_lengths(config::DramStandard standard);

/// Timings of `part`. With `turnaround` false the data bus changes direction and rank at no cost (what-if
/// runs).
[[nodiscard]] ClockTiming clock_timing(const config::DramPartSpec& part, bool turnaround);

}  // namespace kvsim::model
