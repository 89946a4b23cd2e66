// SPDX-License-Identifier: Apache-2.0
#include "models/memory_path/memory_path.h"

#include <algorithm>

#include "models/memory_path/burst_path.h"
#include "models/psram/psram_path.h"
#include "models/train/train_path.h"

namespace kvsim::model {

MemoryCounters operator-(const MemoryCounters& a, const MemoryCounters& b) {
  return {.read = a.read - b.read,
          .written = a.written - b.written,
          .row_hits = a.row_hits - b.row_hits,
          .row_misses = a.row_misses - b.row_misses,
          .row_conflicts = a.row_conflicts - b.row_conflicts,
          .activates = a.activates - b.activates,
          .refreshes = a.refreshes - b.refreshes};
}

/// Trains have open pages, refreshes in time and engines of one priority; what else a controller may do is
/// decided burst by burst.
std::vector<std::string_view> unknown_to_trains(const config::DeviceSpec& device) {
  const config::MemoryControllerSpec& controller = device.controller;
  std::vector<std::string_view> keys;
  const auto add = [&keys](bool used, std::string_view key) {
    if (used) {
      keys.push_back(key);
    }
  };
  add(!std::all_of(device.clusters.begin(), device.clusters.end(),
                   [&](const auto& cluster) { return cluster.priority == device.clusters.front().priority; }),
      "clusters.N.priority");
  add(std::ranges::any_of(device.masters, [](const auto& use) { return use.priority > 0; }),
      "masters.N.priority");
  add(device.dram.psram.has_value(), "dram.psram");
  add(controller.page_policy != config::PagePolicy::open, "controller.page_policy");
  add(controller.postponed_refreshes != 0, "controller.postponed_refreshes");
  add(controller.power_down.has_value(), "controller.power_down");
  add(controller.self_refresh.has_value(), "controller.self_refresh");
  return keys;
}

std::unique_ptr<MemoryPath> make_memory_path(const config::DeviceSpec& device, Granularity granularity) {
  if (granularity == Granularity::train && unknown_to_trains(device).empty()) {
    return std::make_unique<TrainPath>(device);
  }
  if (device.dram.psram) {
    return std::make_unique<PsramPath>(device);
  }
  return std::make_unique<BurstPath>(device);
}

}  // namespace kvsim::model
