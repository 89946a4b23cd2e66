// SPDX-License-Identifier: Apache-2.0
// What must hold between a device's clocks, heat and power: names that refer to each other.
#pragma once

#include "configs/schema/place.h"
#include "configs/spec/device_spec.h"

namespace kvsim::config {

/// Reports an error for each name of a domain, node or sensor that does not exist, and for clocks that are no
/// operating points.
void check_board(const DeviceSpec& device, const Place& place);

}  // namespace kvsim::config
