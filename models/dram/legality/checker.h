// SPDX-License-Identifier: Apache-2.0
// Checks the commands of one channel, one after the other, against the rules of the part. Knows nothing of
// the controller that gave them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "configs/spec/dram_spec.h"
#include "models/dram/command.h"
#include "models/dram/legality/bus_watch.h"
#include "models/dram/legality/refresh_watch.h"
#include "models/dram/legality/rule_table.h"

namespace kvsim::model::legality {

struct Violation {
  std::string_view rule;  ///< "tRCD", "row state"
  std::string text;       ///< "RD after ACT to bank 3 after 27 clocks, tRCD is 29"
};

/// Memory does not grow with the number of commands. All banks are closed at clock 0 and everything is long
/// ago.
class Checker {
 public:
  Checker(const config::DramPartSpec& part, const Conditions& conditions);

  /// What the next command breaks; valid until the next call. A command breaks at most one rule towards each
  /// earlier one: the one that asks for most. `column_row` is the row that a read or write is meant for, if
  /// known.
  [[nodiscard]] std::span<const Violation> check(const IssuedCommand& now,
                                                 std::optional<std::uint32_t> column_row = std::nullopt);

  [[nodiscard]] const RuleTable& table() const { return table_; }

 private:
  /// Clocks of the last command of each kind.
  using Last = std::array<Cycle, kCommands>;
  enum class Power : std::uint8_t { up, down, self_refresh };

  struct PairCheck {
    Cycle clocks;
    std::uint32_t rule;  ///< in the table
    std::uint8_t from;
    Scope scope;
  };
  struct Rank {
    Last last{};
    std::array<Cycle, 4> activates{};  ///< the last four, in a ring
    std::size_t oldest_activate = 0;
    std::int64_t open_banks = 0;
    std::uint64_t refreshed = 0;  ///< banks of the current set
    Power power = Power::up;
    bool owes_refresh = false;  ///< self-refresh was left and nothing refreshed since
  };
  struct Bank {
    Last last{};
    std::optional<std::uint32_t> row;
  };
  struct Place {
    std::size_t bank = 0;   ///< of the channel
    std::size_t group = 0;  ///< of the channel
    std::size_t rank = 0;
  };

  void forget_clocks();
  void report(std::string_view rule, std::string text);
  /// Keeps only the strictest of the rules that are broken towards one earlier command.
  void report_pair(const IssuedCommand& now, const Place& at, const PairCheck& check, Cycle from_clock);

  [[nodiscard]] bool in_range(const IssuedCommand& now);
  [[nodiscard]] Place place_of(const IssuedCommand& now) const;
  [[nodiscard]] const Last& last_in(Scope scope, const Place& at) const;

  void check_time(const IssuedCommand& now, const Place& at);
  void check_pairs(const IssuedCommand& now, const Place& at);
  void check_pair(const IssuedCommand& now, const Place& at, const PairCheck& check);
  void check_window(const IssuedCommand& now, const Place& at);
  void check_buses(const IssuedCommand& now, const Place& at);
  void check_state(const IssuedCommand& now, const Place& at, std::optional<std::uint32_t> column_row);
  void check_power(const IssuedCommand& now, const Place& at);
  void check_closed(const IssuedCommand& now, const Place& at);
  void check_column(const IssuedCommand& now, const Place& at, std::optional<std::uint32_t> column_row);
  void check_bank_refresh(const Place& at);
  /// The first bank that a refresh of this one takes; the others follow every table().refresh_sets banks.
  [[nodiscard]] std::size_t first_of_set(const Place& at) const {
    return at.rank * banks_per_rank_ + at.bank % banks_per_rank_ % table_.refresh_sets;
  }
  [[nodiscard]] Place place_of_bank(std::size_t bank) const {
    return {bank, bank / banks_per_group_, bank / banks_per_rank_};
  }
  void apply(const IssuedCommand& now, const Place& at);
  void close(std::size_t bank, Rank& rank);
  void apply_refresh(std::size_t first_bank, std::size_t step, const IssuedCommand& now, Rank& rank);
  void apply_power(const IssuedCommand& now, const Place& at, Rank& rank);

  [[nodiscard]] std::string name_of(Scope scope, const Place& at) const;

  config::DramPartSpec part_;
  Conditions conditions_;
  RuleTable table_;
  std::array<std::vector<PairCheck>, kCommands> checks_;  ///< by the later command
  std::vector<Bank> banks_;
  std::vector<Last> groups_;
  std::vector<Rank> ranks_;
  std::size_t banks_per_rank_;
  std::size_t banks_per_group_;
  CommandBus command_bus_;
  DataBus data_bus_;
  std::optional<RefreshWatch> refreshes_;
  Cycle last_clock_ = 0;

  struct Broken {
    Command from;
    Cycle from_clock;
    Cycle clocks;
    std::size_t position;  ///< in found_
  };
  std::vector<Broken> broken_;  ///< pairs that the command at hand breaks
  std::vector<Violation> found_;
};

}  // namespace kvsim::model::legality
