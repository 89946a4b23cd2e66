// SPDX-License-Identifier: Apache-2.0
#include "models/dram/channel.h"

#include <algorithm>
#include <bit>

#include "configs/error/error.h"

namespace kvsim::model {

using config::RefreshMode;
using trace::Access;

namespace {

/// Command bus cycles: LPDDR4's ACT, RD and WR are two two-cycle commands (JESD209-4). LPDDR5's commands take
/// the two edges of one cycle; its ACT is two of them, which need not follow each other (tAAD, JESD209-5).
Cycle column_command_cycles(config::DramStandard standard) {
  return standard == config::DramStandard::lpddr5 ? 1 : 4;
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
      rank_shift_(std::countr_zero(static_cast<std::uint64_t>(part.banks))),
      group_shift_(std::countr_zero(static_cast<std::uint64_t>(part.banks / part.bank_groups))),
      has_groups_(part.bank_groups > 1),
      max_bursts_(max_bursts),
      bursts_per_line_(static_cast<std::uint16_t>(std::max<std::int64_t>(1, 64 / burst_bytes(part).count()))),
      age_cap_(CommandClock(command_clock(part)).cycles(controller.age_cap)),
      refresh_interval_(controller.refresh == RefreshMode::per_bank ? t_.tREFI / part.banks : t_.tREFI),
      column_command_(column_command_cycles(part.standard)),
      row_command_(row_command_cycles(part.standard)),
      entries_(static_cast<std::size_t>(controller.read_queue + controller.write_queue)),
      banks_(static_cast<std::size_t>(part.banks * controller.ranks)),
      ranks_(static_cast<std::size_t>(controller.ranks)) {
  check(banks_.size() <= 64 && ranks_.size() <= kMaxRanks, "a channel has at most 64 banks in 4 ranks");
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

/// The next decision is made anew when a run arrives, because that run could go first.
void ChannelController::wake_for_arrivals() {
  for (unsigned list = 0; list < waiting_.size(); ++list) {
    if (!waiting_[list].empty() && queued_[list] < capacity(list)) {
      // Nothing can put data on the bus before it is free; and what waited before a full queue comes in when
      // there is room, which is now.
      next_time_ =
          std::min(next_time_, std::max({waiting_[list].front().arrival, bus_decision_, command_bus_free_}));
    }
  }
}

bool ChannelController::accept(unsigned list) {
  Fifo<RowRun>& waiting = waiting_[list];
  bool any = false;
  while (!waiting.empty() && waiting.front().arrival <= next_time_ && queued_[list] < capacity(list)) {
    const std::uint16_t index = free_.back();
    free_.pop_back();
    entries_[index] = {.run = waiting.front(), .age = accepted_++};
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
  check(best_.time != kNever, "a decision is due");
  planned_ = false;
  const Candidate chosen = best_;
  if (chosen.command == Command::read || chosen.command == Command::write) {
    issue_column(chosen, served);
    // What comes next is decided when the bus is nearly free, with all that has arrived by then.
    next_time_ = queued_[0] + queued_[1] > 0 ? bus_decision_ : kNever;
    wake_for_arrivals();
    return true;
  }
  if (chosen.command == Command::refresh_all || chosen.command == Command::refresh_bank) {
    issue_refresh(chosen);
  } else {
    issue_row(chosen);
  }
  plan();
  next_time_ = best_.time;
  wake_for_arrivals();
  return false;
}

// --- issuing
// ----------------------------------------------------------------------------------------------------

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
      banks_[b].row_before_refresh = banks_[b].open_row;
      close(b, c.time, t_.tRPab);
    }
    record(c.time, c.command, c.bank, 0);
    return;
  }
  if (c.command == Command::precharge) {
    bank.row_before_refresh = c.entry == kNone ? bank.open_row : kClosed;
    close(c.bank, c.time, t_.tRPpb);
    if (c.entry != kNone) {
      entries_[c.entry].row_state = RowState::conflict;
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
  const bool waited = bank.refreshed && entry.run.arrival < bank.activate_ok;
  const bool opens_again = bank.row_before_refresh == entry.run.row;
  bank.column_owner = waited || opens_again ? Owner::refresh : Owner::row;
  bank.refreshed = false;
  bank.row_before_refresh = kClosed;
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
    banks_[b].refreshed = true;
  }
  rank.refresh_due += refresh_interval_;
  rank.refresh_bank = static_cast<std::uint16_t>((rank.refresh_bank + 1) % banks_per_rank_);
  ++counters_.refreshes;
  record(c.time, c.command, c.bank, 0);
}

/// The oldest request of the same direction that waits longer than `entry`, which is served: its bank is not
/// ready.
void ChannelController::note_older(const Entry& entry, Served& served) const {
  const unsigned list = list_of(entry.run.access);
  std::int64_t oldest = entry.age;
  for (std::uint64_t pending = pending_banks_[list]; pending != 0; pending &= pending - 1) {
    const BankState& bank = banks_[static_cast<std::size_t>(std::countr_zero(pending))];
    const Entry& first = entries_[bank.head[list]];
    if (first.age < oldest) {
      oldest = first.age;
      served.older_unhindered = first.run.arrival + (list == 0 ? t_.read_latency : t_.write_latency);
      served.older_held_by = bank.refreshed ? Owner::refresh : Owner::row;
    }
  }
}

void ChannelController::issue_column(const Candidate& c, Served& served) {
  Entry& entry = entries_[c.entry];
  const RowRun& run = entry.run;
  BankState& bank = banks_[run.bank];
  const bool read = run.access == Access::read;
  const Cycle latency = read ? t_.read_latency : t_.write_latency;
  const Cycle turned = turnaround_ok(run.access, rank_of(run.bank));
  const Cycle spacing = has_groups_ ? t_.tCCD_L : t_.tCCD;
  const std::uint16_t bursts = train_length(run, c.time, spacing);
  const Cycle last = c.time + (bursts - 1) * spacing;

  served.tag = run.tag;
  served.bursts = bursts;
  served.access = run.access;
  served.row_state = entry.row_state;
  served.unhindered = run.arrival + latency;
  served.data_start = c.time + latency;
  served.data_end = last + latency + t_.burst;
  served.bank_ready = bank.column_ok + latency;
  served.bank_owner = bank.column_owner;
  served.held_by = turned == c.time           ? Owner::turnaround
                   : bank.column_ok == c.time ? bank.column_owner
                                              : Owner::queue;

  served.older_unhindered = Served::kNoOlder;
  if (served.data_start > data_end_) {  // the bus stood idle
    note_older(entry, served);
  }

  (read ? counters_.reads : counters_.writes) += bursts;
  counters_.row_misses += entry.row_state == RowState::miss;
  counters_.row_conflicts += entry.row_state == RowState::conflict;
  entry.row_state = RowState::hit;

  command_bus_free_ = c.time;  // row commands slip in between the bursts of a train
  data_end_ = served.data_end;
  bus_decision_ = data_end_ - std::max(t_.read_latency, t_.write_latency);
  last_column_ = last;
  last_access_ = run.access;
  last_column_bank_ = run.bank;
  if (!read) {
    ranks_[rank_of(run.bank)].last_write = last;
  }
  bank.precharge_ok =
      std::max(bank.precharge_ok, last + (read ? t_.read_to_precharge : t_.write_to_precharge));
  if (log_ != nullptr) {
    for (Cycle at = c.time; at <= last; at += spacing) {
      record(at, c.command, run.bank, run.row);
    }
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
