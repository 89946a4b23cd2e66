// SPDX-License-Identifier: Apache-2.0
#include "sim/metrics/dram_energy.h"

namespace kvsim::sim {

std::optional<DramEnergyFigures> dram_energy(const config::DramPartSpec& part,
                                             const model::DramActivity& activity, Picoseconds elapsed,
                                             Bytes moved) {
  if (!part.energy) {
    return std::nullopt;
  }
  DramEnergyFigures figures{.account = energy_of(*part.energy, activity), .mean = {}, .rails = {}};
  figures.mean = model::mean_power(figures.account.total(), elapsed);
  figures.picojoules_per_bit = model::picojoules_per_bit(figures.account.total(), moved);
  for (const model::Rail& rail : model::rails_of(part)) {
    figures.rails.push_back({.name = std::string(rail.name),
                             .mean = model::mean_power(energy_of(rail.energy, activity).total(), elapsed)});
  }
  return figures;
}

}  // namespace kvsim::sim
