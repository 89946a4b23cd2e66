// SPDX-License-Identifier: Apache-2.0
// What must hold between the values of a thermal specification.
#pragma once

#include "configs/schema/place.h"
#include "configs/spec/thermal_spec.h"

namespace kvsim::config {

/// Nodes that the network of a case may have, stages of Foster chains included.
inline constexpr std::size_t kMostThermalNodes = 16;

void check_thermal_case(const ThermalCaseSpec& thermal_case, const Place& place);
void check_thermal_zone(const ThermalZoneSpec& zone, const Place& place);
void check_thermal(const ThermalSpec& thermal, const Place& place);

}  // namespace kvsim::config
