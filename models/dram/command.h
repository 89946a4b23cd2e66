// SPDX-License-Identifier: Apache-2.0
// Commands on a channel's command bus, as the command trace has them.
#pragma once

#include <cstdint>
#include <string_view>

#include "models/dram/clock_timing.h"

namespace kvsim::model {

enum class Command : std::uint8_t {
  activate,
  precharge,
  precharge_all,
  read,
  read_auto_precharge,
  write,
  write_auto_precharge,
  masked_write,
  refresh_all,
  refresh_bank,
  power_down_enter,
  power_down_exit,
  self_refresh_enter,
  self_refresh_exit,
};
inline constexpr int kCommands = static_cast<int>(Command::self_refresh_exit) + 1;

/// ACT PRE PREA RD RDA WR WRA MWR REFab REFpb PDE PDX SRE SRX.
[[nodiscard]] std::string_view to_string(Command command);

[[nodiscard]] constexpr bool is_read(Command command) {
  return command == Command::read || command == Command::read_auto_precharge;
}
[[nodiscard]] constexpr bool is_write(Command command) {
  return command == Command::write || command == Command::write_auto_precharge ||
         command == Command::masked_write;
}

/// One command. `clock` is the CK cycle of its last edge, counted from 0. Commands for a whole rank (PREA,
/// REFab, PDE, PDX, SRE, SRX) have the rank's first bank.
struct IssuedCommand {
  Cycle clock = 0;
  Command command = Command::activate;
  std::uint16_t bank =
      0;  ///< over all ranks of the channel: rank x banks + bank group x banks per group + bank
  std::uint32_t row = 0;     ///< of ACT, else 0
  std::uint32_t column = 0;  ///< first column of RD and WR, else 0

  bool operator==(const IssuedCommand&) const = default;
};

}  // namespace kvsim::model
