// SPDX-License-Identifier: Apache-2.0
// What JEDEC demands of the commands of a part, in clocks. Worked out from the part's timings alone, apart
// from what the controller is given, so that a mistake there is found.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "configs/spec/dram_spec.h"
#include "models/dram/command.h"

namespace kvsim::model::legality {

/// What two commands must have in common for a rule to bind them.
enum class Scope : std::uint8_t { bank, group, rank };

/// `to` comes at least `clocks` after every earlier `from` in the scope.
struct PairRule {
  std::string_view name;     ///< JEDEC's
  std::string_view formula;  ///< what `clocks` consists of
  Command from;
  Command to;
  Scope scope;
  Cycle clocks;
};

/// How the channel is built and what is asked of it, beyond the part.
struct Conditions {
  std::int64_t ranks = 1;
  config::RefreshMode refresh = config::RefreshMode::per_bank;
  /// Refreshes that a bank may be owed; none: as many as the standard allows.
  std::optional<std::int64_t> postponed = std::nullopt;
  double refresh_rate = 1;  ///< refreshes for each that normal temperature asks for
  bool turnaround = true;   ///< false: the data bus changes direction and rank at no cost (what-if runs)
  bool command_bus = true;  ///< false: commands may share their bus (trains)
};

struct RuleTable {
  std::vector<PairRule> pairs;
  Cycle tFAW = 0;                   ///< holds at most four activates of a rank
  bool refresh_activates = false;   ///< a per-bank refresh is one of them
  bool refresh_once_a_set = false;  ///< no bank is refreshed again before all others of its rank
  bool has_bank_refresh = false;
  std::size_t refresh_sets = 1;  ///< a per-bank refresh takes every so manyth bank of its rank together
  Cycle burst = 0;               ///< on the data bus
  Cycle read_latency = 0;        ///< RD to the first beat
  Cycle write_latency = 0;       ///< WR to the first beat
  Cycle tRTRS = 0;               ///< gap on the data bus when the rank changes
  double tREFI = 0;              ///< in clocks, which need not be whole
  std::int64_t postponed = 0;
  std::array<Cycle, kCommands> length{};  ///< on the command bus
  bool split_activate = false;  ///< ACT's first clock lies up to eight before its last (tAAD), not beside it
};

/// Throws UserError for a timing so long that its clocks cannot be counted.
[[nodiscard]] RuleTable rule_table(const config::DramPartSpec& part, const Conditions& conditions);

}  // namespace kvsim::model::legality
