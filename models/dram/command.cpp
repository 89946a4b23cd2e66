// SPDX-License-Identifier: Apache-2.0
#include "models/dram/command.h"

#include <array>

namespace kvsim::model {

std::string_view to_string(Command command) {
  static constexpr std::array<std::string_view, kCommands> kNames = {
      "ACT", "PRE", "PREA", "RD", "RDA", "WR", "WRA", "MWR", "REFab", "REFpb", "PDE", "PDX", "SRE", "SRX"};
  return kNames.at(static_cast<std::size_t>(command));
}

}  // namespace kvsim::model
