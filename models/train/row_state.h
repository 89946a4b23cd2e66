// SPDX-License-Identifier: Apache-2.0
// Rows, activates and refreshes of one channel: when a row can be read, without the commands in between.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "configs/spec/dram_spec.h"
#include "models/dram/channel.h"
#include "models/dram/energy.h"
#include "models/train/slot_calendar.h"
#include "models/train/train_timing.h"

namespace kvsim::model {

/// All times in picoseconds, of commands.
class ChannelRows {
 public:
  ChannelRows(const TrainTiming& timing, const config::DramPartSpec& part,
              const config::MemoryControllerSpec& controller);

  struct Opening {
    std::int64_t ready = 0;  ///< for the first column command
    Owner held_by = Owner::queue;
  };
  /// Opens `row` for a request that comes at `asked`.
  Opening open(std::uint32_t bank, std::uint32_t row, std::int64_t asked) {
    const Bank& b = banks_[bank];
    if (b.row == row && asked < b.refresh_due) {
      return {.ready = std::max(asked, b.column_ok), .held_by = b.held_by};
    }
    return open_anew(bank, row, asked);
  }
  /// A refresh of `bank` has fallen due before a column command could go at `command`: it comes first.
  [[nodiscard]] bool refresh_comes_before(std::uint32_t bank, std::int64_t command) const {
    return command >= banks_[bank].refresh_due;
  }
  /// A column command to the open row of `bank` goes at `command`; the bank is busy with it for
  /// `until_precharge`.
  void use(std::uint32_t bank, std::int64_t command, std::int64_t until_precharge) {
    banks_[bank].precharge_ok = std::max(banks_[bank].precharge_ok, command + until_precharge);
  }

  [[nodiscard]] bool is_open(std::uint32_t bank, std::uint32_t row) const { return banks_[bank].row == row; }
  /// When a column command to `row` could go at the earliest, asked for at `asked`, but for activates of
  /// other banks.
  [[nodiscard]] std::int64_t ready(std::uint32_t bank, std::uint32_t row, std::int64_t asked) const {
    const Bank& b = banks_[bank];
    if (b.row == row) {
      return std::max(asked, b.column_ok);
    }
    return t_.tRCD +
           (b.row == kClosed ? std::max(asked, b.activate_ok) : std::max(asked, b.precharge_ok) + t_.tRPpb);
  }
  /// Refreshes what has fallen due by `command` and opens the row again.
  Opening refresh_and_open(std::uint32_t bank, std::uint32_t row, std::int64_t asked, std::int64_t command);

  /// Nothing is asked for before `time` any more.
  void forget_before(std::int64_t time) { floor_ = time; }
  [[nodiscard]] std::int64_t misses() const { return misses_; }
  [[nodiscard]] std::int64_t conflicts() const { return conflicts_; }
  [[nodiscard]] std::int64_t activates() const { return misses_ + conflicts_; }
  [[nodiscard]] std::int64_t refreshes() const { return refreshes_; }
  /// Activates, refreshes and the ranks' time by state until `now`, with the refreshes of banks that nobody
  /// has asked for since they fell due.
  [[nodiscard]] DramActivity activity(Picoseconds now) const;

 private:
  static constexpr std::uint32_t kClosed = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  struct Bank {
    std::uint32_t row = kClosed;
    std::uint32_t row_before_refresh = kClosed;
    std::uint32_t last_row = kClosed;  ///< that made way for `row`,
    std::int64_t last_row_until = 0;   ///< when it was closed
    std::int64_t refresh_due = kNever;
    std::int64_t column_ok = 0;
    std::int64_t precharge_ok = 0;
    std::int64_t activate_ok = 0;
    Owner held_by = Owner::row;  ///< why column_ok is as late as it is
    bool refreshed = false;      ///< and not opened since
    bool open = false;           ///< for the rank's background: a refresh that fell due has closed it
  };
  struct Rank {
    RankBackground background;
    std::int64_t first_due = kNever;  ///< earliest refresh of a bank that is open
  };

  Opening open_anew(std::uint32_t bank, std::uint32_t row, std::int64_t asked);
  void note_open(std::uint32_t bank, std::int64_t activate);
  void note_closed(std::uint32_t bank, std::int64_t precharge);
  void close_due(Rank& rank, std::uint32_t first, std::int64_t time);
  void refresh(std::uint32_t bank, std::int64_t time);
  void refresh_once(std::uint32_t first, std::uint32_t end);

  TrainTiming t_;
  bool all_bank_;
  std::uint32_t banks_per_rank_;
  std::uint32_t refresh_sets_;     ///< of banks that a refresh takes together; each has every so manyth
  std::int64_t refresh_interval_;  ///< of a bank
  std::vector<Bank> banks_;
  std::vector<Rank> ranks_;
  std::vector<SlotCalendar> activates_of_;  ///< by rank
  std::int64_t floor_ = 0;
  std::int64_t misses_ = 0;
  std::int64_t conflicts_ = 0;
  std::int64_t refreshes_ = 0;
};

}  // namespace kvsim::model
