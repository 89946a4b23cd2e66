// SPDX-License-Identifier: Apache-2.0
// Streams on a memory path without SystemC: what they ask for in, when they were done out.
#pragma once

#include <vector>

#include "configs/spec/device_spec.h"
#include "models/memory_path/burst_path.h"

namespace kvsim::model::testing {

/// One engine's window and what it works through.
struct StreamLoad {
  StreamWindow window;
  std::vector<Segment> segments;
};

struct LoadResult {
  Picoseconds elapsed;            ///< until the last stream was done,
  TimeAccount account;            ///< and where that time went
  std::vector<Picoseconds> ends;  ///< by stream
  MemoryCounters counters;        ///< when it was done,
  DramActivity activity;          ///< and the idle time after it
  MemoryCounters drained;         ///< and after one line more, read when all writes had been taken

  bool operator==(const LoadResult& other) const;
};

/// Commands by channel, in order of time.
using CommandLogs = std::vector<std::vector<IssuedCommand>>;

/// Runs the loads side by side from time 0 on a fresh memory. `logs`, if given, gets the channels' commands.
/// What costs energy is read after `idle` more.
[[nodiscard]] LoadResult run_loads(const config::DeviceSpec& device, Granularity granularity,
                                   const std::vector<StreamLoad>& loads, CommandLogs* logs = nullptr,
                                   Picoseconds idle = {});

/// A window of `lines` reads in flight that nothing else limits.
[[nodiscard]] StreamWindow wide_window(std::int64_t lines);

}  // namespace kvsim::model::testing
