// SPDX-License-Identifier: Apache-2.0
// A part's spacings in picoseconds, for row trains, which are not bound to clock edges.
#pragma once

#include <cstdint>

#include "configs/spec/dram_spec.h"

namespace kvsim::model {

/// Names as in ClockTiming; all in picoseconds.
struct TrainTiming {
  std::int64_t clock;
  std::int64_t burst, read_latency, write_latency;
  std::int64_t tRCD, tRPpb, tRPab, tRAS;
  std::int64_t group_gap;  ///< idle time on the data bus between bursts of one bank group
  std::int64_t activate;   ///< between activates of a rank: tRRD, or a quarter of tFAW if that is more
  std::int64_t read_to_precharge, write_to_precharge;
  std::int64_t read_to_write, write_to_read, rank_switch;  ///< idle time on the data bus
  std::int64_t tRFCab, tRFCpb, tREFI;
};
[[nodiscard]] TrainTiming train_timing(const config::DramPartSpec& part, bool turnaround);

}  // namespace kvsim::model
