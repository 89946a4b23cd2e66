// SPDX-License-Identifier: Apache-2.0
// One DRAM channel: banks, queues and the scheduler that turns row runs into commands. Plain C++: time is an
// argument.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "configs/spec/dram_spec.h"
#include "configs/units/index.h"
#include "models/accounting/time_account.h"
#include "models/dram/clock_timing.h"
#include "models/dram/fifo.h"
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
};

enum class RowState : std::uint8_t { hit, miss, conflict };

/// One scheduling decision's column commands: `bursts` back to back.
struct Served {
  std::uint32_t tag = 0;
  std::uint16_t bursts = 0;
  bool last = false;  ///< nothing of the run is left
  trace::Access access = trace::Access::read;
  RowState row_state = RowState::hit;  ///< of the first burst; the others hit
  Cycle unhindered = 0;  ///< when data would have started had the row been open and everything else free
  Cycle data_start = 0;
  Cycle data_end = 0;
  Owner held_by = Owner::queue;  ///< constraint that data_start waited for last
  Cycle bank_ready = 0;  ///< data could have started for all that the bank needed: its row open, no refresh
  Owner bank_owner = Owner::row;  ///< what the bank needed last
  /// If an older request still waits: when its data would have started unhindered, and what holds it.
  Cycle older_unhindered = kNoOlder;
  Owner older_held_by = Owner::queue;
  static constexpr Cycle kNoOlder = std::numeric_limits<Cycle>::max();
};

enum class Command : std::uint8_t {
  activate,
  precharge,
  precharge_all,
  read,
  write,
  refresh_bank,
  refresh_all
};

/// A command on the bus, for the command trace and the legality checks. `clock` is the command's last edge.
struct IssuedCommand {
  Cycle clock = 0;
  Command command = Command::activate;
  std::uint16_t bank = 0;  ///< over all ranks
  std::uint32_t row = 0;
};

/// What one channel did, in column commands and data bus cycles.
struct ChannelCounters {
  std::int64_t reads = 0;
  std::int64_t writes = 0;
  std::int64_t activates = 0;
  std::int64_t row_misses = 0;
  std::int64_t row_conflicts = 0;
  std::int64_t refreshes = 0;
};

/// FR-FCFS controller of one channel with its banks. Commands are decided one after the other in the order of
/// their clock; a decision's time may lie before the last arrival as long as no command lies between.
class ChannelController {
 public:
  /// `max_bursts` is how many bursts of a run one decision may issue: 1 schedules every burst by itself.
  ChannelController(const config::DramPartSpec& part, const config::MemoryControllerSpec& controller,
                    std::uint16_t max_bursts);

  static constexpr Cycle kNever = std::numeric_limits<Cycle>::max();

  /// Adds a run. Precondition: it does not arrive before a decision that was made.
  void add(const RowRun& run);
  /// When step() has something to do; kNever if nothing is queued.
  [[nodiscard]] Cycle next_time() const { return next_time_; }
  /// Decides at most one command. True if it was a column command, described in `served`.
  bool step(Served& served);

  [[nodiscard]] const ChannelCounters& counters() const { return counters_; }
  /// Records every command from now on into `log` (not owned; null stops it).
  void log_commands(std::vector<IssuedCommand>* log) { log_ = log; }

 private:
  static constexpr std::uint16_t kNone = std::numeric_limits<std::uint16_t>::max();
  static constexpr std::uint32_t kClosed = std::numeric_limits<std::uint32_t>::max();
  static constexpr Cycle kLongAgo = -1'000'000;

  struct Entry {
    RowRun run;
    std::uint16_t next = kNone;  ///< in its bank's list, by age
    std::int64_t age = 0;        ///< counts up in the order of arrival
    RowState row_state = RowState::hit;
  };

  struct BankState {
    std::uint32_t open_row = kClosed;
    bool refreshed = false;                      ///< and not opened since
    std::uint32_t row_before_refresh = kClosed;  ///< that refresh closed
    Owner column_owner = Owner::row;             ///< who made column_ok as late as it is
    Cycle activate_ok = 0;
    Cycle column_ok = 0;
    Cycle precharge_ok = 0;
    // Queued runs by access (read, write).
    std::array<std::uint16_t, 2> head{kNone, kNone};
    std::array<std::uint16_t, 2> tail{kNone, kNone};
  };

  struct RankState {
    std::array<Cycle, 4> activates{kLongAgo, kLongAgo, kLongAgo, kLongAgo};  ///< the last four, a ring
    unsigned oldest = 0;
    Cycle last_write = kLongAgo;
    Cycle refresh_due = 0;
    std::uint16_t refresh_bank = 0;  ///< next in turn for per-bank refresh, within the rank
  };

  struct Candidate {
    Cycle time = kNever;
    Command command = Command::activate;
    std::uint16_t entry = kNone;
    std::uint16_t bank = 0;
    std::int64_t age = 0;  ///< of its entry; refreshes go first
  };

  static constexpr std::size_t kMaxRanks = 4;
  /// Earliest clocks for column commands of one direction, apart from what their bank needs.
  struct ColumnBounds {
    std::array<Cycle, kMaxRanks> by_rank{};
    Cycle same_group = kLongAgo;  ///< for banks of the last command's bank group
  };

  [[nodiscard]] std::uint16_t rank_of(std::uint16_t bank) const {
    return static_cast<std::uint16_t>(bank >> rank_shift_);
  }
  [[nodiscard]] std::uint16_t group_of(std::uint16_t bank) const {
    return static_cast<std::uint16_t>(bank >> group_shift_);
  }
  [[nodiscard]] unsigned list_of(trace::Access access) const { return access == trace::Access::read ? 0 : 1; }
  [[nodiscard]] std::int64_t capacity(unsigned list) const {
    return list == 0 ? spec_.read_queue : spec_.write_queue;
  }

  void wake_for_arrivals();
  void ingest();
  bool accept(unsigned list);
  void remove(std::uint16_t entry);

  void plan();
  void plan_bank(std::uint16_t bank, unsigned list, const ColumnBounds& bounds);
  [[nodiscard]] std::uint16_t oldest_hit(const BankState& bank, unsigned list) const;
  void plan_refresh(std::uint16_t rank);
  [[nodiscard]] bool refresh_claims(std::uint16_t bank, Cycle time) const;
  void offer(const Candidate& candidate);
  [[nodiscard]] Cycle turnaround_ok(trace::Access access, std::uint16_t rank) const;
  [[nodiscard]] ColumnBounds column_bounds(trace::Access access) const;
  [[nodiscard]] std::uint16_t train_length(const RowRun& run, Cycle time, Cycle spacing) const;
  [[nodiscard]] std::uint16_t bursts_at(const RowRun& run, Cycle time) const;

  void note_older(const Entry& entry, Served& served) const;
  void issue_row(const Candidate& c);
  void issue_refresh(const Candidate& c);
  void issue_column(const Candidate& c, Served& served);
  void close(std::uint16_t bank, Cycle precharge, Cycle tRP);
  void record(Cycle clock, Command command, std::uint16_t bank, std::uint32_t row);

  ClockTiming t_;
  config::MemoryControllerSpec spec_;
  std::uint16_t banks_per_rank_;
  int rank_shift_;
  int group_shift_;
  bool has_groups_;
  std::uint16_t max_bursts_;
  std::uint16_t bursts_per_line_;
  Cycle age_cap_;
  Cycle refresh_interval_;  ///< between refresh commands of a rank
  Cycle column_command_;    ///< command bus cycles of ACT, RD and WR
  Cycle row_command_;       ///< of PRE and REF

  std::vector<Entry> entries_;
  std::vector<std::uint16_t> free_;
  std::array<std::int64_t, 2> queued_{};          ///< reads, writes
  std::array<std::uint64_t, 2> pending_banks_{};  ///< bit per bank with queued reads, writes
  std::array<Fifo<RowRun>, 2> waiting_;           ///< arrived or on their way, no queue slot yet
  bool draining_writes_ = false;

  std::vector<BankState> banks_;
  std::vector<RankState> ranks_;
  Cycle command_bus_free_ = 0;  ///< last edge of the last command
  Cycle data_end_ = 0;
  Cycle bus_decision_ = kLongAgo;  ///< before this no command's data could come first on the bus
  Cycle last_column_ = kLongAgo;
  trace::Access last_access_ = trace::Access::read;
  std::uint16_t last_column_bank_ = 0;

  std::int64_t accepted_ = 0;
  Candidate best_;
  bool planned_ = false;  ///< best_ is the next decision, unless something arrives that can go before
  Cycle next_time_ = kNever;
  ChannelCounters counters_;
  std::vector<IssuedCommand>* log_ = nullptr;
};

}  // namespace kvsim::model
