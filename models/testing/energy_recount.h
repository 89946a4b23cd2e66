// SPDX-License-Identifier: Apache-2.0
// What cost energy, counted anew from a channel's command log, apart from the controller that made it.
#pragma once

#include <vector>

#include "configs/spec/device_spec.h"
#include "models/dram/command.h"
#include "models/dram/energy.h"

namespace kvsim::model::testing {

/// Of one channel of `device`, with the time of its ranks until `until`. `log` is in order of time.
[[nodiscard]] DramActivity recount(const std::vector<IssuedCommand>& log, const config::DeviceSpec& device,
                                   Cycle until);

}  // namespace kvsim::model::testing
