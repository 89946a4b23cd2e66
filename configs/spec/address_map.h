// SPDX-License-Identifier: Apache-2.0
// Checks that an address map sends each byte installed to a place of its own.
#pragma once

#include <string>
#include <vector>

#include "configs/spec/device_spec.h"

namespace kvsim::config {

struct MapProblem {
  std::string coordinate;  ///< "channel", "rank", "bank", "row" or "column"; empty: the map as a whole
  std::string what;
};

/// What keeps the device's map from being a bijection between its addresses and its DRAM, or would tear a
/// cache line apart. Empty: the map is sound. Precondition: the device's numbers are in the ranges of their
/// schema.
[[nodiscard]] std::vector<MapProblem> address_map_problems(const DeviceSpec& device);

}  // namespace kvsim::config
