// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/master_spec.h"

#include <algorithm>
#include <cmath>

namespace kvsim::config {
namespace {

using namespace kvsim::literals;

/// What another program reads lies in so much: more than any last-level cache.
constexpr Bytes kProgram = 64_MiB;

}  // namespace

Bytes line_bytes(const ScanSpec& scan) {
  const double plane = std::ceil(static_cast<double>(scan.width) * scan.bytes_per_pixel);
  return Bytes(static_cast<std::int64_t>(plane) * scan.planes);
}

Picoseconds line_time(const ScanSpec& scan) {
  return Picoseconds(std::llround(scan.active * kPicosecondsPerSecond / scan.rate.as_double() /
                                  static_cast<double>(scan.height)));
}

std::optional<std::int64_t> core_of(const MasterSpec& master) {
  if (master.radio) {
    return master.radio->core;
  }
  return master.load ? std::optional(master.load->core) : std::nullopt;
}

BytesPerSecond mean_rate(const MasterSpec& master) {
  if (master.scan) {
    return BytesPerSecond(line_bytes(*master.scan).as_double() * static_cast<double>(master.scan->height) *
                          master.scan->rate.as_double());
  }
  if (master.radio) {
    return master.radio->rate;
  }
  if (master.burst) {
    const BurstSpec& burst = *master.burst;
    const double share = burst.on ? ratio(*burst.on, *burst.on + burst.off) : 1;
    return BytesPerSecond((burst.bytes / burst.period).count() * share);
  }
  return master.load->traffic;
}

Bytes buffer_bytes(const MasterSpec& master) {
  if (master.scan) {
    return line_bytes(*master.scan) * master.scan->height * 2;
  }
  if (master.radio) {
    return master.radio->ring * 2;
  }
  return master.burst ? std::max(kProgram, master.burst->bytes) : kProgram;
}

}  // namespace kvsim::config
