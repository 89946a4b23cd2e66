// SPDX-License-Identifier: Apache-2.0
// Whether commands overlap on the command bus of a channel, and bursts on its data bus.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "models/dram/legality/rule_table.h"

namespace kvsim::model::legality {

class CommandBus {
 public:
  explicit CommandBus(const RuleTable& table)
      : length_(table.length), split_activate_(table.split_activate) {}

  struct Overlap {
    std::string_view rule;
    Cycle first = 0;    ///< clock that the command needs first,
    Cycle free_at = 0;  ///< and the first one that is free
  };
  /// Puts a command on the bus; tells if it does not fit. Precondition: clocks do not decrease.
  [[nodiscard]] std::optional<Overlap> put(Command command, Cycle clock);

 private:
  /// JESD209-5, tAAD: clocks from ACT-1 to ACT-2 at most.
  static constexpr Cycle kSplit = 8;

  [[nodiscard]] bool take_first_half();

  std::array<Cycle, kCommands> length_;
  bool split_activate_;
  Cycle end_ = -kSplit;       ///< last clock in use; the first command may have begun before clock 0
  std::uint64_t in_use_ = 0;  ///< bit n: clock end_ - n is in use
};

class DataBus {
 public:
  explicit DataBus(const RuleTable& table)
      : read_latency_(table.read_latency),
        write_latency_(table.write_latency),
        burst_(table.burst),
        tRTRS_(table.tRTRS) {}

  struct Burst {
    Command command = Command::read;
    Cycle clock = 0;  ///< of its command
    std::uint32_t rank = 0;
    Cycle start = 0;  ///< of its data
  };
  struct Conflict {
    Burst earlier;  ///< its command came earlier
    Cycle gap = 0;  ///< between the data; negative: they overlap
  };
  /// Puts the burst of a RD or WR on the bus. The order of the data need not be the commands': a read may be
  /// asked for before the other rank's last write.
  [[nodiscard]] std::optional<Conflict> put(Command command, Cycle clock, std::uint32_t rank);
  void clear() { bursts_.clear(); }

 private:
  Cycle read_latency_;
  Cycle write_latency_;
  Cycle burst_;
  Cycle tRTRS_;
  std::vector<Burst> bursts_;  ///< those that a coming one may meet
};

}  // namespace kvsim::model::legality
