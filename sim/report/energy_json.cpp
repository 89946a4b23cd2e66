// SPDX-License-Identifier: Apache-2.0
#include "sim/report/energy_json.h"

#include <nlohmann/json.hpp>

namespace kvsim::sim {

nlohmann::ordered_json energy_json(const std::optional<DramEnergyFigures>& figures, const char* total,
                                   double scale) {
  if (!figures) {
    return nullptr;
  }
  const auto millijoules = [scale](Joules energy) { return energy.count() * 1e3 * scale; };
  nlohmann::ordered_json commands;
  nlohmann::ordered_json background;
  for (std::size_t i = 0; i < model::kEnergyParts; ++i) {
    const auto part = static_cast<model::EnergyPart>(i);
    (i < model::kCommandParts ? commands : background)[std::string(to_string(part))] =
        millijoules(figures->account.part(part));
  }
  nlohmann::ordered_json rails;
  for (const RailPower& rail : figures->rails) {
    rails[rail.name] = rail.mean.count() * 1e3;
  }
  return {{total, millijoules(figures->account.total())}, {"average_mw", figures->mean.count() * 1e3},
          {"pj_per_bit", figures->picojoules_per_bit},    {"by_command", std::move(commands)},
          {"background", std::move(background)},          {"rail_mw", std::move(rails)}};
}

}  // namespace kvsim::sim
