// SPDX-License-Identifier: Apache-2.0
// The energy of DRAM over a stretch of time, as reports show it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "configs/spec/dram_spec.h"
#include "configs/units/quantity.h"
#include "models/dram/energy.h"

namespace kvsim::sim {

struct RailPower {
  std::string name;
  Watts mean;
};

struct DramEnergyFigures {
  model::EnergyAccount account;
  Watts mean;
  double picojoules_per_bit = 0;  ///< of what was delivered
  std::vector<RailPower> rails;
};

/// None if the part has no energy.
[[nodiscard]] std::optional<DramEnergyFigures> dram_energy(const config::DramPartSpec& part,
                                                           const model::DramActivity& activity,
                                                           Picoseconds elapsed, Bytes moved);

}  // namespace kvsim::sim
