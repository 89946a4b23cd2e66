// SPDX-License-Identifier: Apache-2.0
#include "models/train/train_timing.h"

#include <algorithm>

#include "configs/spec/dram_temperature.h"
#include "models/dram/clock_timing.h"

namespace kvsim::model {

TrainTiming train_timing(const config::DramPartSpec& part, const config::MemoryControllerSpec& controller) {
  config::DramPartSpec warm = part;
  warm.timing = config::timing_at(part, controller.temperature);
  const ClockTiming t = clock_timing(warm, controller.turnaround);
  const CommandClock clock(command_clock(part));
  // Rounded up, so that nothing is ever faster than the clock allows.
  const auto ps = [&](Cycle cycles) { return cycles > 0 ? clock.time(cycles).count() + 1 : cycles; };
  const auto gap = [&](Cycle cycles) { return ps(std::max<Cycle>(0, cycles)); };
  // One more, so that another group's burst fits in.
  const auto group_gap = [&](Cycle spacing) { return spacing > t.burst ? ps(spacing - t.burst) + 1 : 0; };
  return {.clock = ps(1),
          .burst = ps(t.burst),
          .read_latency = ps(t.read_latency),
          .write_latency = ps(t.write_latency),
          .tRCD = ps(t.tRCD),
          .tRPpb = ps(t.tRPpb),
          .tRPab = ps(t.tRPab),
          .tRAS = ps(t.tRAS),
          .group_gap = group_gap(t.tCCD_L),
          .group_gap_write = group_gap(t.tCCD_L_WR),
          .activate = ps(std::max(t.tRRD, (t.tFAW + 3) / 4)),
          .read_to_precharge = ps(t.read_to_precharge),
          .write_to_precharge = ps(t.write_to_precharge),
          .read_to_write = gap(t.read_to_write + t.write_latency - t.read_latency - t.burst),
          .write_to_read = gap(t.write_to_read + t.read_latency - t.write_latency - t.burst),
          .write_to_read_L = gap(t.write_to_read_L + t.read_latency - t.write_latency - t.burst),
          .rank_switch = ps(t.rank_switch),
          .tRFCab = ps(t.tRFCab),
          .tRFCpb = ps(t.tRFCpb),
          .tREFI = static_cast<std::int64_t>(static_cast<double>(clock.time(t.tREFI).count()) /
                                             config::refresh_rate(part, controller.temperature))};
}

}  // namespace kvsim::model
