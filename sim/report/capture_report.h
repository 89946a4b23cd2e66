// SPDX-License-Identifier: Apache-2.0
// Writes what the replay of a captured trace gave as text or JSON.
#pragma once

#include <string>

#include "configs/spec/device_spec.h"
#include "sim/capture/capture_replay.h"
#include "traces/import/region_map.h"

namespace kvsim::sim {

struct CaptureReport {
  std::string file;
  std::string issue;
  const config::DeviceSpec& device;
  const trace::RegionMap& regions;
  Replayed replayed;
};

/// Version of the JSON layout. Later versions add and do not rename.
inline constexpr const char* kCaptureSchema = "kvsim.capture_replay/1";

[[nodiscard]] std::string capture_text(const CaptureReport& report);
[[nodiscard]] std::string capture_json(const CaptureReport& report);

}  // namespace kvsim::sim
