// SPDX-License-Identifier: Apache-2.0
#include "models/train/train_timing.h"

#include <algorithm>

#include "models/dram/clock_timing.h"

namespace kvsim::model {

TrainTiming train_timing(const config::DramPartSpec& part, bool turnaround) {
  const ClockTiming t = clock_timing(part, turnaround);
  const CommandClock clock(command_clock(part));
  // Rounded up, so that nothing is ever faster than the clock allows.
  const auto ps = [&](Cycle cycles) { return cycles > 0 ? clock.time(cycles).count() + 1 : cycles; };
  const auto gap = [&](Cycle cycles) { return ps(std::max<Cycle>(0, cycles)); };
  return {.clock = ps(1),
          .burst = ps(t.burst),
          .read_latency = ps(t.read_latency),
          .write_latency = ps(t.write_latency),
          .tRCD = ps(t.tRCD),
          .tRPpb = ps(t.tRPpb),
          .tRPab = ps(t.tRPab),
          .tRAS = ps(t.tRAS),
          .group_gap = t.tCCD_L > t.burst ? ps(t.tCCD_L - t.burst) + 1 : 0,  // another group's burst fits in
          .activate = ps(std::max(t.tRRD, (t.tFAW + 3) / 4)),
          .read_to_precharge = ps(t.read_to_precharge),
          .write_to_precharge = ps(t.write_to_precharge),
          .read_to_write = gap(t.read_to_write + t.write_latency - t.read_latency - t.burst),
          .write_to_read = gap(t.write_to_read + t.read_latency - t.write_latency - t.burst),
          .rank_switch = ps(t.rank_switch),
          .tRFCab = ps(t.tRFCab),
          .tRFCpb = ps(t.tRFCpb),
          .tREFI = ps(t.tREFI)};
}

}  // namespace kvsim::model
