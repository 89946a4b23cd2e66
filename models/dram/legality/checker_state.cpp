// SPDX-License-Identifier: Apache-2.0
// The checker's second half: what state banks and ranks are in, and which commands that allows.
#include <fmt/format.h>

#include "models/dram/legality/checker.h"

namespace kvsim::model::legality {

namespace {

using enum Command;

constexpr std::string_view kRowState = "row state";
constexpr std::string_view kPowerState = "power state";

}  // namespace

void Checker::check_state(const IssuedCommand& now, const Place& at,
                          std::optional<std::uint32_t> column_row) {
  check_power(now, at);
  switch (now.command) {
    case activate:
      if (banks_[at.bank].row) {
        report(kRowState, fmt::format("ACT to {}, where row {} is open", name_of(Scope::bank, at),
                                      *banks_[at.bank].row));
      }
      break;
    case read:
    case read_auto_precharge:
    case write:
    case write_auto_precharge:
    case masked_write:
      check_column(now, at, column_row);
      break;
    case refresh_bank:
      check_bank_refresh(at);
      break;
    case refresh_all:
    case self_refresh_enter:
      check_closed(now, at);
      break;
    case precharge:  // of a closed bank does nothing, and is allowed
    case precharge_all:
    case power_down_enter:
    case power_down_exit:
    case self_refresh_exit:
      break;
  }
}

/// A rank that is down takes nothing but its exit, and only then.
void Checker::check_power(const IssuedCommand& now, const Place& at) {
  const Power power = ranks_[at.rank].power;
  const bool leaves_down = now.command == power_down_exit;
  const bool leaves_self_refresh = now.command == self_refresh_exit;
  if (leaves_down == (power == Power::down) && leaves_self_refresh == (power == Power::self_refresh)) {
    return;
  }
  const std::string_view state = power == Power::up     ? "is not in power-down or self-refresh"
                                 : power == Power::down ? "is in power-down"
                                                        : "is in self-refresh";
  if (power != Power::up || leaves_down || leaves_self_refresh) {
    report(kPowerState, fmt::format("{} to rank {}, which {}", to_string(now.command), at.rank, state));
  }
}

void Checker::check_closed(const IssuedCommand& now, const Place& at) {
  const Rank& rank = ranks_[at.rank];
  if (rank.open_banks > 0) {
    report(kRowState, fmt::format("{} to rank {}, where {} banks are open", to_string(now.command), at.rank,
                                  rank.open_banks));
  }
  // JESD79-4, JESD209-4: between two stays in self-refresh one refresh at least, of all banks or of each
  // bank.
  if (now.command == self_refresh_enter && rank.owes_refresh) {
    report("refresh before SRE",
           fmt::format("SRE to rank {}, which was not refreshed since its last SRX", at.rank));
  }
}

void Checker::check_column(const IssuedCommand& now, const Place& at,
                           std::optional<std::uint32_t> column_row) {
  if (now.column % part_.burst_length != 0) {
    report("burst", fmt::format("{} to column {}, which lies within a burst of {} columns",
                                to_string(now.command), now.column, part_.burst_length));
  }
  const std::optional<std::uint32_t>& open = banks_[at.bank].row;
  if (!open) {
    report(kRowState,
           fmt::format("{} to {}, where no row is open", to_string(now.command), name_of(Scope::bank, at)));
  } else if (column_row && *column_row != *open) {
    report(kRowState, fmt::format("{} to row {} of {}, where row {} is open", to_string(now.command),
                                  *column_row, name_of(Scope::bank, at), *open));
  }
}

void Checker::check_bank_refresh(const Place& at) {
  if (!table_.has_bank_refresh) {
    report("REFpb",
           fmt::format("REFpb to {}, but the part has no refresh of one bank", name_of(Scope::bank, at)));
    return;
  }
  // JESD209-4, "refresh command": a bank is not refreshed again before all eight were. JESD79-5, 4.13: nor is
  // one of DDR5 refreshed again before all others of its groups.
  const std::uint64_t bit = std::uint64_t{1} << (at.bank % banks_per_rank_);
  if (table_.refresh_once_a_set && (ranks_[at.rank].refreshed & bit) != 0) {
    report("REFpb set", fmt::format("REFpb to {} again before all other banks", name_of(Scope::bank, at)));
  }
  const std::size_t end = (at.rank + 1) * banks_per_rank_;
  for (std::size_t bank = first_of_set(at); bank < end; bank += table_.refresh_sets) {
    if (banks_[bank].row) {
      report(kRowState, fmt::format("REFpb to {}, where row {} is open",
                                    name_of(Scope::bank, place_of_bank(bank)), *banks_[bank].row));
    }
  }
}

void Checker::apply(const IssuedCommand& now, const Place& at) {
  Rank& rank = ranks_[at.rank];
  const auto command = static_cast<std::size_t>(now.command);
  banks_[at.bank].last[command] = now.clock;
  groups_[at.group][command] = now.clock;
  rank.last[command] = now.clock;
  const std::size_t first = at.rank * banks_per_rank_;
  switch (now.command) {
    case activate:
      rank.open_banks += banks_[at.bank].row ? 0 : 1;
      banks_[at.bank].row = now.row;
      break;
    case precharge:
    case read_auto_precharge:
    case write_auto_precharge:
      close(at.bank, rank);
      break;
    case precharge_all:
      for (std::size_t bank = first; bank < first + banks_per_rank_; ++bank) {
        close(bank, rank);
      }
      break;
    case refresh_all:
      apply_refresh(first, 1, now, rank);
      break;
    case refresh_bank:
      apply_refresh(first_of_set(at), table_.refresh_sets, now, rank);
      break;
    default:
      apply_power(now, at, rank);
  }
}

void Checker::close(std::size_t bank, Rank& rank) {
  rank.open_banks -= banks_[bank].row ? 1 : 0;
  banks_[bank].row.reset();
}

void Checker::apply_refresh(std::size_t first_bank, std::size_t step, const IssuedCommand& now, Rank& rank) {
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - banks_per_rank_);
  for (std::size_t bank = first_bank % banks_per_rank_; bank < banks_per_rank_; bank += step) {
    rank.refreshed |= std::uint64_t{1} << bank;
    if (now.command == refresh_bank) {
      banks_[first_bank - first_bank % banks_per_rank_ + bank].last[static_cast<std::size_t>(refresh_bank)] =
          now.clock;
    }
  }
  if (rank.refreshed == all) {
    rank.refreshed = 0;
    rank.owes_refresh = false;
  }
  if (refreshes_) {
    refreshes_->refreshed(first_bank, step, now.clock);
  }
}

void Checker::apply_power(const IssuedCommand& now, const Place& at, Rank& rank) {
  switch (now.command) {
    case power_down_enter:
      rank.power = Power::down;
      break;
    case self_refresh_enter:
      if (rank.power != Power::self_refresh && refreshes_) {
        refreshes_->asleep(at.rank, now.clock);
      }
      rank.power = Power::self_refresh;
      break;
    case self_refresh_exit:
      if (rank.power == Power::self_refresh) {
        rank.owes_refresh = true;
        rank.refreshed = 0;
        if (refreshes_) {
          refreshes_->awake(at.rank, now.clock);
        }
      }
      rank.power = Power::up;
      break;
    case power_down_exit:
      rank.power = Power::up;
      break;
    default:  // columns change no state
      break;
  }
}

}  // namespace kvsim::model::legality
