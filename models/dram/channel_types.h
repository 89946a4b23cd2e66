// SPDX-License-Identifier: Apache-2.0
// What goes into a DRAM channel's controller and what comes out of it.
#pragma once

#include <cstdint>
#include <limits>

#include "models/accounting/time_account.h"
#include "models/dram/clock_timing.h"
#include "traces/record/record.h"

namespace kvsim::model {

/// Consecutive columns of one row that one request asks for: what the scheduler schedules.
struct RowRun {
  Cycle arrival = 0;       ///< at the controller, of its first line
  Cycle line_spacing = 0;  ///< between the arrivals of its lines
  std::uint32_t tag = 0;   ///< the caller's name for it, handed back when it is served
  std::uint32_t row = 0;
  std::uint16_t bank = 0;  ///< over all ranks
  std::uint16_t bursts = 1;
  trace::Access access = trace::Access::read;
  bool masked = false;        ///< a write of parts of a burst
  std::uint8_t priority = 0;  ///< 3 goes first
  std::uint16_t pieces = 1;   ///< requests that it stands for, each of as many bursts: places in the queue
  std::uint32_t column = 0;   ///< of its first burst
};

enum class RowState : std::uint8_t { hit, miss, conflict };

/// One scheduling decision's column commands: `bursts` of them, `spacing` apart.
struct Served {
  std::uint32_t tag = 0;
  std::uint16_t bursts = 0;
  std::uint16_t pieces = 0;  ///< places in the queue that became free
  std::uint16_t bank = 0;
  bool last = false;  ///< nothing of the run is left
  trace::Access access = trace::Access::read;
  RowState row_state = RowState::hit;  ///< of the first burst; the others hit
  Cycle unhindered = 0;  ///< when data would have started had the row been open and everything else free
  Cycle data_start = 0;
  Cycle data_end = 0;
  Cycle column = 0;   ///< clock of the first column command
  Cycle spacing = 0;  ///< between column commands
  Cycle arrival = 0;
  Cycle opening = 0;             ///< first command for it: its row's precharge or activate, or `column`
  Cycle activated = 0;           ///< when its row was activated; `column` for a hit
  Cycle refreshing = 0;          ///< of the time between arrival and opening, what its bank was refreshing
  Cycle ready = 0;               ///< when its bank would have let the column command go,
  Owner row_owner = Owner::row;  ///< and who made that as late as it is
  Owner held_by = Owner::queue;  ///< constraint that data_start waited for last
  /// If an older request still waits: when its data would have started unhindered, and what holds it.
  Cycle older_unhindered = kNoOlder;
  Owner older_held_by = Owner::queue;
  static constexpr Cycle kNoOlder = std::numeric_limits<Cycle>::max();
};

/// What one channel did, in column commands and data bus cycles.
struct ChannelCounters {
  std::int64_t reads = 0;
  std::int64_t writes = 0;
  std::int64_t activates = 0;
  std::int64_t row_misses = 0;
  std::int64_t row_conflicts = 0;
  std::int64_t refreshes = 0;

  ChannelCounters& operator+=(const ChannelCounters& other) {
    reads += other.reads;
    writes += other.writes;
    activates += other.activates;
    row_misses += other.row_misses;
    row_conflicts += other.row_conflicts;
    refreshes += other.refreshes;
    return *this;
  }
};

/// Column commands of one bank by what they found.
struct BankCounters {
  std::int64_t hits = 0;
  std::int64_t misses = 0;
  std::int64_t conflicts = 0;
};

}  // namespace kvsim::model
