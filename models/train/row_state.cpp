// SPDX-License-Identifier: Apache-2.0
#include "models/train/row_state.h"

namespace kvsim::model {

using config::RefreshMode;

ChannelRows::ChannelRows(const TrainTiming& timing, const config::DramPartSpec& part,
                         const config::MemoryControllerSpec& controller)
    : t_(timing),
      all_bank_(controller.refresh == RefreshMode::all_bank),
      banks_per_rank_(static_cast<std::uint32_t>(part.banks)),
      refresh_sets_(all_bank_ ? 1 : static_cast<std::uint32_t>(refresh_sets(part))),
      refresh_interval_(all_bank_ ? t_.tREFI : t_.tREFI * refresh_sets_ / bank_refreshes(part)),
      banks_(static_cast<std::size_t>(part.banks * controller.ranks)),
      ranks_(static_cast<std::size_t>(controller.ranks)),
      activates_of_(static_cast<std::size_t>(controller.ranks), SlotCalendar({0}, 1, timing.activate)) {
  if (controller.refresh == RefreshMode::none) {
    return;
  }
  // Ranks refresh in turn, and so do the banks of a rank that are not refreshed together.
  const std::int64_t interval = refresh_interval_ / refresh_sets_;
  for (std::size_t b = 0; b < banks_.size(); ++b) {
    const auto rank = static_cast<std::int64_t>(b) / part.banks;
    banks_[b].refresh_due =
        interval * (rank + 1) / controller.ranks + interval * static_cast<std::int64_t>(b % refresh_sets_);
  }
}

ChannelRows::Opening ChannelRows::open_anew(std::uint32_t bank, std::uint32_t row, std::int64_t asked) {
  Bank& b = banks_[bank];
  if (asked >= b.refresh_due) {
    refresh(bank, asked);
  }
  // Requests that hit an open row go before the one that closes it (first ready, first come).
  if (row == b.last_row && asked < b.last_row_until) {
    return {.ready = asked};
  }
  const bool conflict = b.row != kClosed;
  SlotCalendar& activates = activates_of_[bank / banks_per_rank_];
  activates.forget_before(floor_);
  const auto activate = [&] {
    const std::int64_t earliest =
        b.row != kClosed ? std::max(asked, b.precharge_ok) + t_.tRPpb : std::max(asked, b.activate_ok);
    return activates.book(earliest, t_.activate, 0, {});
  };
  std::int64_t at = activate();
  if (at >= b.refresh_due) {  // that goes first
    refresh(bank, b.refresh_due);
    at = activate();
  }
  const bool waited = b.refreshed && asked < b.activate_ok;
  b.held_by = waited || b.row_before_refresh == row ? Owner::refresh : Owner::row;
  b.last_row = b.row;
  b.last_row_until = at - t_.tRPpb;
  if (b.row != kClosed) {
    note_closed(bank, at - t_.tRPpb);
  }
  note_open(bank, at);
  b.refreshed = false;
  b.row_before_refresh = kClosed;
  b.row = row;
  b.column_ok = at + t_.tRCD;
  b.precharge_ok = at + t_.tRAS;
  ++(conflict ? conflicts_ : misses_);
  return {.ready = b.column_ok, .held_by = b.held_by};
}

ChannelRows::Opening ChannelRows::refresh_and_open(std::uint32_t bank, std::uint32_t row, std::int64_t asked,
                                                   std::int64_t command) {
  refresh(bank, command);
  return open_anew(bank, row, asked);
}

// --- the ranks' background
// --------------------------------------------------------------------------------------------------------

// A bank that is not asked for any more is closed by its next refresh, which is made up for only when it is
// asked for again: the rank takes note of it when another bank opens after that.

void ChannelRows::note_open(std::uint32_t bank, std::int64_t activate) {
  Rank& rank = ranks_[bank / banks_per_rank_];
  if (activate > rank.first_due) {
    close_due(rank, bank / banks_per_rank_ * banks_per_rank_, activate);
  }
  rank.background.open(activate);
  banks_[bank].open = true;
  rank.first_due = std::min(rank.first_due, banks_[bank].refresh_due);
}

void ChannelRows::note_closed(std::uint32_t bank, std::int64_t precharge) {
  if (banks_[bank].open) {
    ranks_[bank / banks_per_rank_].background.close(precharge);
    banks_[bank].open = false;
  }
}

void ChannelRows::close_due(Rank& rank, std::uint32_t first, std::int64_t time) {
  rank.first_due = kNever;
  for (std::uint32_t i = first; i < first + banks_per_rank_; ++i) {
    Bank& b = banks_[i];
    if (b.open && b.refresh_due < time) {
      rank.background.close(std::max(b.refresh_due, b.precharge_ok));
      b.open = false;
    } else if (b.open) {
      rank.first_due = std::min(rank.first_due, b.refresh_due);
    }
  }
}

DramActivity ChannelRows::activity(Picoseconds now) const {
  std::int64_t refreshes = refreshes_;
  for (std::uint32_t i = 0; i < banks_.size(); ++i) {
    const std::int64_t due = banks_[i].refresh_due;
    if (i % banks_per_rank_ < refresh_sets_ && due <= now.count()) {
      refreshes += (now.count() - due) / refresh_interval_ + 1;
    }
  }
  DramActivity sum{.activates = activates(),
                   .refreshes_all = all_bank_ ? refreshes : 0,
                   .refreshes_bank = all_bank_ ? 0 : refreshes};
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    RankBackground background = ranks_[r].background;
    for (std::uint32_t i = r * banks_per_rank_; i < (r + 1) * banks_per_rank_; ++i) {
      if (banks_[i].open && banks_[i].refresh_due < now.count()) {
        background.close(std::max(banks_[i].refresh_due, banks_[i].precharge_ok));
      }
    }
    const BackgroundTimes times = background.times(now.count());
    for (std::size_t s = 0; s < kBackgrounds; ++s) {
      sum.background[s] += Picoseconds(times[s]);
    }
  }
  return sum;
}

// --- refresh
// ------------------------------------------------------------------------------------------------------------------

/// Makes up for the refreshes of the bank that fell due by `time`.
void ChannelRows::refresh(std::uint32_t bank, std::int64_t time) {
  Bank& b = banks_[bank];
  const std::uint32_t rank = bank / banks_per_rank_ * banks_per_rank_;
  const std::uint32_t first = rank + (bank - rank) % refresh_sets_;
  const std::uint32_t end = rank + banks_per_rank_;
  const std::int64_t passed = (time - b.refresh_due) / refresh_interval_;  // while nobody asked for the bank
  for (std::uint32_t i = first; i < end && passed > 1; i += refresh_sets_) {
    note_closed(i, std::max(banks_[i].refresh_due, banks_[i].precharge_ok));
    banks_[i].refresh_due += (passed - 1) * refresh_interval_;
  }
  refreshes_ += std::max<std::int64_t>(0, passed - 1);
  while (time >= b.refresh_due) {
    refresh_once(first, end);
  }
}

void ChannelRows::refresh_once(std::uint32_t first, std::uint32_t end) {
  std::int64_t start = banks_[first].refresh_due;
  bool open = false;
  for (std::uint32_t i = first; i < end; i += refresh_sets_) {
    const Bank& b = banks_[i];
    open = open || b.row != kClosed;
    start = std::max(start, b.row != kClosed ? b.precharge_ok : b.activate_ok);
  }
  const std::int64_t precharge = all_bank_ ? t_.tRPab : t_.tRPpb;
  start += open ? precharge : 0;
  for (std::uint32_t i = first; i < end; i += refresh_sets_) {
    Bank& b = banks_[i];
    if (b.row != kClosed) {
      b.row_before_refresh = b.row;
      note_closed(i, start - precharge);
    }
    b.row = kClosed;
    b.refreshed = true;
    b.activate_ok = start + (all_bank_ ? t_.tRFCab : t_.tRFCpb);
    b.refresh_due += refresh_interval_;
  }
  ++refreshes_;
}

}  // namespace kvsim::model
