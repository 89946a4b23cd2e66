// SPDX-License-Identifier: Apache-2.0
// One DRAM channel: banks, queues and the scheduler that turns row runs into commands. Plain C++: time is an
// argument.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "configs/spec/dram_spec.h"
#include "models/dram/channel_types.h"
#include "models/dram/clock_timing.h"
#include "models/dram/command.h"
#include "models/dram/energy.h"
#include "models/dram/fifo.h"

namespace kvsim::model {

/// FR-FCFS controller of one channel with its banks. Commands are decided one after the other in the order of
/// their clock; a decision's time may lie before the last arrival as long as no command lies between. Each
/// bank's next command is worked out when its state or queue changes; a decision takes the earliest of them.
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

  /// From now on a run joins a queued one of its row, direction and size, if there is one; whose tag it was
  /// is no longer told.
  void join_runs() { joins_ = true; }
  /// Does what ranks do by themselves up to `time`, if nothing is queued; else that is up to date, but for
  /// what comes before the next step(). Precondition: nothing that arrives by `time` is added later.
  void idle_until(Cycle time);
  /// What cost energy so far, with the time of all ranks up to `until`.
  [[nodiscard]] DramActivity activity(Cycle until) const;
  /// Last edge of the last command.
  [[nodiscard]] Cycle last_command() const { return command_bus_free_; }

  [[nodiscard]] const ChannelCounters& counters() const { return counters_; }
  [[nodiscard]] BankCounters bank_counters(std::uint16_t bank) const { return banks_[bank].counters; }
  /// Records every command from now on into `log` (not owned; null stops it).
  void log_commands(std::vector<IssuedCommand>* log) { log_ = log; }

 private:
  static constexpr std::uint16_t kNone = std::numeric_limits<std::uint16_t>::max();
  static constexpr std::uint32_t kClosed = std::numeric_limits<std::uint32_t>::max();
  static constexpr Cycle kLongAgo = -1'000'000;
  static constexpr std::size_t kMaxBanks = 64;
  static constexpr std::size_t kPriorities = 4;
  static constexpr std::size_t kMaxRanks = 8;

  /// Commands for a request, by what bounds them.
  enum class Kind : std::uint8_t { read, write, masked_write, activate, precharge };
  static constexpr std::size_t kKinds = 5;

  struct Entry {
    RowRun run;
    std::uint16_t next = kNone;  ///< in its bank's list, by age
    std::uint16_t previous = kNone;
    std::int64_t number = 0;       ///< counts up in the order of arrival
    std::int64_t last_number = 0;  ///< of its youngest piece
    RowState row_state = RowState::hit;
    std::uint16_t piece_bursts = 1;  ///< of each of its pieces, before the first was begun
    Cycle last_arrival = 0;          ///< of its youngest piece
    Cycle opening = 0;
    Cycle activated = 0;
  };

  /// A bank's next command for one list, apart from what the rank and the buses let it.
  struct Next {
    Cycle ready = 0;
    Cycle arrival = 0;
    std::int64_t number = 0;  ///< of its entry
    std::uint16_t entry = kNone;
    Kind kind = Kind::activate;
    std::uint8_t urgency = 0;  ///< of its entry, if any request has a priority
  };

  struct BankState {
    std::uint32_t open_row = kClosed;
    bool refreshed = false;                      ///< and not opened since
    std::uint32_t row_before_refresh = kClosed;  ///< that refresh closed
    Owner column_owner = Owner::row;             ///< who made column_ok as late as it is
    Cycle activate_ok = 0;
    Cycle column_ok = 0;
    Cycle masked_ok = 0;
    Cycle precharge_ok = 0;
    Cycle written = 0;  ///< end of the last write's recovery
    Cycle last_column = 0;
    Cycle refresh_start = 0;
    Cycle refresh_end = 0;
    std::int64_t queued = 0;
    // Queued runs by list, and where the search for the next hit begins: none before it hits.
    std::array<std::uint16_t, 2> head{kNone, kNone};
    std::array<std::uint16_t, 2> tail{kNone, kNone};
    std::array<std::uint16_t, 2> search{kNone, kNone};
    BankCounters counters;
  };

  enum class Power : std::uint8_t { up, power_down, self_refresh };

  struct RankState {
    std::array<Cycle, 4> activates{kLongAgo, kLongAgo, kLongAgo, kLongAgo};  ///< the last four, a ring
    unsigned oldest = 0;
    Cycle last_write = kLongAgo;
    Cycle last_precharge = kLongAgo;
    Cycle refresh_due = 0;
    std::uint16_t refresh_bank = 0;  ///< first of those next in turn for per-bank refresh, within the rank
    Cycle bank_refresh_ok = 0;       ///< earliest next per-bank refresh,
    Cycle after_bank_refresh = kLongAgo;  ///< and activate of another bank
    Power power = Power::up;
    Cycle power_since = 0;
    std::int64_t owed_refreshes = 0;  ///< before the next self-refresh
    Cycle last_use = 0;               ///< end of the last data,
    Cycle quiet = 0;                  ///< and of everything that a command set going
    RankBackground background;
  };

  struct Candidate {
    Cycle time = kNever;
    Command command = Command::activate;
    std::uint16_t entry = kNone;
    std::uint16_t bank = 0;
    Cycle arrival = 0;
  };

  [[nodiscard]] std::uint16_t rank_of(std::uint16_t bank) const {
    return static_cast<std::uint16_t>(bank >> rank_shift_);
  }
  [[nodiscard]] std::uint16_t group_of(std::uint16_t bank) const {
    return static_cast<std::uint16_t>(bank >> group_shift_);
  }
  [[nodiscard]] std::uint16_t first_bank(std::size_t rank) const {
    return static_cast<std::uint16_t>(rank << rank_shift_);
  }
  /// Reads and writes have a list each, unless they share the banks' queues.
  [[nodiscard]] unsigned list_of(trace::Access access) const {
    return pooled_ || access == trace::Access::read ? 0 : 1;
  }
  [[nodiscard]] bool has_room(const RowRun& run) const {
    return pooled_ ? banks_[run.bank].queued < spec_.read_queue
                   : queued_[list_of(run.access)] <
                         (run.access == trace::Access::read ? spec_.read_queue : spec_.write_queue);
  }

  // Queues (channel_queue.cpp).
  void wake_for_arrivals();
  void wake_at(Cycle arrival);
  void ingest();

  void enqueue(const RowRun& run);
  [[nodiscard]] bool join(const RowRun& run);
  void link(std::uint16_t entry);
  void remove(std::uint16_t entry);
  void touch(std::uint16_t bank);

  // The choice of the next command (channel_plan.cpp).
  void plan();
  [[nodiscard]] unsigned choose_list();
  void plan_banks(unsigned list);
  void select(unsigned list);
  void plan_bank(std::uint16_t bank, unsigned list);
  [[nodiscard]] bool can_wait(const Candidate& c, unsigned list) const;
  [[nodiscard]] bool is_followed(const Candidate& c, unsigned list) const;
  [[nodiscard]] Candidate candidate(std::uint16_t bank, unsigned list) const;
  [[nodiscard]] std::uint16_t choose_run(BankState& bank, unsigned list);
  [[nodiscard]] std::uint16_t oldest_hit(BankState& bank, unsigned list);
  [[nodiscard]] bool prefers() const { return waiting_lists_ > 2; }
  [[nodiscard]] bool writes_are_urgent() const;
  [[nodiscard]] std::uint8_t most_urgent_burst(unsigned list) const;
  [[nodiscard]] std::uint8_t urgency(const RowRun& run) const;
  [[nodiscard]] std::uint16_t most_urgent(const BankState& bank, unsigned list);
  void offer(const Candidate& candidate);
  [[nodiscard]] Cycle earliest(const Next& next, std::uint16_t bank) const {
    const auto kind = static_cast<std::size_t>(next.kind);
    return std::max(std::max(next.ready, bounds_[kind][group_of(bank)]), command_bus_free_ + length_[kind]);
  }
  [[nodiscard]] std::uint16_t train_length(const Candidate& c, Cycle spacing) const;
  [[nodiscard]] Cycle older_row_ready(const Candidate& c) const;
  [[nodiscard]] std::uint16_t whole_pieces(const Entry& entry, std::uint16_t bursts) const;
  [[nodiscard]] std::uint16_t bursts_at(const RowRun& run, Cycle time) const;
  [[nodiscard]] bool other_group_is_ready(std::uint16_t bank, unsigned list, Cycle time) const;

  // What happens to ranks by themselves: refresh, power-down, closing of idle rows (channel_upkeep.cpp).
  void plan_upkeep();
  void plan_refresh(std::uint16_t rank);
  void plan_power(std::uint16_t rank, Cycle wanted);
  void plan_timeouts();
  void set_limits(std::uint16_t rank);
  [[nodiscard]] Cycle forced_refresh(const RankState& rank) const;
  [[nodiscard]] Cycle oldest_arrival(std::uint16_t rank) const;
  [[nodiscard]] bool any_open(std::uint16_t rank) const;
  [[nodiscard]] bool is_hit_queued(std::uint16_t bank, Cycle time) const;
  void issue_refresh(const Candidate& c);
  void issue_power(const Candidate& c);
  void hold(std::uint16_t rank, Cycle until);

  // Issuing (channel.cpp).
  void issue_other(const Candidate& c);  ///< what moves no data and opens no row
  void take_command_bus(Cycle time, bool activate = false);
  void issue_row(const Candidate& c);
  void issue_activate(const Candidate& c);
  void issue_column(const Candidate& c, Served& served);
  void describe(const Candidate& c, Served& served) const;
  void note_older(const Entry& entry, Served& served) const;
  void move_data(const Candidate& c, const Served& served);
  void settle_row(const Candidate& c, const Served& served);
  void close(std::uint16_t bank, Cycle precharge, Cycle tRP);
  void record(Cycle clock, Command command, std::uint16_t bank, std::uint32_t row, std::uint32_t column = 0);
  void update_column_bounds();
  void update_activate_bounds(std::uint16_t rank);
  void update_precharge_bounds(std::uint16_t rank);

  ClockTiming t_;
  CommandClock clock_;
  config::MemoryControllerSpec spec_;
  bool pooled_;  ///< each bank has a queue of its own, for reads and writes
  std::uint16_t banks_per_rank_;
  std::uint16_t refresh_sets_;  ///< of banks that a per-bank refresh takes together; each has every so manyth
  std::uint16_t groups_;        ///< of all ranks
  std::uint16_t groups_per_rank_;
  int rank_shift_;
  int group_shift_;
  std::uint16_t max_bursts_;
  std::uint16_t bursts_per_line_;
  std::uint32_t columns_per_burst_;
  bool joins_ = false;
  bool timers_;  ///< something happens by idle time
  Cycle age_cap_;
  Cycle page_timeout_;
  Cycle patience_;             ///< for which a burst waits for a more urgent one
  Cycle refresh_interval_;     ///< between refresh commands of a rank
  Cycle power_down_ = kNever;  ///< idle time until it
  Cycle self_refresh_ = kNever;
  std::array<Cycle, kKinds> length_{};  ///< command bus cycles
  Cycle row_length_;                    ///< of commands for a rank

  std::vector<Entry> entries_;
  std::vector<std::uint16_t> free_;
  std::array<std::int64_t, 2> queued_{};                           ///< by list, in pieces,
  std::array<std::array<std::int64_t, kPriorities>, 2> urgent_{};  ///< and by priority
  std::array<std::uint64_t, 2> pending_banks_{};                   ///< bit per bank with queued runs
  std::array<std::uint64_t, 2> stale_{};  ///< bit per bank whose next command must be worked out anew
  /// Arrived or on their way, no queue slot yet; by list and priority, which take turns in it.
  std::array<Fifo<RowRun>, 2 * kPriorities> waiting_;
  std::size_t waiting_lists_ = 2;  ///< of these, those in use: two for each priority up to the highest one
  bool draining_writes_ = false;
  std::int64_t accepted_ = 0;  ///< entries so far

  std::vector<BankState> banks_;
  std::vector<RankState> ranks_;
  std::array<std::array<Next, kMaxBanks>, 2> next_{};
  std::array<Cycle, 2> recheck_{kNever, kNever};  ///< after this, next commands change by time alone
  std::array<Cycle, kMaxBanks> limit_{};          ///< a refresh claims the bank from here on
  std::array<std::array<Cycle, kMaxBanks>, kKinds> bounds_{};  ///< earliest clocks by kind and bank group,
  std::array<std::array<Cycle, kMaxBanks>, 2> turned_{};       ///< and of these what the bus's turning asks
  std::array<Cycle, kMaxBanks> last_read_in_group_{};
  std::array<Cycle, kMaxBanks> last_write_in_group_{};
  std::array<Cycle, kMaxBanks> last_activate_in_group_{};
  Cycle upkeep_due_ = kNever;  ///< earliest refresh

  Cycle command_bus_free_ = 0;     ///< last edge of the last command
  bool split_activate_;            ///< ACT is two commands with others between
  std::uint64_t bus_history_ = 0;  ///< bit per clock in use before command_bus_free_, that one first
  Cycle data_end_ = 0;
  Cycle bus_decision_ = kLongAgo;  ///< before this no command's data could come first on the bus
  Cycle last_column_ = kLongAgo;
  trace::Access last_access_ = trace::Access::read;
  std::uint16_t last_column_bank_ = 0;

  Candidate best_;
  bool planned_ = false;  ///< best_ is the next decision, unless something arrives that can go before
  Cycle next_time_ = kNever;
  ChannelCounters counters_;
  std::vector<IssuedCommand>* log_ = nullptr;
};

}  // namespace kvsim::model
