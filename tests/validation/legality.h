// SPDX-License-Identifier: Apache-2.0
// Long random traffic through the DRAM controller, each command checked by the independent checker.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "configs/spec/dram_spec.h"
#include "models/dram/command.h"

namespace kvsim::testing {

struct LegalityCount {
  std::int64_t commands = 0;
  std::int64_t violations = 0;
  std::int64_t controllers = 0;  ///< of parts, policies and queues drawn at random
  std::array<std::int64_t, model::kCommands> by_command{};
  std::string first;  ///< what the first violation breaks
};

/// At least `commands` commands of the catalogue's parts of a standard.
[[nodiscard]] LegalityCount check_standard(config::DramStandard standard, std::int64_t commands);

}  // namespace kvsim::testing
