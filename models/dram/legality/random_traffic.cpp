// SPDX-License-Identifier: Apache-2.0
#include "models/dram/legality/random_traffic.h"

#include <algorithm>

namespace kvsim::model::legality {

using enum Command;

namespace {

std::size_t index(Command command) {
  return static_cast<std::size_t>(command);
}

}  // namespace

RandomTraffic::RandomTraffic(const config::DramPartSpec& part, const Conditions& conditions,
                             std::uint64_t seed)
    : part_(part),
      table_(rule_table(part, conditions)),
      random_(seed),
      banks_(static_cast<std::size_t>(part.banks * conditions.ranks)),
      ranks_(static_cast<std::size_t>(conditions.ranks)),
      banks_per_rank_(static_cast<std::size_t>(part.banks)) {
  for (Rank& rank : ranks_) {
    rank.due = rank.refresh_at = table_.tREFI;
  }
}

void RandomTraffic::Bound::raise(Cycle to, const std::string& reason, std::optional<std::size_t> by_pair) {
  if (to > clock) {
    clock = to;
    reasons.clear();
    pair.reset();
  }
  const bool told = by_pair && pair == by_pair;  // by another bank of those refreshed together
  if (to == clock && !told) {
    reasons.push_back(reason);
    pair = by_pair;
  }
}

Drawn RandomTraffic::next() {
  Drawn drawn;
  draw(drawn.command);
  Bound bound = earliest(drawn.command);
  if (chance(20)) {
    bound.clock += static_cast<Cycle>(random_.below(chance(10) ? 400 : 30));
    bound_by_data(drawn.command, bound);
  } else if (bound.reasons.size() == 1) {
    drawn.only_reason = bound.reasons[0];
    drawn.pair = bound.pair;
  }
  drawn.command.clock = bound.clock;
  if (is_read(drawn.command.command) || is_write(drawn.command.command)) {
    drawn.open_row = banks_[drawn.command.bank].row;
  }
  apply(drawn.command);
  return drawn;
}

std::size_t RandomTraffic::any_bank(std::size_t rank) {
  if (random_.below(1000) == 0) {  // from few banks, which are often all closed, to all
    banks_in_use_ = 1 + random_.below(chance(50) ? 2 : banks_per_rank_);
  }
  if (last_bank_ / banks_per_rank_ == rank && chance(50)) {
    return last_bank_;
  }
  return rank * banks_per_rank_ + random_.below(banks_in_use_);
}

bool RandomTraffic::all_closed(std::size_t rank) const {
  for (std::size_t bank = rank * banks_per_rank_; bank < (rank + 1) * banks_per_rank_; ++bank) {
    if (banks_[bank].row) {
      return false;
    }
  }
  return true;
}

void RandomTraffic::draw(IssuedCommand& command) {
  std::size_t rank = random_.below(ranks_.size());
  for (std::size_t other = 0; other < ranks_.size(); ++other) {  // a refresh that is due goes first
    if (ranks_[other].power != Power::self_refresh && static_cast<double>(now_) >= ranks_[other].refresh_at) {
      rank = other;
    }
  }
  const std::size_t bank = any_bank(rank);
  last_bank_ = bank;
  command.bank = static_cast<std::uint16_t>(rank * banks_per_rank_);
  if (ranks_[rank].power != Power::up) {
    command.command = ranks_[rank].power == Power::down ? power_down_exit : self_refresh_exit;
  } else if (!draw_for_refresh(rank, command) && !draw_for_sleep(rank, command)) {
    draw_for_bank(bank, command);
  }
}

bool RandomTraffic::draw_for_refresh(std::size_t rank, IssuedCommand& command) {
  const bool ahead_of_time = all_closed(rank) && chance(3);
  if (static_cast<double>(now_) < ranks_[rank].refresh_at && !ahead_of_time) {
    return false;
  }
  if (all_closed(rank)) {
    command.command = refresh_all;
    const bool set_begun = banks_[last_refreshed_].refreshed;
    if (table_.has_bank_refresh && chance(set_begun ? 97 : 60)) {
      command.command = refresh_bank;
      if (may_refresh(last_refreshed_) && last_refreshed_ / banks_per_rank_ == rank && chance(30)) {
        command.bank = last_refreshed_;
        return true;
      }
      const bool upwards = chance(50);
      command.bank = static_cast<std::uint16_t>(upwards ? command.bank : command.bank + banks_per_rank_ - 1);
      while (!may_refresh(command.bank)) {
        command.bank = static_cast<std::uint16_t>(command.bank + (upwards ? 1 : -1));
      }
    }
    return true;
  }
  command.command = precharge_all;
  if (chance(50)) {
    command.command = precharge;
    while (!banks_[command.bank].row) {
      ++command.bank;
    }
  }
  return true;
}

bool RandomTraffic::draw_for_sleep(std::size_t rank, IssuedCommand& command) {
  Rank& r = ranks_[rank];
  if (chance(all_closed(rank) ? 4 : 1)) {
    command.command = power_down_enter;
    return true;
  }
  r.wants_sleep = r.wants_sleep || random_.below(all_closed(rank) ? 50 : 1000) == 0;
  if (!r.wants_sleep) {
    return false;
  }
  if (r.owes_refresh) {
    r.refresh_at = static_cast<double>(now_);
    return draw_for_refresh(rank, command);
  }
  command.command = self_refresh_enter;
  if (!all_closed(rank)) {
    command.command = precharge_all;
  } else {
    r.wants_sleep = false;
  }
  return true;
}

bool RandomTraffic::refreshed_together(std::size_t bank, std::size_t other) const {
  return bank / banks_per_rank_ == other / banks_per_rank_ &&
         bank % banks_per_rank_ % table_.refresh_sets == other % banks_per_rank_ % table_.refresh_sets;
}

bool RandomTraffic::may_refresh(std::size_t bank) const {
  bool may = table_.has_bank_refresh;
  for (std::size_t other = 0; other < banks_.size(); ++other) {
    may = may && (!refreshed_together(bank, other) || (!banks_[other].row && !banks_[other].refreshed));
  }
  return may;
}

void RandomTraffic::draw_for_bank(std::size_t bank, IssuedCommand& command) {
  command.bank = static_cast<std::uint16_t>(bank);
  if (chance(1)) {  // whether something is open or not
    command.command = precharge;
    if (chance(50)) {
      command.command = precharge_all;
      command.bank = static_cast<std::uint16_t>(bank / banks_per_rank_ * banks_per_rank_);
    }
    return;
  }
  if (!banks_[bank].row) {
    const bool refreshes = may_refresh(bank) && chance(8);
    command.command = refreshes ? refresh_bank : activate;
    command.row =
        refreshes ? 0 : static_cast<std::uint32_t>(random_.below(static_cast<std::uint64_t>(part_.rows)));
    return;
  }
  static constexpr std::array kChoice{read,
                                      read,
                                      write,
                                      write,
                                      write,
                                      masked_write,
                                      read,
                                      masked_write,
                                      precharge,
                                      precharge,
                                      read_auto_precharge,
                                      write_auto_precharge};
  command.command = chance(2) ? precharge_all : kChoice.at(random_.below(kChoice.size()));
  if (command.command == precharge_all) {
    command.bank = static_cast<std::uint16_t>(bank / banks_per_rank_ * banks_per_rank_);
  } else if (command.command != precharge) {
    const auto bursts = static_cast<std::uint64_t>(part_.columns / part_.burst_length);
    command.column =
        static_cast<std::uint32_t>(random_.below(bursts) * static_cast<std::uint64_t>(part_.burst_length));
  }
}

bool RandomTraffic::in_scope(const PairRule& rule, std::size_t from, std::size_t to) const {
  const auto group = static_cast<std::size_t>(part_.banks / part_.bank_groups);
  switch (rule.scope) {
    case Scope::bank:
      return from == to;
    case Scope::group:
      return from / group == to / group;
    case Scope::rank:
      break;
  }
  return from / banks_per_rank_ == to / banks_per_rank_;
}

RandomTraffic::Bound RandomTraffic::earliest(const IssuedCommand& command) const {
  Bound bound;
  // LPDDR5's ACT-1 takes the clock before ACT-2 here.
  const bool split = table_.split_activate && command.command == activate;
  bound.raise(now_ + table_.length[index(command.command)] + (split ? 1 : 0), "command bus");
  if (split) {
    bound.raise(bound.clock, "ACT-1, which could be put elsewhere");
  }
  for (std::size_t rule = 0; rule < table_.pairs.size(); ++rule) {
    const PairRule& pair = table_.pairs[rule];
    for (std::size_t bank = 0; pair.to == command.command && bank < banks_.size(); ++bank) {
      const auto& last = banks_[bank].last[index(pair.from)];
      const bool together = command.command == refresh_bank && pair.scope == Scope::bank &&
                            refreshed_together(bank, command.bank);
      if (last && (together || in_scope(pair, bank, command.bank))) {
        bound.raise(*last + pair.clocks, std::string(pair.name), rule);
      }
    }
  }
  const std::deque<Cycle>& activates = ranks_[command.bank / banks_per_rank_].activates;
  const bool counts =
      command.command == activate || (command.command == refresh_bank && table_.refresh_activates);
  if (counts && activates.size() == 4) {
    bound.raise(activates.front() + table_.tFAW, "tFAW");
  }
  bound_by_data(command, bound);
  return bound;
}

void RandomTraffic::bound_by_data(const IssuedCommand& command, Bound& bound) const {
  if (!is_read(command.command) && !is_write(command.command)) {
    return;
  }
  const std::size_t rank = command.bank / banks_per_rank_;
  const Cycle latency = is_read(command.command) ? table_.read_latency : table_.write_latency;
  const auto meets = [&](const Burst& burst, Cycle clock) {
    const Cycle gap = burst.rank == rank ? 0 : table_.tRTRS;
    const Cycle start = clock + latency;
    return start < burst.start + table_.burst + gap && burst.start < start + table_.burst + gap;
  };
  for (bool free = false; !free;) {
    free = true;
    for (const Burst& burst : bursts_) {
      if (meets(burst, bound.clock)) {
        const Cycle gap = burst.rank == rank ? 0 : table_.tRTRS;
        bound.raise(burst.start + table_.burst + gap - latency, gap > 0 ? "tRTRS" : "data bus");
        free = false;
      }
    }
  }
  for (const Burst& burst : bursts_) {  // bursts that alone would keep it from the clock before
    if (bound.reasons.size() == 1 && bound.pair && meets(burst, bound.clock - 1) && burst.rank != rank) {
      bound.reasons.push_back("tRTRS");
    }
  }
}

void RandomTraffic::apply(const IssuedCommand& command) {
  now_ = command.clock;
  const std::size_t rank_index = command.bank / banks_per_rank_;
  Rank& rank = ranks_[rank_index];
  Bank& bank = banks_[command.bank];
  bank.last[index(command.command)] = command.clock;
  const bool auto_precharge =
      command.command == read_auto_precharge || command.command == write_auto_precharge;
  if (is_read(command.command) || is_write(command.command)) {
    bursts_.push_back(
        {rank_index, now_ + (is_read(command.command) ? table_.read_latency : table_.write_latency)});
    if (bursts_.size() > 64) {
      bursts_.pop_front();
    }
  }
  if (command.command == activate || (command.command == refresh_bank && table_.refresh_activates)) {
    rank.activates.push_back(now_);
    if (rank.activates.size() > 4) {
      rank.activates.pop_front();
    }
  }
  if (command.command == activate) {
    bank.row = command.row;
  } else if (command.command == precharge || auto_precharge) {
    bank.row.reset();
  } else if (command.command == precharge_all) {
    for (std::size_t b = 0; b < banks_per_rank_; ++b) {
      banks_[rank_index * banks_per_rank_ + b].row.reset();
    }
  }
  apply_refresh(command, rank_index);
}

void RandomTraffic::apply_refresh(const IssuedCommand& command, std::size_t rank_index) {
  Rank& rank = ranks_[rank_index];
  const auto first = banks_.begin() + static_cast<std::ptrdiff_t>(rank_index * banks_per_rank_);
  const auto end = first + static_cast<std::ptrdiff_t>(banks_per_rank_);
  const auto refreshed = [](const Bank& bank) { return bank.refreshed; };
  if (command.command == refresh_bank) {
    for (std::size_t bank = 0; bank < banks_.size(); ++bank) {
      if (refreshed_together(bank, command.bank)) {
        banks_[bank].refreshed = true;
        banks_[bank].last[index(refresh_bank)] = command.clock;
      }
    }
    last_refreshed_ = command.bank;
  }
  if (command.command == refresh_all ||
      (command.command == refresh_bank && std::all_of(first, end, refreshed))) {
    std::for_each(first, end, [](Bank& bank) { bank.refreshed = false; });
    rank.owes_refresh = false;
    // Each within what may be postponed, some later than the next is due.
    rank.due = std::min(rank.due + table_.tREFI, static_cast<double>(now_) + 8 * table_.tREFI);
    rank.refresh_at =
        rank.due +
        table_.tREFI * static_cast<double>(random_.below(static_cast<std::uint64_t>(table_.postponed) - 1));
  }
  if (command.command == power_down_enter || command.command == power_down_exit) {
    rank.power = command.command == power_down_enter ? Power::down : Power::up;
  } else if (command.command == self_refresh_enter) {
    rank.power = Power::self_refresh;
    rank.slept_at = now_;
  } else if (command.command == self_refresh_exit) {
    rank.power = Power::up;
    rank.owes_refresh = true;
    rank.due += static_cast<double>(now_ - rank.slept_at);
    rank.refresh_at += static_cast<double>(now_ - rank.slept_at);
    std::for_each(first, end, [](Bank& bank) { bank.refreshed = false; });
  }
}

}  // namespace kvsim::model::legality
