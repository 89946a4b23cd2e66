// SPDX-License-Identifier: Apache-2.0
#include "models/testing/energy_recount.h"

#include <algorithm>
#include <array>

namespace kvsim::model::testing {

namespace {

struct Span {
  Cycle from = 0;
  Cycle to = 0;
};

struct Sleep {
  Span span;
  bool refreshes = false;
};

struct BankLog {
  bool open = false;
  Cycle activated = 0;
  Cycle may_close = 0;  ///< tRAS, and the recovery of its reads and writes
};

/// The life of one rank as intervals: of each bank's open rows, and of its sleep.
class RankLog {
 public:
  RankLog(std::size_t banks, const ClockTiming& timing) : t_(timing), banks_(banks) {}

  void take(const IssuedCommand& issued, std::size_t bank_index) {
    BankLog& bank = banks_[bank_index];
    const Cycle at = issued.clock;
    switch (issued.command) {
      case Command::activate:
        bank = {.open = true, .activated = at, .may_close = at + t_.tRAS};
        break;
      case Command::precharge:
        close(bank, at);
        break;
      case Command::precharge_all:
        for (BankLog& each : banks_) {
          close(each, at);
        }
        break;
      case Command::power_down_enter:
      case Command::self_refresh_enter:
        sleeps_.push_back({{at, at}, issued.command == Command::self_refresh_enter});
        asleep_ = true;
        break;
      case Command::power_down_exit:
      case Command::self_refresh_exit:
        sleeps_.back().span.to = at;
        asleep_ = false;
        break;
      case Command::refresh_all:
      case Command::refresh_bank:
        break;
      default:
        take_column(issued, bank);
    }
  }

  [[nodiscard]] BackgroundTimes times(Cycle until) {
    for (BankLog& bank : banks_) {
      close(bank, until);
    }
    if (asleep_) {
      sleeps_.back().span.to = until;
    }
    BackgroundTimes times{};
    const auto add = [&](Background state, Cycle time) { times[static_cast<std::size_t>(state)] += time; };
    Cycle awake = 0;
    for (const Sleep& sleep : sleeps_) {
      const Cycle from = std::min(sleep.span.from, until);
      const Cycle open = open_within({awake, from});
      add(Background::active_standby, open);
      add(Background::precharge_standby, from - awake - open);
      const bool active = open_within({from - 1, from}) > 0;
      awake = std::min(sleep.span.to, until);
      add(sleep.refreshes ? Background::self_refresh
          : active        ? Background::active_power_down
                          : Background::precharge_power_down,
          awake - from);
    }
    const Cycle open = open_within({awake, until});
    add(Background::active_standby, open);
    add(Background::precharge_standby, until - awake - open);
    return times;
  }

 private:
  void take_column(const IssuedCommand& issued, BankLog& bank) {
    const bool read = is_read(issued.command);
    bank.may_close =
        std::max(bank.may_close, issued.clock + (read ? t_.read_to_precharge : t_.write_to_precharge));
    if (issued.command == Command::read_auto_precharge || issued.command == Command::write_auto_precharge) {
      close(bank, bank.may_close);
    }
  }
  void close(BankLog& bank, Cycle at) {
    if (bank.open) {
      open_.push_back({bank.activated, at});
      bank.open = false;
    }
  }
  /// Clocks of `window` in which some bank is open.
  [[nodiscard]] Cycle open_within(Span window) {
    std::sort(open_.begin(), open_.end(), [](const Span& a, const Span& b) { return a.from < b.from; });
    Cycle covered = 0;
    Cycle reached = window.from;
    for (const Span& span : open_) {
      const Cycle from = std::max(span.from, reached);
      const Cycle to = std::min(span.to, window.to);
      covered += std::max<Cycle>(0, to - from);
      reached = std::max(reached, to);
    }
    return covered;
  }

  ClockTiming t_;
  std::vector<BankLog> banks_;
  std::vector<Span> open_;
  std::vector<Sleep> sleeps_;
  bool asleep_ = false;
};

}  // namespace

DramActivity recount(const std::vector<IssuedCommand>& log, const config::DeviceSpec& device, Cycle until) {
  const auto banks = static_cast<std::size_t>(device.dram.banks);
  const CommandClock clock(command_clock(device.dram));
  std::vector<RankLog> ranks(static_cast<std::size_t>(device.controller.ranks),
                             RankLog(banks, clock_timing(device.dram, device.controller.turnaround)));
  DramActivity sum;
  for (const IssuedCommand& issued : log) {
    ranks[issued.bank / banks].take(issued, issued.bank % banks);
    sum.activates += issued.command == Command::activate;
    sum.reads += is_read(issued.command);
    sum.writes += is_write(issued.command);
    sum.refreshes_all += issued.command == Command::refresh_all;
    sum.refreshes_bank += issued.command == Command::refresh_bank;
  }
  for (RankLog& rank : ranks) {
    const BackgroundTimes times = rank.times(until);
    for (std::size_t i = 0; i < kBackgrounds; ++i) {
      sum.background[i] += clock.time(times[i]);
    }
  }
  return sum;
}

}  // namespace kvsim::model::testing
