// SPDX-License-Identifier: Apache-2.0
// The probes that boards are measured with, played on a device's memory path.
#pragma once

#include "configs/spec/device_spec.h"
#include "configs/units/quantity.h"

namespace kvsim::testing {

/// A scan of 64 MiB by each of `cores` cores of the first cluster, as memchr does it: bytes over time.
[[nodiscard]] BytesPerSecond read_bandwidth(const config::DeviceSpec& device, int cores);

/// Cores of the first cluster at work at the same time, each on a part of its own of what they share.
struct Load {
  int readers = 0;  ///< scan a part of one array, as STREAM's threads do
  int copiers = 0;  ///< copy a part of one array to another, line by line
  int random_readers =
      0;  ///< read random lines of the whole memory, as many at a time as loads can have in flight
};

struct LoadResult {
  BytesPerSecond first;  ///< what the first reader or copier gets
  BytesPerSecond all;    ///< what all readers and copiers get together; a copied byte counts twice
};

/// Precondition: there is a reader or a copier.
[[nodiscard]] LoadResult load_bandwidth(const config::DeviceSpec& device, const Load& load);

/// Mean time of dependent reads of random lines within `bytes`, beyond the L1 cache's (tinymembench).
[[nodiscard]] Picoseconds random_latency(const config::DeviceSpec& device, Bytes bytes);

}  // namespace kvsim::testing
