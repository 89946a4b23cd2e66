// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/soak_rules.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "configs/error/error.h"
#include "configs/spec/resolve.h"

namespace kvsim::config {
namespace {

void check_sensors(const RunSpec& run, const Place& place) {
  for (std::size_t i = 0; run.soak && run.device.thermal && i < run.soak->rules.size(); ++i) {
    std::vector<std::string> known;
    for (const SensorSpec& sensor : run.device.thermal->sensors) {
      known.push_back(sensor.name);
    }
    if (const std::string& sensor = run.soak->rules[i].sensor;
        std::ranges::find(known, sensor) == known.end()) {
      place.error(fmt::format("soak.rules.{}.sensor", i),
                  fmt::format("there is no sensor '{}'; there is {}", sensor, fmt::join(known, ", ")));
    }
  }
}

/// A rule that could not be carried out is told before the run, not when a sensor gets hot.
void check_changes(const RunSpec& run, const Place& place) {
  for (std::size_t i = 0; run.soak && i < run.soak->rules.size(); ++i) {
    const std::string& set = run.soak->rules[i].set;
    const std::string path = fmt::format("soak.rules.{}.set", i);
    if (set.empty()) {
      continue;
    }
    if (!set.starts_with("engine.") && !set.starts_with("workload.threads=")) {
      place.error(path, fmt::format("{} changes nothing of engine, nor workload.threads; a rule can change "
                                    "only these, such as engine.kv=f16+window=512",
                                    in_quotes(set)));
      continue;
    }
    try {
      RunSpec changed = run;
      changed.soak.reset();
      static_cast<void>(
          restore_scenario(to_json(changed).dump(), {Override(set, in_quotes(set))}, "the scenario"));
    } catch (const UserError& error) {
      place.error(path, error.what());
    }
  }
}

}  // namespace

void check_rules(const RunSpec& run, const Place& place) {
  check_sensors(run, place);
  if (place.errors().count() == 0) {
    check_changes(run, place);
  }
}

}  // namespace kvsim::config
