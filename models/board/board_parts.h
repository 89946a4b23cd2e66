// SPDX-License-Identifier: Apache-2.0
// What a board is made of, by its device's specification.
#pragma once

#include <string_view>
#include <vector>

#include "configs/spec/device_spec.h"
#include "models/clocks/clock_domain.h"
#include "models/power/power_model.h"
#include "models/thermal/thermal_network.h"

namespace kvsim::model {

/// Leakage, refresh and the fan's speed are worked out anew so often.
inline constexpr Picoseconds kBoardGrid{10'000'000'000};

/// No silicon gets here alive: without a critical trip the device goes down.
inline constexpr Celsius kDestroyed{200};

/// A device without heat has one lump, which nothing heats.
[[nodiscard]] ThermalNetwork board_network(const config::DeviceSpec& device);
[[nodiscard]] std::vector<ClockDomain> board_domains(const config::DeviceSpec& device);
[[nodiscard]] std::vector<PowerModel::Wiring> board_wiring(const config::DeviceSpec& device,
                                                           const ThermalNetwork& network);
/// What a channel of a DRAM's domain moves at most.
[[nodiscard]] BytesPerSecond channel_peak(const ClockDomain& domain);
/// What a sensor shows: the nearest multiple of its resolution.
[[nodiscard]] Celsius sensor_reading(const config::SensorSpec& sensor, Celsius temperature);

/// "governor", "heat", ...
[[nodiscard]] std::string_view to_string(ClockLimit limit);

}  // namespace kvsim::model
