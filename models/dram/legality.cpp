// SPDX-License-Identifier: Apache-2.0
#include "models/dram/legality.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace kvsim::model {

namespace {

enum class Scope { bank, group, rank };

/// `to` comes at least `spacing` cycles after the last `from` in the scope.
struct PairRule {
  std::string_view name;
  Command from;
  Command to;
  Scope scope;
  Cycle spacing;
};

std::vector<PairRule> pair_rules(const ClockTiming& t) {
  using enum Command;
  return {
      {"tRCD", activate, read, Scope::bank, t.tRCD},
      {"tRCD", activate, write, Scope::bank, t.tRCD},
      {"tRAS", activate, precharge, Scope::bank, t.tRAS},
      {"tRAS", activate, precharge_all, Scope::rank, t.tRAS},
      {"tRRD", activate, activate, Scope::rank, t.tRRD},
      {"tRPpb", precharge, activate, Scope::bank, t.tRPpb},
      {"tRPpb", precharge, refresh_bank, Scope::bank, t.tRPpb},
      {"tRPpb", precharge, refresh_all, Scope::rank, t.tRPpb},
      {"tRPab", precharge_all, activate, Scope::rank, t.tRPab},
      {"tRPab", precharge_all, refresh_bank, Scope::rank, t.tRPab},
      {"tRPab", precharge_all, refresh_all, Scope::rank, t.tRPab},
      {"read to precharge", read, precharge, Scope::bank, t.read_to_precharge},
      {"read to precharge", read, precharge_all, Scope::rank, t.read_to_precharge},
      {"write to precharge", write, precharge, Scope::bank, t.write_to_precharge},
      {"write to precharge", write, precharge_all, Scope::rank, t.write_to_precharge},
      {"tCCD", read, read, Scope::rank, t.tCCD},
      {"tCCD", write, write, Scope::rank, t.tCCD},
      {"tCCD_L", read, read, Scope::group, t.tCCD_L},
      {"tCCD_L", write, write, Scope::group, t.tCCD_L},
      {"read to write", read, write, Scope::rank, t.read_to_write},
      {"write to read", write, read, Scope::rank, t.write_to_read},
      {"tRFCab", refresh_all, activate, Scope::rank, t.tRFCab},
      {"tRFCab", refresh_all, refresh_all, Scope::rank, t.tRFCab},
      {"tRFCpb", refresh_bank, activate, Scope::bank, t.tRFCpb},
      {"tRFCpb", refresh_bank, refresh_bank, Scope::rank, t.tRFCpb},
  };
}

class Checker {
 public:
  Checker(const std::vector<IssuedCommand>& log, const config::DeviceSpec& device)
      : log_(log),
        device_(device),
        t_(clock_timing(device.dram, device.controller.turnaround)),
        rules_(pair_rules(t_)),
        banks_(static_cast<std::size_t>(device.dram.banks * device.controller.ranks)) {}

  std::vector<Violation> run() {
    for (position_ = 0; position_ < log_.size(); ++position_) {
      const IssuedCommand& now = log_[position_];
      pairs(now);
      window(now);
      note_data(now);
      state(now);
      banks_[now.bank].last[static_cast<std::size_t>(now.command)] = now.clock;
    }
    data_bus();
    starvation();
    return std::move(found_);
  }

 private:
  static constexpr int kCommands = static_cast<int>(Command::refresh_all) + 1;

  struct BankState {
    std::optional<std::uint32_t> row;
    std::array<std::optional<Cycle>, kCommands> last;
  };
  /// What a read or write puts on the data bus.
  struct Beats {
    Cycle start = 0;
    std::int64_t rank = 0;
    std::size_t position = 0;
  };

  void report(std::string_view rule) { found_.push_back({position_, std::string(rule)}); }

  [[nodiscard]] std::int64_t rank_of(std::size_t bank) const {
    return static_cast<std::int64_t>(bank) / device_.dram.banks;
  }
  [[nodiscard]] bool within(Scope scope, std::size_t a, std::size_t b) const {
    const auto group_banks = static_cast<std::size_t>(device_.dram.banks / device_.dram.bank_groups);
    switch (scope) {
      case Scope::bank:
        return a == b;
      case Scope::group:
        return a / group_banks == b / group_banks;
      case Scope::rank:
        return rank_of(a) == rank_of(b);
    }
    return false;
  }

  void pairs(const IssuedCommand& now) {
    for (const PairRule& rule : rules_) {
      if (rule.to != now.command) {
        continue;
      }
      for (std::size_t bank = 0; bank < banks_.size(); ++bank) {
        const auto& last = banks_[bank].last[static_cast<std::size_t>(rule.from)];
        if (last && within(rule.scope, bank, now.bank) && now.clock - *last < rule.spacing) {
          report(rule.name);
        }
      }
    }
  }

  void window(const IssuedCommand& now) {
    if (now.command != Command::activate) {
      return;
    }
    std::vector<Cycle>& activates =
        activates_[static_cast<std::size_t>(rank_of(now.bank)) % activates_.size()];
    activates.push_back(now.clock);
    if (activates.size() > 4 && now.clock - activates[activates.size() - 5] < t_.tFAW) {
      report("tFAW");
    }
  }

  void note_data(const IssuedCommand& now) {
    if (now.command == Command::read || now.command == Command::write) {
      const Cycle latency = now.command == Command::read ? t_.read_latency : t_.write_latency;
      beats_.push_back({now.clock + latency, rank_of(now.bank), position_});
    }
  }

  /// The beats' order need not be the commands': a read may be asked for before the other rank's last write.
  void data_bus() {
    std::stable_sort(beats_.begin(), beats_.end(),
                     [](const Beats& a, const Beats& b) { return a.start < b.start; });
    for (std::size_t i = 1; i < beats_.size(); ++i) {
      const Cycle gap = beats_[i].start - beats_[i - 1].start - t_.burst;
      position_ = std::max(beats_[i].position, beats_[i - 1].position);
      if (gap < 0) {
        report("data bus");
      } else if (beats_[i].rank != beats_[i - 1].rank && gap < t_.rank_switch) {
        report("rank switch");
      }
    }
  }

  void state(const IssuedCommand& now) {
    std::optional<std::uint32_t>& row = banks_[now.bank].row;
    const auto first = static_cast<std::size_t>(rank_of(now.bank) * device_.dram.banks);
    const auto end = first + static_cast<std::size_t>(device_.dram.banks);
    switch (now.command) {
      case Command::activate:
        if (row) report("activate of an open bank");
        row = now.row;
        break;
      case Command::read:
      case Command::write:
        if (row != now.row) report("column of a row that is not open");
        break;
      case Command::precharge:
        row.reset();
        break;
      case Command::precharge_all:
        for (std::size_t bank = first; bank < end; ++bank) banks_[bank].row.reset();
        break;
      case Command::refresh_bank:
        if (row) report("refresh of an open bank");
        refreshed(now.bank, now.bank + std::size_t{1}, now.clock);
        break;
      case Command::refresh_all:
        for (std::size_t bank = first; bank < end; ++bank) {
          if (banks_[bank].row) report("refresh of an open bank");
        }
        refreshed(first, end, now.clock);
    }
  }

  /// JESD209-4 lets eight refreshes be postponed: at most nine intervals pass without one.
  void refreshed(std::size_t first, std::size_t end, Cycle clock) {
    for (std::size_t bank = first; bank < end; ++bank) {
      if (clock - refreshed_[bank] > 9 * t_.tREFI) {
        report("tREFI");
      }
      refreshed_[bank] = clock;
    }
  }

  void starvation() {
    if (!log_.empty() && device_.controller.refresh != config::RefreshMode::none) {
      position_ = log_.size() - 1;
      refreshed(0, banks_.size(), log_.back().clock);
    }
  }

  const std::vector<IssuedCommand>& log_;
  const config::DeviceSpec& device_;
  ClockTiming t_;
  std::vector<PairRule> rules_;
  std::vector<BankState> banks_;
  std::array<std::vector<Cycle>, 8> activates_;  ///< by rank
  std::array<Cycle, 64> refreshed_{};            ///< by bank
  std::vector<Beats> beats_;
  std::size_t position_ = 0;
  std::vector<Violation> found_;
};

}  // namespace

std::vector<Violation> violations(const std::vector<IssuedCommand>& log, const config::DeviceSpec& device) {
  return Checker(log, device).run();
}

std::vector<Violation> bus_violations(const std::vector<IssuedCommand>& log,
                                      const config::DeviceSpec& device) {
  // LPDDR4's commands take two cycles, and ACT, RD and WR are two of them. LPDDR5's take one; ACT's two
  // halves may lie apart, and only the last is in the log.
  const bool lpddr5 = device.dram.standard == config::DramStandard::lpddr5;
  std::vector<Violation> found;
  for (std::size_t i = 1; i < log.size(); ++i) {
    const Command command = log[i].command;
    const bool two = command == Command::activate || command == Command::read || command == Command::write;
    if (log[i].clock - log[i - 1].clock < (lpddr5 ? 1 : two ? 4 : 2)) {
      found.push_back({i, "command bus"});
    }
  }
  return found;
}

}  // namespace kvsim::model
