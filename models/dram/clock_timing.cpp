// SPDX-License-Identifier: Apache-2.0
#include "models/dram/clock_timing.h"

#include <algorithm>

namespace kvsim::model {

namespace {

/// RD to PRE. LPDDR4 (JESD209-4, "read to precharge"): BL/2 + max(8, tRTP) - 8 cycles after the read; LPDDR5
/// counts tRTP from the end of the burst's first half likewise. `burst` is BL/2 in LPDDR4.
Cycle read_to_precharge(const config::DramPartSpec& part, Cycle burst, Cycle tRTP) {
  if (part.standard == config::DramStandard::lpddr5) {
    return burst + tRTP;
  }
  return burst + std::max<Cycle>(8, tRTP) - 8;
}

}  // namespace

ClockTiming clock_timing(const config::DramPartSpec& part, bool turnaround) {
  const CommandClock clock(command_clock(part));
  const auto cycles = [&](const config::ClockedTime& t) { return std::max(clock.cycles(t.time), t.clocks); };
  const config::DramTiming& t = part.timing;

  ClockTiming c{};
  c.burst = part.burst_length / part.transfers_per_clock;
  c.read_latency = cycles(t.read_latency);
  c.write_latency = cycles(t.write_latency);
  c.tRCD = cycles(t.tRCD);
  c.tRPpb = cycles(t.tRPpb);
  c.tRPab = cycles(t.tRPab);
  c.tRAS = cycles(t.tRAS);
  c.tRRD = cycles(t.tRRD);
  c.tFAW = cycles(t.tFAW);
  c.tCCD = std::max(cycles(t.tCCD), c.burst);
  c.tCCD_L = std::max(cycles(t.tCCD_L), c.tCCD);
  c.read_to_precharge = read_to_precharge(part, c.burst, cycles(t.tRTP));
  c.write_to_precharge = c.write_latency + c.burst + 1 + cycles(t.tWR);
  c.rank_switch = cycles(t.tRTRS);
  if (turnaround) {
    c.read_to_write =
        c.read_latency + c.burst + 2 - c.write_latency;  // one preamble and one idle cycle between
    c.write_to_read = c.write_latency + c.burst + 1 + cycles(t.tWTR);
  } else {  // data follows data: with unequal latencies the command of the slower direction would come too
            // late
    c.write_latency = c.read_latency;
    c.read_to_write = c.write_to_read = c.burst;
    c.rank_switch = 0;
  }
  c.tRFCab = cycles(t.tRFCab);
  c.tRFCpb = cycles(t.tRFCpb);
  c.tREFI = cycles(t.tREFI);
  return c;
}

}  // namespace kvsim::model
