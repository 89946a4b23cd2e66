// SPDX-License-Identifier: Apache-2.0
// The energy of DRAM in JSON, the same in every command.
#pragma once

#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "sim/metrics/dram_energy.h"

namespace kvsim::sim {

/// Millijoules by command and by background state, each times `scale`, and what they come to: `total` is its
/// key. Null without figures.
[[nodiscard]] nlohmann::ordered_json energy_json(const std::optional<DramEnergyFigures>& figures,
                                                 const char* total, double scale = 1);

}  // namespace kvsim::sim
