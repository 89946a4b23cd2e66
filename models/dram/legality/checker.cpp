// SPDX-License-Identifier: Apache-2.0
#include "models/dram/legality/checker.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "configs/error/error.h"

namespace kvsim::model::legality {

namespace {

using enum Command;

/// Far enough from every clock of a trace for any rule, near enough for sums not to overflow.
constexpr Cycle kLongAgo = -(Cycle{1} << 61);
constexpr Cycle kLastClock = Cycle{1} << 61;

std::size_t index(Command command) {
  return static_cast<std::size_t>(command);
}

bool is_column(Command command) {
  return is_read(command) || is_write(command);
}

}  // namespace

Checker::Checker(const config::DramPartSpec& part, const Conditions& conditions)
    : part_(part),
      conditions_(conditions),
      table_(rule_table(part, conditions)),
      banks_(static_cast<std::size_t>(part.banks * conditions.ranks)),
      groups_(static_cast<std::size_t>(part.bank_groups * conditions.ranks)),
      ranks_(static_cast<std::size_t>(conditions.ranks)),
      banks_per_rank_(static_cast<std::size_t>(part.banks)),
      banks_per_group_(static_cast<std::size_t>(part.banks / part.bank_groups)),
      command_bus_(table_),
      data_bus_(table_) {
  kvsim::check(part.banks <= 64 && banks_.size() <= std::numeric_limits<std::uint16_t>::max(),
               "the banks of a rank fit into a set, those of a channel into their index");
  for (std::size_t rule = 0; rule < table_.pairs.size(); ++rule) {
    const PairRule& pair = table_.pairs[rule];
    checks_[index(pair.to)].push_back(
        {pair.clocks, static_cast<std::uint32_t>(rule), static_cast<std::uint8_t>(pair.from), pair.scope});
  }
  forget_clocks();
  if (conditions.refresh != config::RefreshMode::none && table_.tREFI >= 1) {
    refreshes_.emplace(RefreshWatch::Shape{ranks_.size(), banks_per_rank_}, table_.tREFI, table_.postponed);
  }
}

void Checker::forget_clocks() {
  for (Bank& bank : banks_) {
    bank.last.fill(kLongAgo);
  }
  for (Last& last : groups_) {
    last.fill(kLongAgo);
  }
  for (Rank& rank : ranks_) {
    rank.last.fill(kLongAgo);
    rank.activates.fill(kLongAgo);
  }
  command_bus_ = CommandBus(table_);
  data_bus_.clear();
}

std::span<const Violation> Checker::check(const IssuedCommand& now, std::optional<std::uint32_t> column_row) {
  found_.clear();
  broken_.clear();
  if (!in_range(now)) {
    return found_;
  }
  const Place at = place_of(now);
  if (now.clock < last_clock_) {  // distances across the break mean nothing
    report("order of clocks", fmt::format("clock {} after clock {}", now.clock, last_clock_));
    forget_clocks();
  }
  check_time(now, at);
  check_state(now, at, column_row);
  apply(now, at);
  last_clock_ = now.clock;
  return found_;
}

void Checker::report(std::string_view rule, std::string text) {
  found_.push_back({rule, std::move(text)});
}

void Checker::report_pair(const IssuedCommand& now, const Place& at, const PairCheck& check,
                          Cycle from_clock) {
  const PairRule& rule = table_.pairs[check.rule];
  const auto same = std::find_if(broken_.begin(), broken_.end(), [&](const Broken& b) {
    return b.from == rule.from && b.from_clock == from_clock;
  });
  if (same != broken_.end() && same->clocks >= rule.clocks) {
    return;
  }
  Violation violation{
      rule.name,
      fmt::format("{} after {} to {} after {} clocks, {} is {}", to_string(now.command), to_string(rule.from),
                  name_of(rule.scope, at), now.clock - from_clock, rule.formula, rule.clocks)};
  if (same != broken_.end()) {
    same->clocks = rule.clocks;
    found_[same->position] = std::move(violation);
    return;
  }
  broken_.push_back({rule.from, from_clock, rule.clocks, found_.size()});
  found_.push_back(std::move(violation));
}

bool Checker::in_range(const IssuedCommand& now) {
  const auto beyond = [&](std::string_view what, std::int64_t value, std::int64_t count) {
    if (value >= 0 && value < count) {
      return false;
    }
    report("range",
           fmt::format("{} to {} {}, which are 0 to {}", to_string(now.command), what, value, count - 1));
    return true;
  };
  bool inside = !beyond("bank", now.bank, static_cast<std::int64_t>(banks_.size()));
  inside = !beyond("row", now.row, part_.rows) && inside;
  inside = !beyond("column", now.column, part_.columns) && inside;
  return !beyond("clock", now.clock, kLastClock) && inside;
}

Checker::Place Checker::place_of(const IssuedCommand& now) const {
  return place_of_bank(now.bank);
}

const Checker::Last& Checker::last_in(Scope scope, const Place& at) const {
  switch (scope) {
    case Scope::bank:
      return banks_[at.bank].last;
    case Scope::group:
      return groups_[at.group];
    case Scope::rank:
      break;
  }
  return ranks_[at.rank].last;
}

std::string Checker::name_of(Scope scope, const Place& at) const {
  std::string name;
  if (scope != Scope::rank) {
    const std::size_t groups = banks_per_rank_ / banks_per_group_;
    if (groups > 1) {
      name = fmt::format("bank group {}", at.group % groups);
    }
    if (scope == Scope::bank) {
      name += fmt::format("{}bank {}", name.empty() ? "" : " ", at.bank % banks_per_group_);
    }
  }
  if (name.empty()) {
    return fmt::format("rank {}", at.rank);
  }
  return ranks_.size() > 1 ? fmt::format("{} of rank {}", name, at.rank) : name;
}

void Checker::check_time(const IssuedCommand& now, const Place& at) {
  check_pairs(now, at);
  check_window(now, at);
  check_buses(now, at);
  if (refreshes_) {
    if (const auto late = refreshes_->late_bank(now.clock)) {
      report("tREFI",
             fmt::format("{} is owed more than {} refreshes of {:.2f} clocks each",
                         name_of(Scope::bank, place_of_bank(*late)), table_.postponed, table_.tREFI));
    }
  }
}

void Checker::check_pairs(const IssuedCommand& now, const Place& at) {
  for (const PairCheck& check : checks_[index(now.command)]) {
    if (now.command != refresh_bank || check.scope == Scope::rank) [[likely]] {
      check_pair(now, at, check);
      continue;
    }
    const std::size_t end = (at.rank + 1) * banks_per_rank_;
    for (std::size_t bank = first_of_set(at); bank < end; bank += table_.refresh_sets) {
      check_pair(now, place_of_bank(bank), check);
    }
  }
}

void Checker::check_pair(const IssuedCommand& now, const Place& at, const PairCheck& check) {
  const Cycle from_clock = last_in(check.scope, at)[check.from];
  if (now.clock - from_clock < check.clocks) [[unlikely]] {
    report_pair(now, at, check, from_clock);
  }
}

void Checker::check_window(const IssuedCommand& now, const Place& at) {
  if (now.command != activate && !(now.command == refresh_bank && table_.refresh_activates)) {
    return;
  }
  Rank& rank = ranks_[at.rank];
  Cycle& oldest = rank.activates[rank.oldest_activate];
  if (now.clock - oldest < table_.tFAW) {
    report("tFAW", fmt::format("five activates of rank {} within {} clocks, tFAW is {}", at.rank,
                               now.clock - oldest, table_.tFAW));
  }
  oldest = now.clock;
  rank.oldest_activate = (rank.oldest_activate + 1) % rank.activates.size();
}

void Checker::check_buses(const IssuedCommand& now, const Place& at) {
  if (conditions_.command_bus) {
    if (const auto overlap = command_bus_.put(now.command, now.clock)) {
      report(overlap->rule, fmt::format("{} needs the command bus from clock {} on, it is free from {} on",
                                        to_string(now.command), overlap->first, overlap->free_at));
    }
  }
  if (!is_column(now.command)) {
    return;
  }
  const auto conflict = data_bus_.put(now.command, now.clock, static_cast<std::uint32_t>(at.rank));
  if (!conflict) {
    return;
  }
  const DataBus::Burst& earlier = conflict->earlier;
  const bool told = std::any_of(broken_.begin(), broken_.end(), [&](const Broken& b) {
    return b.from == earlier.command && b.from_clock == earlier.clock;
  });
  if (told) {
    return;
  }
  if (conflict->gap < 0) {
    report("data bus",
           fmt::format("data of {} overlap those of the {} at clock {} by {} clocks", to_string(now.command),
                       to_string(earlier.command), earlier.clock, -conflict->gap));
  } else {
    report("tRTRS",
           fmt::format("data of {} are {} clocks from those of the {} of rank {} at clock {}, tRTRS is {}",
                       to_string(now.command), conflict->gap, to_string(earlier.command), earlier.rank,
                       earlier.clock, table_.tRTRS));
  }
}

}  // namespace kvsim::model::legality
