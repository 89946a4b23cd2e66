// SPDX-License-Identifier: Apache-2.0
// The scheduler's choice of the next command.
#include <algorithm>
#include <bit>
#include <limits>

#include "models/dram/channel.h"

namespace kvsim::model {

using trace::Access;

void ChannelController::plan() {
  best_ = {};
  const unsigned list = choose_list();
  if (next_time_ > recheck_[list]) {
    stale_[list] = pending_banks_[list];
    recheck_[list] = kNever;
  }
  plan_banks(list);
  select(list);
  planned_ = best_.time != kNever;
  if (best_.time >= upkeep_due_ || timers_) {
    plan_upkeep();
    planned_ = best_.time != kNever;
  }
}

/// Reads go first, until too many writes wait or one is more urgent than all of them.
unsigned ChannelController::choose_list() {
  if (pooled_) {
    return 0;
  }
  if (queued_[1] >= spec_.write_high) {
    draining_writes_ = true;
  } else if (queued_[1] <= spec_.write_low) {
    draining_writes_ = false;
  }
  return (draining_writes_ || queued_[0] == 0 || (prefers() && writes_are_urgent())) ? 1 : 0;
}

bool ChannelController::writes_are_urgent() const {
  for (std::size_t priority = kPriorities; priority-- > 0;) {
    if (urgent_[0][priority] > 0 || urgent_[1][priority] > 0) {
      return urgent_[0][priority] == 0;
    }
  }
  return false;
}

void ChannelController::plan_banks(unsigned list) {
  for (std::uint64_t stale = stale_[list] & pending_banks_[list]; stale != 0; stale &= stale - 1) {
    plan_bank(static_cast<std::uint16_t>(std::countr_zero(stale)), list);
  }
  stale_[list] = 0;
}

namespace {

// A bank's claim to the next command in one number, so that the first of them is their minimum: how far off
// its clock is, row commands after column commands, the less urgent, the younger, the bank.
constexpr int kBankBits = 6;
constexpr int kAgeBits = 19;
constexpr int kUrgencyBits = 3;
constexpr std::uint8_t kMostUrgent = 4;  // past the age cap; priorities are below
constexpr Cycle kFarthest = Cycle{1} << 34;
constexpr std::uint64_t kNoClaim = std::numeric_limits<std::uint64_t>::max();

std::uint64_t claim(Cycle distance, bool row, std::uint8_t urgency, Cycle age, std::uint16_t bank) {
  constexpr Cycle kYoungest = (Cycle{1} << kAgeBits) - 1;
  const auto clock = static_cast<std::uint64_t>(std::min(distance, kFarthest)) * 2 + (row ? 1 : 0);
  const std::uint64_t far = clock << kUrgencyBits | static_cast<std::uint64_t>(kMostUrgent - urgency);
  const Cycle seniority = std::clamp<Cycle>(kYoungest / 2 - age, 0, kYoungest);
  return (far << kAgeBits | static_cast<std::uint64_t>(seniority)) << kBankBits | bank;
}

std::uint16_t bank_of(std::uint64_t claim) {
  return static_cast<std::uint16_t>(claim & ((1U << kBankBits) - 1));
}

}  // namespace

/// Of the bursts that come next in their banks.
std::uint8_t ChannelController::most_urgent_burst(unsigned list) const {
  std::uint8_t top = 0;
  for (std::uint64_t pending = pending_banks_[list]; pending != 0; pending &= pending - 1) {
    const Next& next = next_[list][static_cast<std::size_t>(std::countr_zero(pending))];
    top = std::max(top, next.kind < Kind::activate ? next.urgency : std::uint8_t{0});
  }
  return top;
}

/// The pending bank whose command can go first; at the same clock column commands before row commands, then
/// the older. An activate that another command would push back goes before it, as activates are scarce,
/// unless that leaves the data bus idle. Bursts let a more urgent one pass that could come a little later, in
/// another rank or after one of its bank group. (Written without branches: which bank is first cannot be
/// foreseen.)
void ChannelController::select(unsigned list) {
  const Cycle now = command_bus_free_;
  const std::uint8_t top = prefers() ? most_urgent_burst(list) : 0;
  std::uint64_t first = kNoClaim;
  std::uint64_t activate = kNoClaim;
  for (std::uint64_t pending = pending_banks_[list]; pending != 0; pending &= pending - 1) {
    const auto bank = static_cast<std::uint16_t>(std::countr_zero(pending));
    const Next& next = next_[list][bank];
    const Cycle time = earliest(next, bank);
    const bool row = next.kind >= Kind::activate;
    const Cycle lets_pass = next.urgency < top && !row ? patience_ : 0;
    const std::uint64_t wanted =
        claim(time - now + lets_pass, row, next.urgency, accepted_ - next.number, bank);
    const std::uint64_t allowed = time < limit_[bank] ? wanted : kNoClaim;
    first = std::min(first, allowed);
    activate = std::min(activate, next.kind == Kind::activate ? allowed : kNoClaim);
  }
  if (first == kNoClaim) {
    return;
  }
  best_ = candidate(bank_of(first), list);
  if (activate != kNoClaim && activate != first) {
    const Candidate passes = candidate(bank_of(activate), list);
    if (passes.time < best_.time + length_[static_cast<std::size_t>(Kind::activate)] &&
        can_wait(best_, list)) {
      best_ = passes;
    }
  }
}

/// Whether a command can let an activate pass: the data bus has been idle by then anyway, or will be after.
/// Where one bank group alone has bursts, what holds it up is the distance between them, not the bus.
bool ChannelController::can_wait(const Candidate& c, unsigned list) const {
  if (c.command == Command::precharge) {
    return true;
  }
  const bool read = is_read(c.command);
  if (c.time + (read ? t_.read_latency : t_.write_latency) <= data_end_) {
    return !is_followed(c, list);
  }
  const std::uint16_t group = group_of(c.bank);
  const Cycle spacing = read ? t_.tCCD_L : t_.tCCD_L_WR;
  const bool chained = c.time == (read ? last_read_in_group_ : last_write_in_group_)[group] + spacing;
  return !chained || other_group_is_ready(c.bank, list, c.time + spacing) || !is_followed(c, list);
}

/// Whether another burst could come right behind that of a column command.
bool ChannelController::is_followed(const Candidate& c, unsigned list) const {
  if (entries_[c.entry].run.bursts > 1) {
    return true;
  }
  const std::uint32_t row = banks_[c.bank].open_row;
  for (std::uint16_t i = banks_[c.bank].head[list]; i != kNone; i = entries_[i].next) {
    if (i != c.entry && entries_[i].run.row == row) {
      return true;
    }
  }
  for (std::uint64_t pending = pending_banks_[list]; pending != 0; pending &= pending - 1) {
    const auto bank = static_cast<std::uint16_t>(std::countr_zero(pending));
    const Next& next = next_[list][bank];
    if (bank != c.bank && next.kind < Kind::activate && next.ready <= c.time + t_.tCCD) {
      return true;
    }
  }
  return false;
}

ChannelController::Candidate ChannelController::candidate(std::uint16_t bank, unsigned list) const {
  static constexpr std::array<Command, kKinds> kCommandOf = {
      Command::read, Command::write, Command::masked_write, Command::activate, Command::precharge};
  const Next& next = next_[list][bank];
  return {.time = earliest(next, bank),
          .command = kCommandOf[static_cast<std::size_t>(next.kind)],
          .entry = next.entry,
          .bank = bank,
          .arrival = next.arrival};
}

/// The oldest run that hits the bank's open row and has arrived, else the next to arrive, or none. (Of a run
/// that has been served in part, the lines left may still be on their way.)
std::uint16_t ChannelController::oldest_hit(BankState& bank, unsigned list) {
  std::uint16_t next = kNone;
  for (std::uint16_t i = bank.search[list]; i != kNone; i = entries_[i].next) {
    const RowRun& run = entries_[i].run;
    if (next == kNone) {
      bank.search[list] = i;
    }
    if (run.row != bank.open_row) {
      continue;
    }
    if (run.arrival <= next_time_) {
      return i;
    }
    recheck_[list] = std::min(recheck_[list], run.arrival - 1);
    if (next == kNone || run.arrival < entries_[next].run.arrival) {
      next = i;
    }
  }
  if (next == kNone) {
    bank.search[list] = kNone;
  }
  return next;
}

/// First ready, first come: the oldest run that hits the open row, else what the oldest run needs. A run over
/// the age cap no longer lets younger hits pass.
std::uint16_t ChannelController::choose_run(BankState& bank, unsigned list) {
  if (prefers()) {
    return most_urgent(bank, list);
  }
  const std::uint16_t oldest = bank.head[list];
  const RowRun& first = entries_[oldest].run;
  const bool others = first.row != bank.open_row;
  if (bank.open_row == kClosed || (others && next_time_ - first.arrival > age_cap_)) {
    return oldest;
  }
  const std::uint16_t hit = oldest_hit(bank, list);
  if (others && hit != kNone) {
    recheck_[list] = std::min(recheck_[list], first.arrival + age_cap_);
  }
  return hit != kNone ? hit : oldest;
}

std::uint8_t ChannelController::urgency(const RowRun& run) const {
  return next_time_ - run.arrival > age_cap_ ? kMostUrgent : run.priority;
}

/// With priorities: the most urgent run; among equals one that hits the open row, then the oldest.
std::uint16_t ChannelController::most_urgent(const BankState& bank, unsigned list) {
  std::uint16_t best = kNone;
  int best_rank = -1;
  for (std::uint16_t i = bank.head[list]; i != kNone; i = entries_[i].next) {
    const RowRun& run = entries_[i].run;
    const std::uint8_t urgent = urgency(run);
    if (urgent != kMostUrgent) {
      recheck_[list] = std::min(recheck_[list], run.arrival + age_cap_);
    }
    const int rank = 2 * urgent + (run.row == bank.open_row && urgent != kMostUrgent ? 1 : 0);
    if (rank > best_rank) {
      best = i;
      best_rank = rank;
    }
  }
  return best;
}

void ChannelController::plan_bank(std::uint16_t bank_index, unsigned list) {
  BankState& bank = banks_[bank_index];
  Next& next = next_[list][bank_index];
  next.entry = choose_run(bank, list);
  const RowRun& run = entries_[next.entry].run;
  next.arrival = run.arrival;
  next.number = entries_[next.entry].number;
  next.urgency = prefers() ? urgency(run) : 0;
  if (run.row == bank.open_row) {
    next.kind = run.access == Access::read ? Kind::read : run.masked ? Kind::masked_write : Kind::write;
    next.ready = std::max(run.masked ? bank.masked_ok : bank.column_ok, run.arrival);
  } else if (bank.open_row == kClosed) {
    next.kind = Kind::activate;
    next.ready = std::max(bank.activate_ok, run.arrival);
  } else {
    next.kind = Kind::precharge;
    next.ready = std::max(bank.precharge_ok, run.arrival);
  }
}

/// Takes a candidate that can go before the best one so far.
void ChannelController::offer(const Candidate& c) {
  const auto is_column = [](Command command) { return is_read(command) || is_write(command); };
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

// --- bounds of ranks and buses
// ----------------------------------------------------------------------------------------------

/// After a column command: earliest clocks of the next ones, but for the command bus.
void ChannelController::update_column_bounds() {
  const std::uint16_t last_rank = rank_of(last_column_bank_);
  const bool read = last_access_ == Access::read;
  for (std::uint16_t group = 0; group < groups_; ++group) {
    const auto rank = static_cast<std::uint16_t>(group / groups_per_rank_);
    const Cycle switched = rank == last_rank ? kLongAgo : data_end_ + t_.rank_switch;
    const Cycle read_turned =
        std::max({ranks_[rank].last_write + t_.write_to_read,
                  last_write_in_group_[group] + t_.write_to_read_L, switched - t_.read_latency});
    const Cycle write_turned =
        std::max(read ? last_column_ + t_.read_to_write : kLongAgo, switched - t_.write_latency);
    Cycle next_read = std::max(data_end_ - t_.read_latency, read_turned);
    Cycle next_write = std::max(data_end_ - t_.write_latency, write_turned);
    (read ? next_read : next_write) = std::max(read ? next_read : next_write, last_column_ + t_.tCCD);
    next_read = std::max(next_read, last_read_in_group_[group] + t_.tCCD_L);
    next_write = std::max(next_write, last_write_in_group_[group] + t_.tCCD_L_WR);
    turned_[0][group] = read_turned;
    turned_[1][group] = write_turned;
    bounds_[static_cast<std::size_t>(Kind::read)][group] = next_read;
    bounds_[static_cast<std::size_t>(Kind::write)][group] = next_write;
    bounds_[static_cast<std::size_t>(Kind::masked_write)][group] = next_write;
  }
}

void ChannelController::update_activate_bounds(std::uint16_t rank_index) {
  const RankState& rank = ranks_[rank_index];
  const Cycle common = std::max({rank.activates[(rank.oldest + 3) % 4] + t_.tRRD,
                                 rank.activates[rank.oldest] + t_.tFAW, rank.after_bank_refresh});
  const auto first = static_cast<std::uint16_t>(rank_index * groups_per_rank_);
  for (std::uint16_t group = first; group < first + groups_per_rank_; ++group) {
    bounds_[static_cast<std::size_t>(Kind::activate)][group] =
        std::max(common, last_activate_in_group_[group] + t_.tRRD_L);
  }
}

void ChannelController::update_precharge_bounds(std::uint16_t rank_index) {
  const auto first = static_cast<std::uint16_t>(rank_index * groups_per_rank_);
  for (std::uint16_t group = first; group < first + groups_per_rank_; ++group) {
    bounds_[static_cast<std::size_t>(Kind::precharge)][group] = ranks_[rank_index].last_precharge + t_.tPPD;
  }
}

// --- trains
// ----------------------------------------------------------------------------------------------

/// Bursts of the run whose lines have arrived by `time`, at least one.
std::uint16_t ChannelController::bursts_at(const RowRun& run, Cycle time) const {
  if (run.line_spacing == 0) {
    return run.bursts;
  }
  const Cycle lines = 1 + std::max<Cycle>(0, time - run.arrival) / run.line_spacing;
  return static_cast<std::uint16_t>(std::min<Cycle>(run.bursts, lines * bursts_per_line_));
}

/// Whether a bank of another group could use the bus between two bursts of one group.
bool ChannelController::other_group_is_ready(std::uint16_t bank, unsigned list, Cycle time) const {
  for (std::uint64_t pending = pending_banks_[list]; pending != 0; pending &= pending - 1) {
    const auto other = static_cast<std::uint16_t>(std::countr_zero(pending));
    const Next& next = next_[list][other];
    if (group_of(other) != group_of(bank) && next.kind < Kind::activate && next.ready <= time) {
      return true;
    }
  }
  return false;
}

/// When a row that was opened, or will be, for an older request can be read: bursts of younger ones would
/// then wait, and so does a train.
Cycle ChannelController::older_row_ready(const Candidate& c) const {
  const Entry& entry = entries_[c.entry];
  const unsigned list = list_of(entry.run.access);
  Cycle first = kNever;
  for (std::uint64_t pending = pending_banks_[list]; pending != 0; pending &= pending - 1) {
    const auto bank = static_cast<std::uint16_t>(std::countr_zero(pending));
    const Next& next = next_[list][bank];
    if (bank == c.bank || next.arrival >= entry.last_arrival) {
      continue;
    }
    if (next.kind >= Kind::activate) {
      const Cycle opening = (next.kind == Kind::precharge ? t_.tRPpb : 0) + t_.tRCD;
      first = std::min(first, earliest(next, bank) + opening);
    } else if (entries_[next.entry].row_state != RowState::hit) {
      first = std::min(first, next.ready);
    }
  }
  return first;
}

/// Bursts that one decision issues, `spacing` apart. A refresh that falls due cuts a train: what follows
/// waits for its next decision. Bank groups take turns burst by burst.
std::uint16_t ChannelController::train_length(const Candidate& c, Cycle spacing) const {
  const RowRun& run = entries_[c.entry].run;
  if (max_bursts_ == 1) {
    return 1;
  }
  std::uint16_t bursts = std::min(max_bursts_, bursts_at(run, c.time));
  // Row commands come between the bursts of a line of its own, and other bank groups' bursts between those of
  // a row.
  if (joins_ && (run.pieces == 1 || (spacing > t_.tCCD &&
                                     other_group_is_ready(c.bank, list_of(run.access), c.time + spacing)))) {
    return 1;
  }
  const Cycle due = joins_ && bursts > 1 ? std::min(limit_[c.bank], older_row_ready(c)) : limit_[c.bank];
  if (due != kNever && c.time + bursts * spacing > due) {
    bursts = static_cast<std::uint16_t>(std::clamp<Cycle>((due - c.time + spacing - 1) / spacing, 1, bursts));
  }
  return run.pieces > 1 ? whole_pieces(entries_[c.entry], bursts) : bursts;
}

/// Of `bursts` what makes whole pieces, and no more than until the bus may have to turn.
std::uint16_t ChannelController::whole_pieces(const Entry& entry, std::uint16_t bursts) const {
  const RowRun& run = entry.run;
  const std::int64_t piece = entry.piece_bursts;
  const std::int64_t first = run.bursts - piece * (run.pieces - 1);  // it may have been begun
  std::int64_t further = std::max<std::int64_t>(0, bursts - first) / piece;
  if (!pooled_ && queued_[0] > 0 && queued_[1] > 0) {
    const std::int64_t left =
        run.access == Access::write ? queued_[1] - spec_.write_low : spec_.write_high - queued_[1];
    further = std::min(further, std::max<std::int64_t>(1, left) - 1);
  }
  return static_cast<std::uint16_t>(first + further * piece);
}

}  // namespace kvsim::model
