// SPDX-License-Identifier: Apache-2.0
#include "models/dram/legality.h"

#include "configs/spec/dram_temperature.h"
#include "models/dram/legality/bus_watch.h"
#include "models/dram/legality/checker.h"

namespace kvsim::model {

namespace {

legality::Conditions conditions_of(const config::DeviceSpec& device) {
  const config::MemoryControllerSpec& controller = device.controller;
  return {.ranks = controller.ranks,
          .refresh = controller.refresh,
          .refresh_rate = config::refresh_rate(device.dram, controller.temperature),
          .turnaround = controller.turnaround,
          .command_bus = false};
}

config::DramPartSpec part_of(const config::DeviceSpec& device) {
  config::DramPartSpec part = device.dram;
  part.timing = config::timing_at(part, device.controller.temperature);
  return part;
}

}  // namespace

std::vector<Violation> violations(const std::vector<IssuedCommand>& log, const config::DeviceSpec& device) {
  legality::Checker checker(part_of(device), conditions_of(device));
  std::vector<Violation> found;
  for (std::size_t position = 0; position < log.size(); ++position) {
    for (const legality::Violation& violation : checker.check(log[position])) {
      found.push_back({position, std::string(violation.rule) + ": " + violation.text});
    }
  }
  return found;
}

std::vector<Violation> bus_violations(const std::vector<IssuedCommand>& log,
                                      const config::DeviceSpec& device) {
  legality::CommandBus bus(legality::rule_table(device.dram, conditions_of(device)));
  std::vector<Violation> found;
  for (std::size_t position = 0; position < log.size(); ++position) {
    if (const auto overlap = bus.put(log[position].command, log[position].clock)) {
      found.push_back({position, std::string(overlap->rule)});
    }
  }
  return found;
}

}  // namespace kvsim::model
