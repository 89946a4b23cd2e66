// SPDX-License-Identifier: Apache-2.0
// Writes what `kvsim trace info` found as text or JSON.
#pragma once

#include <string>
#include <vector>

#include "sim/capture/cache_fills.h"
#include "traces/import/region_map.h"
#include "traces/import/trace_info.h"

namespace kvsim::sim {

struct TraceInfoReport {
  std::string file;
  const trace::RegionMap& regions;
  trace::TraceInfo info;
  std::vector<CacheFills> caches;
};

/// Version of the JSON layout. Later versions add and do not rename.
inline constexpr const char* kTraceInfoSchema = "kvsim.trace_info/1";

[[nodiscard]] std::string trace_info_text(const TraceInfoReport& report);
[[nodiscard]] std::string trace_info_json(const TraceInfoReport& report);

}  // namespace kvsim::sim
