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
  std::int64_t group_gap, group_gap_write;  ///< idle time on the data bus between bursts of one bank group
  std::int64_t activate;  ///< between activates of a rank: tRRD, or a quarter of tFAW if that is more
  std::int64_t read_to_precharge, write_to_precharge;
  /// Idle time on the data bus; write_to_read_L within a bank group.
  std::int64_t read_to_write, write_to_read, write_to_read_L, rank_switch;
  std::int64_t tRFCab, tRFCpb, tREFI;
};
/// Of `part` at the controller's temperature.
[[nodiscard]] TrainTiming train_timing(const config::DramPartSpec& part,
                                       const config::MemoryControllerSpec& controller);

}  // namespace kvsim::model
