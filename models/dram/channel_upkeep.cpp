// SPDX-License-Identifier: Apache-2.0
// What a channel does without being asked: refresh, power-down and self-refresh, closing of idle rows.
#include <algorithm>
#include <bit>

#include "models/dram/channel.h"

namespace kvsim::model {

using config::PagePolicy;
using config::RefreshMode;

/// Offers what ranks need for themselves before the best command for a request.
void ChannelController::plan_upkeep() {
  const bool stuck = best_.time == kNever;  // all that is queued waits behind a refresh or a sleeping rank
  for (std::uint16_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].power == Power::up && (stuck || ranks_[rank].refresh_due <= best_.time)) {
      plan_refresh(rank);
    }
  }
  if (page_timeout_ != kNever) {
    plan_timeouts();
  }
  if (power_down_ != kNever || self_refresh_ != kNever) {
    for (std::uint16_t rank = 0; rank < ranks_.size(); ++rank) {
      plan_power(rank, oldest_arrival(rank));
    }
  }
}

/// A refresh goes when it is due if nothing waits for the rank; else it may be postponed.
void ChannelController::plan_refresh(std::uint16_t rank_index) {
  const RankState& rank = ranks_[rank_index];
  if (rank.refresh_due == kNever) {
    return;
  }
  const bool all = spec_.refresh == RefreshMode::all_bank;
  const auto first = static_cast<std::uint16_t>(first_bank(rank_index) + (all ? 0 : rank.refresh_bank));
  const auto end = static_cast<std::uint16_t>(first_bank(rank_index) + banks_per_rank_);

  Candidate c{
      .command = all ? Command::refresh_all : Command::refresh_bank, .bank = first, .arrival = kLongAgo};
  c.time = std::max({rank.refresh_due, command_bus_free_ + row_length_, all ? 0 : rank.bank_refresh_ok});
  if (!all) {  // a refresh of a bank is an activate to the rank
    c.time = std::max(c.time, rank.activates[(rank.oldest + 3) % 4] + t_.tRRD);
    c.time = std::max(c.time, t_.refresh_activates ? rank.activates[rank.oldest] + t_.tFAW : 0);
  }
  Cycle closing = std::max(rank.refresh_due, command_bus_free_ + row_length_);
  closing = std::max(closing, rank.last_precharge + t_.tPPD);
  Cycle all_closing = closing;
  Cycle first_closing = kNever;
  for (std::uint16_t b = first; b < end; b = static_cast<std::uint16_t>(b + refresh_sets_)) {
    // A bank that is closing by itself must be closed before the command for all.
    all_closing = std::max(all_closing, banks_[b].precharge_ok);
    if (banks_[b].open_row == kClosed) {
      c.time = std::max(c.time, banks_[b].activate_ok);
    } else if (banks_[b].precharge_ok < first_closing) {
      first_closing = banks_[b].precharge_ok;
      c.bank = all ? first : b;
    }
  }
  if (first_closing != kNever) {
    c.command = all ? Command::precharge_all : Command::precharge;
    c.time = all ? all_closing : std::max(closing, first_closing);
  }
  if (c.time >= oldest_arrival(rank_index)) {
    c.time = std::max(c.time, forced_refresh(rank));
  }
  offer(c);
}

/// When a refresh may wait no longer. The postponed ones end early enough for rows to be closed before the
/// last moment that JEDEC allows.
Cycle ChannelController::forced_refresh(const RankState& rank) const {
  if (rank.refresh_due == kNever || spec_.postponed_refreshes == 0) {
    return rank.refresh_due;
  }
  const Cycle margin = t_.tRAS + t_.write_to_precharge + t_.tRPab + 4 * row_length_;
  return std::max(rank.refresh_due,
                  rank.refresh_due + spec_.postponed_refreshes * refresh_interval_ - margin);
}

/// From when on a refresh claims banks of the rank for itself.
void ChannelController::set_limits(std::uint16_t rank_index) {
  const RankState& rank = ranks_[rank_index];
  const std::uint16_t first = first_bank(rank_index);
  const Cycle due = forced_refresh(rank);
  for (std::uint16_t b = first; b < first + banks_per_rank_; ++b) {
    const bool claimed = (b - first) % refresh_sets_ == rank.refresh_bank;
    limit_[b] = rank.power != Power::up ? kLongAgo : claimed ? due : kNever;
  }
  upkeep_due_ = kNever;
  for (const RankState& r : ranks_) {
    upkeep_due_ = std::min(upkeep_due_, r.power == Power::up ? r.refresh_due : kLongAgo);
  }
}

Cycle ChannelController::oldest_arrival(std::uint16_t rank) const {
  Cycle oldest = kNever;
  for (const unsigned list : {0U, 1U}) {
    for (std::uint64_t pending = pending_banks_[list]; pending != 0; pending &= pending - 1) {
      const auto bank = static_cast<std::uint16_t>(std::countr_zero(pending));
      if (rank_of(bank) == rank) {
        oldest = std::min(oldest, entries_[banks_[bank].head[list]].run.arrival);
      }
    }
  }
  return oldest;
}

bool ChannelController::any_open(std::uint16_t rank) const {
  const auto first = banks_.begin() + first_bank(rank);
  return std::any_of(first, first + banks_per_rank_,
                     [](const BankState& bank) { return bank.open_row != kClosed; });
}

/// Whether a request for the bank's open row has come by `time`.
bool ChannelController::is_hit_queued(std::uint16_t bank_index, Cycle time) const {
  const BankState& bank = banks_[bank_index];
  for (const unsigned list : {0U, 1U}) {
    for (std::uint16_t i = bank.head[list]; i != kNone; i = entries_[i].next) {
      if (entries_[i].run.row == bank.open_row && entries_[i].run.arrival <= time) {
        return true;
      }
    }
  }
  return false;
}

/// Closes rows that nothing has asked for in a while.
void ChannelController::plan_timeouts() {
  for (std::uint16_t b = 0; b < banks_.size(); ++b) {
    const BankState& bank = banks_[b];
    const RankState& rank = ranks_[rank_of(b)];
    if (bank.open_row == kClosed || rank.power != Power::up) {
      continue;
    }
    Candidate c{.command = Command::precharge, .bank = b, .arrival = kNever};
    c.time = std::max({bank.last_column + page_timeout_, bank.precharge_ok, rank.last_precharge + t_.tPPD,
                       command_bus_free_ + row_length_});
    if (c.time < forced_refresh(rank) && !is_hit_queued(b, c.time)) {
      offer(c);
    }
  }
}

/// Sends a rank to sleep that nothing waits for until `wanted`, and wakes it.
void ChannelController::plan_power(std::uint16_t rank_index, Cycle wanted) {
  const RankState& rank = ranks_[rank_index];
  const Cycle bus = command_bus_free_ + row_length_;
  const bool may_sleep = self_refresh_ != kNever && rank.owed_refreshes == 0;
  const Cycle sleep = may_sleep ? rank.last_use + self_refresh_ : kNever;
  Candidate c{.bank = first_bank(rank_index), .arrival = kLongAgo};
  if (rank.power == Power::self_refresh) {
    c.command = Command::self_refresh_exit;
    c.time = wanted == kNever ? kNever : std::max({wanted, rank.power_since + t_.tSR, bus});
    offer(c);
    return;
  }
  if (rank.power == Power::power_down) {
    c.command = Command::power_down_exit;
    const Cycle needed = std::min({wanted, rank.refresh_due, sleep});
    c.time = needed == kNever ? kNever : std::max({needed, rank.power_since + t_.tCKE, bus});
    offer(c);
    return;
  }
  c.time = std::max({rank.quiet, bus, sleep});
  if (sleep != kNever && c.time < std::min(wanted, rank.refresh_due)) {
    c.command = any_open(rank_index) ? Command::precharge_all : Command::self_refresh_enter;
    offer(c);
    return;
  }
  if (power_down_ != kNever) {
    c.time = std::max({rank.quiet, bus, rank.last_use + power_down_});
    c.command = Command::power_down_enter;
    if (c.time < std::min({wanted, rank.refresh_due, sleep})) {
      offer(c);
    }
  }
}

void ChannelController::issue_refresh(const Candidate& c) {
  take_command_bus(c.time);
  const std::uint16_t rank_index = rank_of(c.bank);
  RankState& rank = ranks_[rank_index];
  const bool all = c.command == Command::refresh_all;
  const Cycle done = c.time + (all ? t_.tRFCab : t_.tRFCpb);
  const auto end = static_cast<std::uint16_t>(first_bank(rank_index) + banks_per_rank_);
  for (std::uint16_t b = c.bank; b < end; b = static_cast<std::uint16_t>(b + refresh_sets_)) {
    banks_[b].activate_ok = done;
    banks_[b].refreshed = true;
    banks_[b].refresh_start = c.time;
    banks_[b].refresh_end = done;
    touch(b);
  }
  rank.bank_refresh_ok = c.time + std::max(t_.tpbR2pbR, all ? t_.tRFCab : 0);
  rank.after_bank_refresh = all ? kLongAgo : c.time + t_.tpbR2act;
  if (!all && t_.refresh_activates) {
    rank.activates[rank.oldest] = c.time;
    rank.oldest = (rank.oldest + 1) % 4;
  }
  rank.quiet = std::max(rank.quiet, done);
  rank.refresh_due += refresh_interval_;
  rank.owed_refreshes = std::max<std::int64_t>(0, rank.owed_refreshes - 1);
  rank.refresh_bank = static_cast<std::uint16_t>((rank.refresh_bank + 1) % refresh_sets_);
  set_limits(rank_index);
  update_activate_bounds(rank_index);
  ++counters_.refreshes;
  record(c.time, c.command, c.bank, 0);
}

void ChannelController::issue_power(const Candidate& c) {
  take_command_bus(c.time);
  const std::uint16_t rank_index = rank_of(c.bank);
  RankState& rank = ranks_[rank_index];
  rank.power_since = c.time;
  switch (c.command) {
    case Command::power_down_enter:
      rank.power = Power::power_down;
      rank.background.power_down(c.time);
      break;
    case Command::self_refresh_enter:
      rank.power = Power::self_refresh;
      rank.background.self_refresh(c.time);
      break;
    case Command::power_down_exit:
      rank.power = Power::up;
      rank.background.wake(c.time);
      hold(rank_index, c.time + t_.tXP);
      rank.quiet = std::max(rank.quiet, c.time + t_.tCKE);
      break;
    default:
      rank.power = Power::up;
      rank.background.wake(c.time);
      hold(rank_index, c.time + t_.tXSR);
      // JEDEC asks for a refresh of every bank between two times of self-refresh.
      rank.refresh_due = c.time + t_.tXSR;
      rank.owed_refreshes = refresh_sets_;
  }
  set_limits(rank_index);
  record(c.time, c.command, c.bank, 0);
}

/// Keeps all commands from a rank until it is awake.
void ChannelController::hold(std::uint16_t rank_index, Cycle until) {
  const std::uint16_t first = first_bank(rank_index);
  for (std::uint16_t b = first; b < first + banks_per_rank_; ++b) {
    BankState& bank = banks_[b];
    for (Cycle* ok : {&bank.activate_ok, &bank.column_ok, &bank.masked_ok, &bank.precharge_ok}) {
      *ok = std::max(*ok, until);
    }
    touch(b);
  }
  ranks_[rank_index].bank_refresh_ok = std::max(ranks_[rank_index].bank_refresh_ok, until);
  ranks_[rank_index].quiet = std::max(ranks_[rank_index].quiet, until);
}

}  // namespace kvsim::model
