// SPDX-License-Identifier: Apache-2.0
#include "models/dram/channel.h"

#include <algorithm>
#include <bit>

#include "configs/error/error.h"

namespace kvsim::model {

using config::RefreshMode;
using trace::Access;

namespace {

/// Command bus cycles: LPDDR4's ACT, RD and WR are two two-cycle commands (JESD209-4), LPDDR5's take two edges of CK
/// each (JESD209-5).
Cycle column_command_cycles(config::DramStandard standard) {
  return standard == config::DramStandard::lpddr5 ? 2 : 4;
}
Cycle row_command_cycles(config::DramStandard standard) {
  return standard == config::DramStandard::lpddr5 ? 1 : 2;
}

}  // namespace

ChannelController::ChannelController(const config::DramPartSpec& part,
                                     const config::MemoryControllerSpec& controller, std::uint16_t max_bursts)
    : t_(clock_timing(part, controller.turnaround)),
      spec_(controller),
      banks_per_rank_(static_cast<std::uint16_t>(part.banks)),
      banks_per_group_(static_cast<std::uint16_t>(part.banks / part.bank_groups)),
      max_bursts_(max_bursts),
      bursts_per_line_(static_cast<std::uint16_t>(std::max<std::int64_t>(1, 64 / burst_bytes(part).count()))),
      age_cap_(CommandClock(command_clock(part)).cycles(controller.age_cap)),
      refresh_interval_(controller.refresh == RefreshMode::per_bank ? t_.tREFI / part.banks : t_.tREFI),
      column_command_(column_command_cycles(part.standard)),
      row_command_(row_command_cycles(part.standard)),
      entries_(static_cast<std::size_t>(controller.read_queue + controller.write_queue)),
      banks_(static_cast<std::size_t>(part.banks * controller.ranks)),
      ranks_(static_cast<std::size_t>(controller.ranks)) {
  check(banks_.size() <= 64, "a channel has at most 64 banks");
  for (std::size_t i = entries_.size(); i > 0; --i) {
    free_.push_back(static_cast<std::uint16_t>(i - 1));
  }
  // Ranks refresh in turn, so that they do not stand still together.
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const auto share = static_cast<Cycle>(r + 1);
    ranks_[r].refresh_due = controller.refresh == RefreshMode::none
                                ? kNever
                                : refresh_interval_ * share / static_cast<Cycle>(ranks_.size());
  }
}

void ChannelController::add(const RowRun& run) {
  waiting_[list_of(run.access)].insert(
      run, [](const RowRun& a, const RowRun& b) { return a.arrival < b.arrival; });
  wake_for_arrivals();
}

/// Data that follows the beats on the bus without a gap stands, whoever arrives before it; any other decision is made
/// anew when a run arrives, because that run could go first.
void ChannelController::wake_for_arrivals() {
  const bool column = best_.command == Command::read || best_.command == Command::write;
  const Cycle latency = best_.command == Command::read ? t_.read_latency : t_.write_latency;
  if (planned_ && column && best_.time <= data_end_ - latency) {
    return;
  }
  for (unsigned list = 0; list < waiting_.size(); ++list) {
    if (!waiting_[list].empty() && queued_[list] < capacity(list)) {
      // What waited before a full queue comes in when there is room, which is now and not when it arrived.
      next_time_ = std::min(next_time_, std::max(waiting_[list].front().arrival, command_bus_free_));
    }
  }
}

bool ChannelController::accept(unsigned list) {
  Fifo<RowRun>& waiting = waiting_[list];
  bool any = false;
  while (!waiting.empty() && waiting.front().arrival <= next_time_ && queued_[list] < capacity(list)) {
    const std::uint16_t index = free_.back();
    free_.pop_back();
    entries_[index] = {.run = waiting.front()};
    BankState& bank = banks_[waiting.front().bank];
    if (bank.tail[list] == kNone) {
      bank.head[list] = index;
    } else {
      entries_[bank.tail[list]].next = index;
    }
    bank.tail[list] = index;
    pending_banks_[list] |= std::uint64_t{1} << waiting.front().bank;
    ++queued_[list];
    waiting.pop();
    any = true;
  }
  return any;
}

void ChannelController::ingest() {
  const bool reads = accept(0);
  const bool writes = accept(1);
  if (reads || writes) {
    planned_ = false;
  }
}

void ChannelController::remove(std::uint16_t entry) {
  const RowRun& run = entries_[entry].run;
  const unsigned list = list_of(run.access);
  BankState& bank = banks_[run.bank];
  std::uint16_t before = kNone;
  for (std::uint16_t i = bank.head[list]; i != entry; i = entries_[i].next) {
    before = i;
  }
  (before == kNone ? bank.head[list] : entries_[before].next) = entries_[entry].next;
  if (bank.tail[list] == entry) {
    bank.tail[list] = before;
  }
  if (bank.head[list] == kNone) {
    pending_banks_[list] &= ~(std::uint64_t{1} << run.bank);
  }
  --queued_[list];
  free_.push_back(entry);
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
  const Candidate chosen = best_;
  check(chosen.time != kNever, "a decision is due");
  bool column = false;
  switch (chosen.command) {
    case Command::read:
    case Command::write:
      issue_column(chosen, served);
      column = true;
      break;
    case Command::refresh_all:
    case Command::refresh_bank:
      issue_refresh(chosen);
      break;
    default:
      issue_row(chosen);
  }
  plan();
  next_time_ = best_.time;
  wake_for_arrivals();
  return column;
}

// --- choosing ---------------------------------------------------------------------------------------------------

void ChannelController::plan() {
  best_ = {};
  if (queued_[1] >= spec_.write_high) {
    draining_writes_ = true;
  } else if (queued_[1] <= spec_.write_low) {
    draining_writes_ = false;
  }
  const unsigned list = (draining_writes_ || queued_[0] == 0) ? 1 : 0;
  for (std::uint64_t pending = pending_banks_[list]; pending != 0; pending &= pending - 1) {
    plan_bank(static_cast<std::uint16_t>(std::countr_zero(pending)), list);
  }
  planned_ = best_.time != kNever;
  if (planned_) {
    for (std::uint16_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_[rank].refresh_due <= best_.time) {
        plan_refresh(rank);
      }
    }
    return;
  }
  if (pending_banks_[list] != 0) {  // all that is queued waits behind a refresh
    for (std::uint16_t rank = 0; rank < ranks_.size(); ++rank) {
      plan_refresh(rank);
    }
    planned_ = best_.time != kNever;
  }
}

/// The oldest run that hits the bank's open row and has arrived, else the next to arrive, or none. (Of a run that has
/// been served in part, the lines left may still be on their way.)
std::uint16_t ChannelController::oldest_hit(const BankState& bank, unsigned list) const {
  std::uint16_t next = kNone;
  for (std::uint16_t i = bank.head[list]; i != kNone; i = entries_[i].next) {
    const RowRun& run = entries_[i].run;
    if (run.row != bank.open_row) {
      continue;
    }
    if (run.arrival <= next_time_) {
      return i;
    }
    if (next == kNone || run.arrival < entries_[next].run.arrival) {
      next = i;
    }
  }
  return next;
}

/// First ready, first come: the oldest run that hits the open row, else what the oldest run needs. A run over the age
/// cap no longer lets younger hits pass.
void ChannelController::plan_bank(std::uint16_t bank_index, unsigned list) {
  const BankState& bank = banks_[bank_index];
  const std::uint16_t oldest = bank.head[list];
  const RowRun& first = entries_[oldest].run;
  const bool waits_too_long = first.row != bank.open_row && next_time_ - first.arrival > age_cap_;
  const std::uint16_t hit = bank.open_row == kClosed || waits_too_long ? kNone : oldest_hit(bank, list);

  Candidate c{.entry = hit != kNone ? hit : oldest, .bank = bank_index};
  c.arrival = entries_[c.entry].run.arrival;
  if (hit != kNone) {
    c.command = list == 0 ? Command::read : Command::write;
    c.time = column_time(entries_[hit]);
  } else if (bank.open_row == kClosed) {
    const RankState& rank = ranks_[rank_of(bank_index)];
    c.command = Command::activate;
    const Cycle last = rank.activates[(rank.oldest + 3) % 4];
    c.time = std::max({bank.activate_ok, last + t_.tRRD, rank.activates[rank.oldest] + t_.tFAW, c.arrival,
                       command_bus_free_ + column_command_});
  } else {
    c.command = Command::precharge;
    c.time = std::max({bank.precharge_ok, c.arrival, command_bus_free_ + row_command_});
  }
  if (!refresh_claims(bank_index, c.time)) {
    offer(c);
  }
}

/// Whether a refresh that is due by `time` wants the bank for itself.
bool ChannelController::refresh_claims(std::uint16_t bank, Cycle time) const {
  const std::uint16_t rank = rank_of(bank);
  if (time < ranks_[rank].refresh_due) {
    return false;
  }
  return spec_.refresh == RefreshMode::all_bank || bank == rank * banks_per_rank_ + ranks_[rank].refresh_bank;
}

void ChannelController::plan_refresh(std::uint16_t rank_index) {
  const RankState& rank = ranks_[rank_index];
  const bool all = spec_.refresh == RefreshMode::all_bank;
  const auto first = static_cast<std::uint16_t>(rank_index * banks_per_rank_ + (all ? 0 : rank.refresh_bank));
  const auto end = static_cast<std::uint16_t>(first + (all ? banks_per_rank_ : 1));

  Candidate c{.command = all ? Command::refresh_all : Command::refresh_bank, .bank = first, .arrival = kLongAgo};
  c.time = std::max(rank.refresh_due, command_bus_free_ + row_command_);
  bool open = false;
  for (std::uint16_t b = first; b < end; ++b) {
    open = open || banks_[b].open_row != kClosed;
    c.time = std::max(c.time, banks_[b].open_row != kClosed ? banks_[b].precharge_ok : banks_[b].activate_ok);
  }
  if (open) {
    c.command = all ? Command::precharge_all : Command::precharge;
    c.time = std::max(rank.refresh_due, command_bus_free_ + row_command_);
    for (std::uint16_t b = first; b < end; ++b) {
      if (banks_[b].open_row != kClosed) {
        c.time = std::max(c.time, banks_[b].precharge_ok);
      }
    }
  }
  offer(c);
}

/// Keeps the candidate that can go first; at the same clock column commands before row commands, then the older.
void ChannelController::offer(const Candidate& c) {
  const auto is_column = [](Command command) { return command == Command::read || command == Command::write; };
  if (c.time != best_.time) {
    if (c.time < best_.time) {
      best_ = c;
    }
    return;
  }
  const bool column = is_column(c.command);
  if (column != is_column(best_.command) ? column : c.arrival < best_.arrival) {
    best_ = c;
  }
}

/// Bursts of the run whose lines have arrived by `time`, at least one.
std::uint16_t ChannelController::bursts_at(const RowRun& run, Cycle time) const {
  if (run.line_spacing == 0) {
    return run.bursts;
  }
  const Cycle lines = 1 + std::max<Cycle>(0, time - run.arrival) / run.line_spacing;
  return static_cast<std::uint16_t>(std::min<Cycle>(run.bursts, lines * bursts_per_line_));
}

/// Earliest clock at which the data bus has turned to the entry's direction and rank.
Cycle ChannelController::turnaround_ok(const Entry& entry) const {
  const RowRun& run = entry.run;
  const std::uint16_t rank = rank_of(run.bank);
  const Cycle latency = run.access == Access::read ? t_.read_latency : t_.write_latency;
  Cycle ok = kLongAgo;
  if (run.access == Access::read) {
    ok = ranks_[rank].last_write + t_.write_to_read;
  } else if (last_access_ == Access::read) {
    ok = last_column_ + t_.read_to_write;
  }
  if (rank != rank_of(last_column_bank_)) {
    ok = std::max(ok, data_end_ + t_.rank_switch - latency);
  }
  return ok;
}

Cycle ChannelController::column_time(const Entry& entry) const {
  const RowRun& run = entry.run;
  const Cycle latency = run.access == Access::read ? t_.read_latency : t_.write_latency;
  const bool same_group = rank_of(run.bank) == rank_of(last_column_bank_) &&
                          run.bank / banks_per_group_ == last_column_bank_ / banks_per_group_;
  Cycle spacing = kLongAgo;
  if (run.access == last_access_) {
    spacing = last_column_ + (same_group ? t_.tCCD_L : t_.tCCD);
  }
  return std::max({banks_[run.bank].column_ok, run.arrival, spacing, data_end_ - latency, turnaround_ok(entry),
                   command_bus_free_ + column_command_});
}

// --- issuing ----------------------------------------------------------------------------------------------------

void ChannelController::record(Cycle clock, Command command, std::uint16_t bank, std::uint32_t row) {
  if (log_ != nullptr) {
    log_->push_back({.clock = clock, .command = command, .bank = bank, .row = row});
  }
}

void ChannelController::close(std::uint16_t bank_index, Cycle precharge, Cycle tRP) {
  BankState& bank = banks_[bank_index];
  bank.open_row = kClosed;
  bank.activate_ok = std::max(bank.activate_ok, precharge + tRP);
}

void ChannelController::issue_row(const Candidate& c) {
  command_bus_free_ = c.time;
  BankState& bank = banks_[c.bank];
  if (c.command == Command::precharge_all) {
    const auto first = static_cast<std::uint16_t>(rank_of(c.bank) * banks_per_rank_);
    for (std::uint16_t b = first; b < first + banks_per_rank_; ++b) {
      close(b, c.time, t_.tRPab);
    }
    record(c.time, c.command, c.bank, 0);
    return;
  }
  if (c.command == Command::precharge) {
    close(c.bank, c.time, t_.tRPpb);
    if (c.entry != kNone) {
      entries_[c.entry].row_state = RowState::conflict;
      bank.closed_by_refresh = false;
    }
    record(c.time, c.command, c.bank, 0);
    return;
  }
  Entry& entry = entries_[c.entry];
  if (entry.row_state == RowState::hit) {
    entry.row_state = RowState::miss;
  }
  bank.open_row = entry.run.row;
  bank.column_ok = c.time + t_.tRCD;
  bank.precharge_ok = c.time + t_.tRAS;
  bank.column_owner = bank.closed_by_refresh ? Owner::refresh : Owner::row;
  bank.closed_by_refresh = false;
  RankState& rank = ranks_[rank_of(c.bank)];
  rank.activates[rank.oldest] = c.time;
  rank.oldest = (rank.oldest + 1) % 4;
  ++counters_.activates;
  record(c.time, c.command, c.bank, entry.run.row);
}

void ChannelController::issue_refresh(const Candidate& c) {
  command_bus_free_ = c.time;
  RankState& rank = ranks_[rank_of(c.bank)];
  const bool all = c.command == Command::refresh_all;
  const Cycle done = c.time + (all ? t_.tRFCab : t_.tRFCpb);
  const auto end = static_cast<std::uint16_t>(c.bank + (all ? banks_per_rank_ : 1));
  for (std::uint16_t b = c.bank; b < end; ++b) {
    banks_[b].activate_ok = done;
    banks_[b].closed_by_refresh = true;
  }
  rank.refresh_due += refresh_interval_;
  rank.refresh_bank = static_cast<std::uint16_t>((rank.refresh_bank + 1) % banks_per_rank_);
  ++counters_.refreshes;
  record(c.time, c.command, c.bank, 0);
}

void ChannelController::issue_column(const Candidate& c, Served& served) {
  Entry& entry = entries_[c.entry];
  const RowRun& run = entry.run;
  BankState& bank = banks_[run.bank];
  const bool read = run.access == Access::read;
  const Cycle latency = read ? t_.read_latency : t_.write_latency;
  const Cycle turned = turnaround_ok(entry);
  const Cycle spacing = banks_per_group_ == banks_per_rank_ ? t_.tCCD : t_.tCCD_L;
  // A refresh that falls due cuts a train: what follows waits for its next decision.
  Cycle room = (ranks_[rank_of(run.bank)].refresh_due - c.time + spacing - 1) / spacing;
  if (!refresh_claims(run.bank, ranks_[rank_of(run.bank)].refresh_due)) {
    room = max_bursts_;
  }
  const auto bursts = static_cast<std::uint16_t>(
      std::clamp<Cycle>(room, 1, std::min(max_bursts_, bursts_at(run, c.time))));
  const Cycle last = c.time + (bursts - 1) * spacing;

  served.tag = run.tag;
  served.bursts = bursts;
  served.access = run.access;
  served.row_state = entry.row_state;
  served.unhindered = run.arrival + latency;
  served.data_start = c.time + latency;
  served.data_end = last + latency + t_.burst;
  served.held_by = turned == c.time             ? Owner::turnaround
                   : bank.column_ok == c.time ? bank.column_owner
                                              : Owner::queue;

  (read ? counters_.reads : counters_.writes) += bursts;
  counters_.row_misses += entry.row_state == RowState::miss;
  counters_.row_conflicts += entry.row_state == RowState::conflict;
  entry.row_state = RowState::hit;

  command_bus_free_ = c.time;  // row commands slip in between the bursts of a train
  data_end_ = served.data_end;
  last_column_ = last;
  last_access_ = run.access;
  last_column_bank_ = run.bank;
  if (!read) {
    ranks_[rank_of(run.bank)].last_write = last;
  }
  bank.precharge_ok = std::max(bank.precharge_ok, last + (read ? t_.read_to_precharge : t_.write_to_precharge));
  for (Cycle at = c.time; at <= last; at += spacing) {
    record(at, c.command, run.bank, run.row);
  }

  entry.run.bursts = static_cast<std::uint16_t>(run.bursts - bursts);
  if (entry.run.bursts % bursts_per_line_ == 0) {
    entry.run.arrival += run.line_spacing * std::max(1, bursts / bursts_per_line_);
  }
  served.last = entry.run.bursts == 0;
  if (served.last) {
    remove(c.entry);
  }
}

}  // namespace kvsim::model
