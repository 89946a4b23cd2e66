// SPDX-License-Identifier: Apache-2.0
// What the rows of `validate heat` share: logs of boards, and their devices' parts.
#pragma once

#include <string>
#include <vector>

#include "configs/spec/device_spec.h"
#include "tests/validation/heat.h"

namespace kvsim::testing {

using Row = std::vector<double>;

/// A table of numbers below a line of names, of tests/data/heat.
[[nodiscard]] std::vector<Row> read_table(const std::string& name);
[[nodiscard]] Picoseconds time_of(double seconds);
/// Of the case that the device is in.
[[nodiscard]] config::ThermalLinkSpec& link_of(config::DeviceSpec& device, const std::string& from,
                                               std::string_view to);

void iphone(const HeatReport& report);

}  // namespace kvsim::testing
