// SPDX-License-Identifier: Apache-2.0
// A long run: answers one after the other on a device whose clocks, heat and power follow what it does.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "configs/spec/run_spec.h"
#include "models/board/board.h"
#include "sim/metrics/summary.h"
#include "sim/soak/window.h"

namespace kvsim::sim {

/// Means since the row before; temperatures and clocks are those at its time.
struct TimelineRow {
  Picoseconds at;
  double tokens_per_second = 0;
  model::BoardState board;
  std::vector<Watts> rails;      ///< mean power, in the order of board.rails
  BytesPerSecond read, written;  ///< by DRAM
  std::vector<MasterRate> masters;
  std::vector<std::string> rules;  ///< at work: sensor and what it does
};

/// Of the time that tokens took beyond what they take at the fastest clocks, alone, cool and with all in
/// memory.
struct SlowdownCause {
  std::string cause;  ///< paging, contention, governor, over_current, supply, heat, refresh, rules
  double share = 0;   ///< of all tokens' time
  Picoseconds first_at;
};

struct SoakRecord {
  Picoseconds time;          ///< simulated
  std::int64_t answers = 0;  ///< complete
  std::int64_t tokens = 0;
  std::int64_t windows = 0;  ///< that were measured for it
  double relative_ci = 0;    ///< the widest of theirs
  double first_minute = 0;   ///< tokens per second of decoding in the first minute of it,
  double steady = 0;         ///< and in the last quarter of the time
  std::optional<Percentiles> inter_token;
  Joules energy;
  double paused_share = 0;  ///< of the time, by rules
  std::vector<SlowdownCause> causes;
  std::vector<TimelineRow> timeline;
  model::BoardState end;
};

/// Runs `spec.soak`. Precondition: it is there, and no simulation has run in this process. Throws UserError
/// if the device has no clocks, or a run of a state fails.
[[nodiscard]] SoakRecord run_soak(const config::RunSpec& spec, const std::function<void(double)>& progress,
                                  const std::atomic<bool>* stop);

}  // namespace kvsim::sim
