// SPDX-License-Identifier: Apache-2.0
// Checks a channel's command log against the part's timings, apart from the controller that made it. For
// tests.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "configs/spec/device_spec.h"
#include "models/dram/channel.h"

namespace kvsim::model {

struct Violation {
  std::size_t position = 0;  ///< in the log, of the command that came too early or at the wrong place
  std::string rule;

  bool operator==(const Violation&) const = default;
};

/// What the log of a channel of `device` breaks: spacings between pairs of commands, the four-activate
/// window, the data bus, the banks' state, and the longest time without refresh. Precondition: `log` is in
/// order of time and begins with all banks closed.
[[nodiscard]] std::vector<Violation> violations(const std::vector<IssuedCommand>& log,
                                                const config::DeviceSpec& device);

/// Commands of the log that overlap on the command bus, which a train's bursts are not kept from.
[[nodiscard]] std::vector<Violation> bus_violations(const std::vector<IssuedCommand>& log,
                                                    const config::DeviceSpec& device);

}  // namespace kvsim::model
