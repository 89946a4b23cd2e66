// SPDX-License-Identifier: Apache-2.0
// The two probes that boards are measured with, played on a device's memory path.
#pragma once

#include "configs/spec/device_spec.h"
#include "configs/units/quantity.h"

namespace kvsim::testing {

/// A scan of 64 MiB by each of `cores` cores of the first cluster, as memchr does it: bytes over time.
[[nodiscard]] BytesPerSecond read_bandwidth(const config::DeviceSpec& device, int cores);

/// Mean time of dependent reads of random lines within `bytes`, beyond the L1 cache's (tinymembench).
[[nodiscard]] Picoseconds random_latency(const config::DeviceSpec& device, Bytes bytes);

}  // namespace kvsim::testing
