// SPDX-License-Identifier: Apache-2.0
// A part, and a device, at a lower data rate than the part's own: what a memory clock governor chooses.
#pragma once

#include "configs/spec/device_spec.h"
#include "configs/spec/dram_spec.h"

namespace kvsim::config {

/// The part at `rate`. Timings in time stay, those in clocks are of the slower clock, and the latencies are
/// the ones that the standard asks for at that speed: RL and WL by its tables (LPDDR4, LPDDR4X: JESD209-4B
/// tables 29 and 30, set A without DBI; LPDDR5, LPDDR5X at 4:1: JESD209-5 set 0 and A), the part's tDQSCK and
/// tDQSS on top, which stay what they are in time (at least a clock). Of other standards, latencies stay what
/// they are in time. Precondition: 0 < rate <= part.data_rate.
[[nodiscard]] DramPartSpec at_data_rate(const DramPartSpec& part, DataRate rate);

/// The device with its memory at `rate`: also the part of its request latency that is the memory's clocks.
[[nodiscard]] DeviceSpec at_data_rate(const DeviceSpec& device, DataRate rate);

}  // namespace kvsim::config
