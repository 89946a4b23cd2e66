// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/master_spec.h"

#include <algorithm>
#include <cmath>

namespace kvsim::config {
namespace {

using namespace kvsim::literals;

/// What another program reads lies in so much: more than any last-level cache.
constexpr Bytes kProgram = 64_MiB;

/// Of the time from its beginning to where it begins again, or to its end.
BytesPerSecond mean_rate(const SeriesSpec& series) {
  double bytes = 0;
  for (const SeriesItem& item : series.items) {
    bytes += item.bytes.as_double();
  }
  const Picoseconds time =
      series.repeat.value_or(series.items.empty() ? Picoseconds() : series.items.back().at);
  return BytesPerSecond(time == Picoseconds() ? 0 : bytes / seconds(time));
}

}  // namespace

Bytes largest(const SeriesSpec& series) {
  Bytes most;
  for (const SeriesItem& item : series.items) {
    most = std::max(most, item.bytes);
  }
  return most;
}

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

std::optional<Picoseconds> overdue(const MasterSpec& master, BytesPerSecond bandwidth, Bytes at_once) {
  Bytes bytes;
  std::optional<Picoseconds> deadline;
  if (master.burst) {
    bytes = master.burst->bytes;
    deadline = master.burst->deadline;
  } else if (master.series) {
    bytes = largest(*master.series);
    deadline = master.series->deadline;
  }
  const Picoseconds needed = std::max(Bytes(), bytes - at_once) / bandwidth;
  return deadline && needed > *deadline ? std::optional(needed) : std::nullopt;
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
  if (master.series) {
    return mean_rate(*master.series);
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
  if (master.series) {
    return std::max(kProgram, largest(*master.series) * 2);
  }
  return master.burst ? std::max(kProgram, master.burst->bytes) : kProgram;
}

}  // namespace kvsim::config
