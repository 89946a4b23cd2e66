// SPDX-License-Identifier: Apache-2.0
// Checks a channel's whole command log against the part's timings, apart from the controller that made it.
// For tests.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "configs/spec/device_spec.h"
#include "models/dram/command.h"

namespace kvsim::model {

struct Violation {
  std::size_t position = 0;  ///< in the log, of the command that came too early or at the wrong place
  std::string rule;

  bool operator==(const Violation&) const = default;
};

/// What the log of a channel of `device` breaks, but for the command bus. Precondition: it begins with all
/// banks closed.
[[nodiscard]] std::vector<Violation> violations(const std::vector<IssuedCommand>& log,
                                                const config::DeviceSpec& device);

/// Commands of the log that overlap on the command bus, which a train's bursts are not kept from.
[[nodiscard]] std::vector<Violation> bus_violations(const std::vector<IssuedCommand>& log,
                                                    const config::DeviceSpec& device);

}  // namespace kvsim::model
