// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/device_spec.h"

#include <algorithm>

#include <fmt/format.h>

#include "configs/spec/grammar.h"

namespace kvsim::config {
namespace {

constexpr std::int64_t kBitsPerByte = 8;

}  // namespace

Hertz command_clock(const DramPartSpec& part) {
  return part.data_rate / part.transfers_per_clock;
}

Picoseconds duration(const ClockedTime& timing, Hertz clock) {
  const double clocks = static_cast<double>(timing.clocks) * kPicosecondsPerSecond / clock.as_double();
  return std::max(timing.time, Picoseconds(static_cast<std::int64_t>(clocks + 0.5)));
}

Bytes row_bytes(const DramPartSpec& part) {
  return Bytes(part.columns * part.width_bits / kBitsPerByte);
}

Bytes burst_bytes(const DramPartSpec& part) {
  return Bytes(part.burst_length * part.width_bits / kBitsPerByte);
}

// The ranges of the schema keep this product, and the next, below 2^63.
Bytes rank_bytes(const DramPartSpec& part) {
  return row_bytes(part) * (part.banks * part.rows);
}

std::int64_t core_count(const DeviceSpec& device) {
  std::int64_t cores = 0;
  for (const ClusterSpec& cluster : device.clusters) {
    cores += cluster.count;
  }
  return cores;
}

Bytes dram_capacity(const DeviceSpec& device) {
  return rank_bytes(device.dram) * (device.controller.channels * device.controller.ranks);
}

std::int64_t refresh_sets(const DramPartSpec& part) {
  return part.banks / part.banks_per_refresh;
}

std::int64_t bank_refreshes(const DramPartSpec& part) {
  return refresh_sets(part) * (part.standard == DramStandard::ddr5 ? 2 : 1);
}

std::int64_t most_postponed(const DramPartSpec& part) {
  return part.standard == DramStandard::ddr5 ? 4 : 8;
}

std::vector<std::string> part_notes(const DramPartSpec& part) {
  std::vector<std::string> notes;
  const Hertz clock = command_clock(part);
  const DramTiming& timing = part.timing;
  if (duration(timing.tFAW, clock) < duration(timing.tRRD, clock) * 4) {
    notes.push_back(fmt::format("{}: tFAW, {}, is less than 4 tRRD, {} each, and never binds", part.name,
                                to_text(timing.tFAW), to_text(timing.tRRD)));
  }
  if (part.rails && !part.energy) {
    notes.push_back(
        fmt::format("{}: has rails but no energy, which they are shares of; nothing is told of "
                    "either",
                    part.name));
  }
  return notes;
}

BytesPerSecond peak_bandwidth(const DeviceSpec& device) {
  const double bytes_per_transfer =
      static_cast<double>(device.controller.channels * device.dram.width_bits) / double{kBitsPerByte};
  return BytesPerSecond(bytes_per_transfer * device.dram.data_rate.as_double());
}

}  // namespace kvsim::config
