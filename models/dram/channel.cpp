// SPDX-License-Identifier: Apache-2.0
#include "models/dram/channel.h"

#include <algorithm>
#include <bit>

#include "configs/error/error.h"
#include "configs/spec/dram_temperature.h"

namespace kvsim::model {

using config::PagePolicy;
using config::RefreshMode;
using trace::Access;

namespace {

/// The part as it is at the controller's temperature.
config::DramPartSpec at_temperature(config::DramPartSpec part, Celsius temperature) {
  part.timing = config::timing_at(part, temperature);
  return part;
}

}  // namespace

ChannelController::ChannelController(const config::DramPartSpec& part,
                                     const config::MemoryControllerSpec& controller, std::uint16_t max_bursts)
    : t_(clock_timing(at_temperature(part, controller.temperature), controller.turnaround)),
      clock_(command_clock(part)),
      spec_(controller),
      pooled_(controller.queue == config::QueueKind::bank),
      banks_per_rank_(static_cast<std::uint16_t>(part.banks)),
      refresh_sets_(
          static_cast<std::uint16_t>(controller.refresh == RefreshMode::per_bank ? refresh_sets(part) : 1)),
      groups_(static_cast<std::uint16_t>(part.bank_groups * controller.ranks)),
      groups_per_rank_(static_cast<std::uint16_t>(part.bank_groups)),
      rank_shift_(std::countr_zero(static_cast<std::uint64_t>(part.banks))),
      group_shift_(std::countr_zero(static_cast<std::uint64_t>(part.banks / part.bank_groups))),
      max_bursts_(max_bursts),
      bursts_per_line_(static_cast<std::uint16_t>(std::max<std::int64_t>(1, 64 / burst_bytes(part).count()))),
      columns_per_burst_(static_cast<std::uint32_t>(part.burst_length)),
      timers_(controller.page_policy == PagePolicy::adaptive || controller.power_down ||
              controller.self_refresh),
      banks_(static_cast<std::size_t>(part.banks * controller.ranks)),
      ranks_(static_cast<std::size_t>(controller.ranks)) {
  check(banks_.size() <= kMaxBanks && ranks_.size() <= kMaxRanks,
        "a channel has at most 64 banks in 8 ranks");
  age_cap_ = clock_.cycles(controller.age_cap);
  page_timeout_ =
      controller.page_policy == PagePolicy::adaptive ? clock_.cycles(controller.page_timeout) : kNever;
  patience_ = t_.rank_switch + t_.tCCD_L;
  power_down_ = controller.power_down ? clock_.cycles(*controller.power_down) : kNever;
  if (controller.self_refresh && controller.refresh != RefreshMode::none) {
    self_refresh_ = clock_.cycles(*controller.self_refresh);
  }
  const auto interval =
      static_cast<Cycle>(static_cast<double>(t_.tREFI) / config::refresh_rate(part, controller.temperature));
  refresh_interval_ =
      controller.refresh == RefreshMode::per_bank ? interval / bank_refreshes(part) : interval;
  const CommandLengths length = command_lengths(part.standard);
  length_ = {length.column, length.column, length.column, length.activate, length.other};
  row_length_ = length.other;
  split_activate_ = length.split_activate;
  last_read_in_group_.fill(kLongAgo);
  last_write_in_group_.fill(kLongAgo);
  last_activate_in_group_.fill(kLongAgo);

  // Ranks refresh in turn, so that they do not stand still together.
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const auto share = static_cast<Cycle>(r + 1);
    ranks_[r].refresh_due = controller.refresh == RefreshMode::none
                                ? kNever
                                : refresh_interval_ * share / static_cast<Cycle>(ranks_.size());
  }
  update_column_bounds();
  for (std::uint16_t r = 0; r < ranks_.size(); ++r) {
    update_activate_bounds(r);
    update_precharge_bounds(r);
    set_limits(r);
  }
}

bool ChannelController::step(Served& served) {
  ingest();
  if (!planned_) {
    plan();
  }
  if (best_.time > next_time_) {
    next_time_ = best_.time;
    wake_for_arrivals();
    return false;
  }
  check(best_.time != kNever, "a decision is due");
  planned_ = false;
  const Candidate chosen = best_;
  if (is_read(chosen.command) || is_write(chosen.command)) {
    issue_column(chosen, served);
    // What comes next is decided when the bus is nearly free, with all that has arrived by then.
    next_time_ = (pending_banks_[0] | pending_banks_[1]) != 0 ? bus_decision_ : kNever;
    wake_for_arrivals();
    return true;
  }
  if (chosen.command == Command::activate) {
    issue_activate(chosen);
  } else {
    issue_other(chosen);
  }
  plan();
  next_time_ = best_.time;
  wake_for_arrivals();
  return false;
}

void ChannelController::issue_other(const Candidate& c) {
  if (c.command == Command::precharge || c.command == Command::precharge_all) {
    issue_row(c);
  } else if (c.command == Command::refresh_all || c.command == Command::refresh_bank) {
    issue_refresh(c);
  } else {
    issue_power(c);
  }
}

void ChannelController::idle_until(Cycle time) {
  if ((pending_banks_[0] | pending_banks_[1]) != 0) {
    return;
  }
  for (plan(); best_.time <= time; plan()) {
    issue_other(best_);
  }
  planned_ = false;
}

DramActivity ChannelController::activity(Cycle until) const {
  const bool all = spec_.refresh == RefreshMode::all_bank;
  DramActivity sum{.activates = counters_.activates,
                   .reads = counters_.reads,
                   .writes = counters_.writes,
                   .refreshes_all = all ? counters_.refreshes : 0,
                   .refreshes_bank = all ? 0 : counters_.refreshes};
  for (const RankState& rank : ranks_) {
    const BackgroundTimes times = rank.background.times(until);
    for (std::size_t i = 0; i < kBackgrounds; ++i) {
      sum.background[i] += clock_.time(times[i]);
    }
  }
  return sum;
}

// --- issuing
// ----------------------------------------------------------------------------------------------------

void ChannelController::record(Cycle clock, Command command, std::uint16_t bank, std::uint32_t row,
                               std::uint32_t column) {
  if (log_ != nullptr) {
    log_->push_back({.clock = clock, .command = command, .bank = bank, .row = row, .column = column});
  }
}

/// LPDDR5's ACT-1 takes a clock that was left free up to tAAD before its ACT-2 (JESD209-5: eight clocks). The
/// earliest one, as that serves the fewest of those to come.
void ChannelController::take_command_bus(Cycle time, bool activate) {
  if (split_activate_) {
    constexpr std::uint64_t kWindow = 0x1FE;  // one to eight clocks before
    const Cycle passed = time - command_bus_free_;
    bus_history_ = (passed < 64 ? bus_history_ << passed : 0) | 1;
    if (activate) {
      bus_history_ |= std::bit_floor(~bus_history_ & kWindow);
    }
    // The next clock may take an ACT-2 if one of those before it is free for its ACT-1.
    length_[static_cast<std::size_t>(Kind::activate)] = (~bus_history_ & (kWindow >> 1)) != 0 ? 1 : 2;
  }
  command_bus_free_ = time;
}

void ChannelController::close(std::uint16_t bank_index, Cycle precharge, Cycle tRP) {
  BankState& bank = banks_[bank_index];
  RankState& rank = ranks_[rank_of(bank_index)];
  if (bank.open_row != kClosed) {
    rank.background.close(precharge);
  }
  bank.open_row = kClosed;
  bank.activate_ok = std::max(bank.activate_ok, precharge + tRP);
  rank.quiet = std::max(rank.quiet, precharge + tRP);
  touch(bank_index);
}

/// PRE and PREA.
void ChannelController::issue_row(const Candidate& c) {
  take_command_bus(c.time);
  const std::uint16_t rank_index = rank_of(c.bank);
  RankState& rank = ranks_[rank_index];
  const bool for_refresh = rank.refresh_due <= c.time;
  rank.last_precharge = c.time;
  update_precharge_bounds(rank_index);
  record(c.time, c.command, c.bank, 0);
  if (c.command == Command::precharge_all) {
    const std::uint16_t first = first_bank(rank_index);
    for (std::uint16_t b = first; b < first + banks_per_rank_; ++b) {
      banks_[b].row_before_refresh = for_refresh ? banks_[b].open_row : kClosed;
      close(b, c.time, t_.tRPab);
    }
    return;
  }
  BankState& bank = banks_[c.bank];
  bank.row_before_refresh = c.entry == kNone && for_refresh ? bank.open_row : kClosed;
  close(c.bank, c.time, t_.tRPpb);
  if (c.entry != kNone) {
    entries_[c.entry].row_state = RowState::conflict;
    entries_[c.entry].opening = c.time;
  }
}

void ChannelController::issue_activate(const Candidate& c) {
  take_command_bus(c.time, true);
  BankState& bank = banks_[c.bank];
  Entry& entry = entries_[c.entry];
  if (entry.row_state == RowState::hit) {
    entry.row_state = RowState::miss;
    entry.opening = c.time;
  }
  entry.activated = c.time;
  bank.open_row = entry.run.row;
  bank.column_ok = bank.masked_ok = c.time + t_.tRCD;
  bank.precharge_ok = c.time + t_.tRAS;
  bank.last_column = c.time;
  const bool waited = bank.refreshed && entry.run.arrival < bank.activate_ok;
  const bool opens_again = bank.row_before_refresh == entry.run.row;
  bank.column_owner = waited || opens_again ? Owner::refresh : Owner::row;
  bank.refreshed = false;
  bank.row_before_refresh = kClosed;
  const std::uint16_t rank_index = rank_of(c.bank);
  RankState& rank = ranks_[rank_index];
  rank.background.open(c.time);
  rank.activates[rank.oldest] = c.time;
  rank.oldest = (rank.oldest + 1) % 4;
  rank.quiet = std::max(rank.quiet, bank.precharge_ok);
  last_activate_in_group_[group_of(c.bank)] = c.time;
  update_activate_bounds(rank_index);
  touch(c.bank);
  ++counters_.activates;
  record(c.time, c.command, c.bank, entry.run.row);
}

void ChannelController::issue_column(const Candidate& c, Served& served) {
  describe(c, served);
  move_data(c, served);
  settle_row(c, served);
  if (log_ != nullptr) {
    const bool closes = banks_[c.bank].open_row == kClosed;
    std::uint32_t column = entries_[c.entry].run.column;
    for (int i = 0; i < served.bursts; ++i, column += columns_per_burst_) {
      const Command command = !closes || i + 1 < served.bursts ? c.command
                              : is_read(c.command)             ? Command::read_auto_precharge
                                                               : Command::write_auto_precharge;
      record(c.time + i * served.spacing, command, c.bank, 0, column);
    }
  }
  Entry& entry = entries_[c.entry];
  RowRun& run = entry.run;
  entry.row_state = RowState::hit;
  if (joins_) {  // the pieces of a run came one after the other
    run.arrival += (entry.last_arrival - run.arrival) * served.bursts / run.bursts;
    entry.number += (entry.last_number - entry.number) * served.bursts / run.bursts;
  }
  run.bursts = static_cast<std::uint16_t>(run.bursts - served.bursts);
  run.column += served.bursts * columns_per_burst_;
  run.pieces = static_cast<std::uint16_t>(run.pieces - served.pieces);
  if (run.line_spacing != 0 && run.bursts % bursts_per_line_ == 0) {
    run.arrival += run.line_spacing * std::max(1, served.bursts / bursts_per_line_);
  }
  queued_[list_of(run.access)] -= served.pieces;
  urgent_[list_of(run.access)][run.priority] -= served.pieces;
  banks_[c.bank].queued -= served.pieces;
  if (served.last) {
    remove(c.entry);
  }
  stale_[0] |= std::uint64_t{1} << c.bank;
  stale_[1] |= std::uint64_t{1} << c.bank;
}

void ChannelController::describe(const Candidate& c, Served& served) const {
  const Entry& entry = entries_[c.entry];
  const RowRun& run = entry.run;
  const BankState& bank = banks_[c.bank];
  const bool read = run.access == Access::read;
  const bool grouped = groups_per_rank_ > 1;
  const Cycle latency = read ? t_.read_latency : t_.write_latency;
  served.spacing = !grouped ? t_.tCCD : read ? t_.tCCD_L : t_.tCCD_L_WR;
  served.spacing = run.masked ? std::max(served.spacing, t_.tCCDMW) : served.spacing;
  served.bursts = train_length(c, served.spacing);
  served.tag = run.tag;
  served.bank = c.bank;
  served.access = run.access;
  served.last = served.bursts == run.bursts;
  const int left = run.bursts - served.bursts;
  served.pieces = static_cast<std::uint16_t>(run.pieces == 1 ? (left == 0 ? 1 : 0)
                                                             : run.pieces - (left + entry.piece_bursts - 1) /
                                                                                entry.piece_bursts);

  served.row_state = entry.row_state;
  served.column = c.time;
  served.arrival = run.arrival;
  served.unhindered = run.arrival + latency;
  served.data_start = c.time + latency;
  served.data_end = c.time + (served.bursts - 1) * served.spacing + latency + t_.burst;
  const bool hit = entry.row_state == RowState::hit;
  served.opening = hit ? c.time : entry.opening;
  served.activated = hit ? c.time : entry.activated;
  served.refreshing = std::max<Cycle>(
      0, std::min(served.opening, bank.refresh_end) - std::max(run.arrival, bank.refresh_start));
  served.ready = run.masked ? bank.masked_ok : bank.column_ok;
  served.row_owner = bank.column_owner;
  const Cycle turned = turned_[read ? 0 : 1][group_of(c.bank)];
  served.held_by = turned == c.time           ? Owner::turnaround
                   : bank.column_ok == c.time ? bank.column_owner
                                              : Owner::queue;
  served.older_unhindered = Served::kNoOlder;
  if (served.data_start > data_end_) {  // the bus stood idle
    note_older(entry, served);
  }
}

/// The oldest request of the same direction, if it waits longer than `entry`, which is served: its bank is
/// not ready.
void ChannelController::note_older(const Entry& entry, Served& served) const {
  const unsigned list = list_of(entry.run.access);
  std::int64_t oldest = entry.number;
  for (std::uint64_t pending = pending_banks_[list]; pending != 0; pending &= pending - 1) {
    const BankState& bank = banks_[static_cast<std::size_t>(std::countr_zero(pending))];
    const Entry& first = entries_[bank.head[list]];
    if (first.number < oldest) {
      oldest = first.number;
      const bool read = first.run.access == Access::read;
      served.older_unhindered = first.run.arrival + (read ? t_.read_latency : t_.write_latency);
      served.older_held_by = bank.refreshed ? Owner::refresh : Owner::row;
    }
  }
}

/// The data bus, the rank and the counters.
void ChannelController::move_data(const Candidate& c, const Served& served) {
  const bool read = served.access == Access::read;
  const Cycle last = c.time + (served.bursts - 1) * served.spacing;
  RankState& rank = ranks_[rank_of(c.bank)];
  take_command_bus(c.time);  // row commands slip in between the bursts of a train
  data_end_ = served.data_end;
  bus_decision_ = data_end_ - std::max(t_.read_latency, t_.write_latency);
  last_column_ = last;
  last_access_ = served.access;
  last_column_bank_ = c.bank;
  (read ? last_read_in_group_ : last_write_in_group_)[group_of(c.bank)] = last;
  rank.last_write = read ? rank.last_write : last;
  rank.last_use = served.data_end;
  update_column_bounds();

  BankCounters& bank = banks_[c.bank].counters;
  const bool miss = served.row_state == RowState::miss;
  const bool conflict = served.row_state == RowState::conflict;
  (read ? counters_.reads : counters_.writes) += served.bursts;
  counters_.row_misses += miss;
  counters_.row_conflicts += conflict;
  bank.misses += miss;
  bank.conflicts += conflict;
  bank.hits += served.bursts - (miss || conflict);
}

/// When the bank's row can be closed; with the closed page policy it closes by itself after the last hit.
void ChannelController::settle_row(const Candidate& c, const Served& served) {
  BankState& bank = banks_[c.bank];
  const bool read = served.access == Access::read;
  const Cycle last = c.time + (served.bursts - 1) * served.spacing;
  bank.last_column = last;
  bank.precharge_ok =
      std::max(bank.precharge_ok, last + (read ? t_.read_to_precharge : t_.write_to_precharge));
  if (!read) {
    bank.masked_ok = std::max(bank.masked_ok, last + t_.tCCDMW);
    bank.written = last + t_.write_to_precharge;
  }
  RankState& rank = ranks_[rank_of(c.bank)];
  rank.quiet = std::max({rank.quiet, bank.precharge_ok, served.data_end + 1});
  if (spec_.page_policy != PagePolicy::closed || !served.last || c.command == Command::masked_write) {
    return;
  }
  if (read && bank.written > last + t_.read_to_precharge) {
    return;  // a read that closes its row has to wait for the write before it
  }
  const std::uint16_t entry = c.entry;
  const std::uint32_t row = bank.open_row;
  for (const unsigned list : {0U, 1U}) {
    for (std::uint16_t i = bank.head[list]; i != kNone; i = entries_[i].next) {
      if (i != entry && entries_[i].run.row == row) {
        return;
      }
    }
  }
  close(c.bank, bank.precharge_ok, t_.tRPpb);
}

}  // namespace kvsim::model
