// SPDX-License-Identifier: Apache-2.0
// The scheduler's choice of the next command.
#include <algorithm>
#include <bit>

#include "models/dram/channel.h"

namespace kvsim::model {

using config::RefreshMode;
using trace::Access;

void ChannelController::plan() {
  best_ = {};
  if (queued_[1] >= spec_.write_high) {
    draining_writes_ = true;
  } else if (queued_[1] <= spec_.write_low) {
    draining_writes_ = false;
  }
  const unsigned list = (draining_writes_ || queued_[0] == 0) ? 1 : 0;
  const ColumnBounds bounds = column_bounds(list == 0 ? Access::read : Access::write);
  for (std::uint64_t pending = pending_banks_[list]; pending != 0; pending &= pending - 1) {
    plan_bank(static_cast<std::uint16_t>(std::countr_zero(pending)), list, bounds);
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

/// The oldest run that hits the bank's open row and has arrived, else the next to arrive, or none. (Of a run
/// that has been served in part, the lines left may still be on their way.)
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

/// First ready, first come: the oldest run that hits the open row, else what the oldest run needs. A run over
/// the age cap no longer lets younger hits pass.
void ChannelController::plan_bank(std::uint16_t bank_index, unsigned list, const ColumnBounds& bounds) {
  const BankState& bank = banks_[bank_index];
  const std::uint16_t oldest = bank.head[list];
  const RowRun& first = entries_[oldest].run;
  const bool waits_too_long = first.row != bank.open_row && next_time_ - first.arrival > age_cap_;
  const std::uint16_t hit = bank.open_row == kClosed || waits_too_long ? kNone : oldest_hit(bank, list);

  Candidate c{.entry = hit != kNone ? hit : oldest, .bank = bank_index};
  c.age = entries_[c.entry].age;
  const Cycle arrival = entries_[c.entry].run.arrival;
  if (hit != kNone) {
    c.command = list == 0 ? Command::read : Command::write;
    c.time = std::max({bank.column_ok, arrival, bounds.by_rank[rank_of(bank_index)]});
    if (group_of(bank_index) == group_of(last_column_bank_)) {
      c.time = std::max(c.time, bounds.same_group);
    }
  } else if (bank.open_row == kClosed) {
    const RankState& rank = ranks_[rank_of(bank_index)];
    c.command = Command::activate;
    const Cycle last = rank.activates[(rank.oldest + 3) % 4];
    c.time = std::max({bank.activate_ok, last + t_.tRRD, rank.activates[rank.oldest] + t_.tFAW, arrival,
                       command_bus_free_ + column_command_});
  } else {
    c.command = Command::precharge;
    c.time = std::max({bank.precharge_ok, arrival, command_bus_free_ + row_command_});
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

  Candidate c{.command = all ? Command::refresh_all : Command::refresh_bank, .bank = first, .age = -1};
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

/// Keeps the candidate that can go first; at the same clock column commands before row commands, then the
/// older.
void ChannelController::offer(const Candidate& c) {
  const auto is_column = [](Command command) {
    return command == Command::read || command == Command::write;
  };
  if (c.time != best_.time) {
    if (c.time < best_.time) {
      best_ = c;
    }
    return;
  }
  const bool column = is_column(c.command);
  if (column != is_column(best_.command) ? column : c.age < best_.age) {
    best_ = c;
  }
}

/// Earliest clock at which the data bus has turned to a direction and rank.
Cycle ChannelController::turnaround_ok(Access access, std::uint16_t rank) const {
  const Cycle latency = access == Access::read ? t_.read_latency : t_.write_latency;
  Cycle ok = kLongAgo;
  if (access == Access::read) {
    ok = ranks_[rank].last_write + t_.write_to_read;
  } else if (last_access_ == Access::read) {
    ok = last_column_ + t_.read_to_write;
  }
  if (rank != rank_of(last_column_bank_)) {
    ok = std::max(ok, data_end_ + t_.rank_switch - latency);
  }
  return ok;
}

ChannelController::ColumnBounds ChannelController::column_bounds(Access access) const {
  const Cycle latency = access == Access::read ? t_.read_latency : t_.write_latency;
  Cycle common = std::max(data_end_ - latency, command_bus_free_ + column_command_);
  ColumnBounds bounds;
  if (access == last_access_) {
    common = std::max(common, last_column_ + t_.tCCD);
    bounds.same_group = last_column_ + t_.tCCD_L;
  }
  for (std::uint16_t rank = 0; rank < ranks_.size(); ++rank) {
    bounds.by_rank[rank] = std::max(common, turnaround_ok(access, rank));
  }
  return bounds;
}

/// Bursts of the run whose lines have arrived by `time`, at least one.
std::uint16_t ChannelController::bursts_at(const RowRun& run, Cycle time) const {
  if (run.line_spacing == 0) {
    return run.bursts;
  }
  const Cycle lines = 1 + std::max<Cycle>(0, time - run.arrival) / run.line_spacing;
  return static_cast<std::uint16_t>(std::min<Cycle>(run.bursts, lines * bursts_per_line_));
}

/// Bursts that one decision issues, `spacing` apart. A refresh that falls due cuts a train: what follows
/// waits for its next decision.
std::uint16_t ChannelController::train_length(const RowRun& run, Cycle time, Cycle spacing) const {
  const std::uint16_t bursts = std::min(max_bursts_, bursts_at(run, time));
  const Cycle due = ranks_[rank_of(run.bank)].refresh_due;
  if (time + bursts * spacing <= due || !refresh_claims(run.bank, due)) {
    return bursts;
  }
  return static_cast<std::uint16_t>(std::clamp<Cycle>((due - time + spacing - 1) / spacing, 1, bursts));
}

}  // namespace kvsim::model
