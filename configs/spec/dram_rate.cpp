// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/dram_rate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "configs/error/error.h"

namespace kvsim::config {
namespace {

/// Up to this many transfers per second, the latencies in clocks.
struct Speed {
  std::int64_t megatransfers;
  std::int64_t read;
  std::int64_t write;
};

constexpr std::array kLpddr4{Speed{533, 6, 4},    Speed{1066, 10, 6},  Speed{1600, 14, 8},
                             Speed{2133, 20, 10}, Speed{2667, 24, 12}, Speed{3200, 28, 14},
                             Speed{3733, 32, 16}, Speed{4267, 36, 18}};
constexpr std::array kLpddr5{Speed{533, 3, 2},   Speed{1067, 4, 2},  Speed{1600, 5, 3},  Speed{2133, 6, 4},
                             Speed{2750, 8, 4},  Speed{3200, 9, 5},  Speed{3733, 10, 6}, Speed{4267, 12, 6},
                             Speed{4800, 13, 7}, Speed{5500, 15, 8}, Speed{6000, 16, 9}, Speed{6400, 17, 9}};

std::span<const Speed> table(DramStandard standard) {
  switch (standard) {
    case DramStandard::lpddr4:
    case DramStandard::lpddr4x:
      return kLpddr4;
    case DramStandard::lpddr5:
    case DramStandard::lpddr5x:
      return kLpddr5;
    default:
      return {};
  }
}

/// Null beyond the table's end.
const Speed* find(std::span<const Speed> speeds, Hertz rate) {
  const auto found = std::ranges::find_if(
      speeds, [rate](const Speed& speed) { return rate <= Hertz(speed.megatransfers * 1'000'000); });
  return found == speeds.end() ? nullptr : &*found;
}

/// So many clocks of `from`, the first `table_from` of them the table's, at the clock `to`, where it says
/// `table_to`.
std::int64_t clocks_at(std::int64_t clocks, std::int64_t table_from, std::int64_t table_to, Hertz from,
                       Hertz to) {
  const double beyond = static_cast<double>(std::max<std::int64_t>(0, clocks - table_from));
  const double slower = beyond * to.as_double() / from.as_double();
  return table_to + static_cast<std::int64_t>(std::ceil(slower - 1e-9));
}

}  // namespace

DramPartSpec at_data_rate(const DramPartSpec& part, DataRate rate) {
  check(rate > Hertz() && rate <= part.data_rate, "a part works at its data rate or below");
  if (rate == part.data_rate) {
    return part;
  }
  DramPartSpec slower = part;
  slower.data_rate = rate;
  const Hertz from = command_clock(part);
  const Hertz to = command_clock(slower);
  const Speed* own = find(table(part.standard), part.data_rate);
  const Speed* there = find(table(part.standard), rate);
  const bool known = own != nullptr && there != nullptr;
  const auto adapt = [&](ClockedTime& latency, std::int64_t table_from, std::int64_t table_to) {
    latency.clocks = clocks_at(latency.clocks, known ? table_from : 0, known ? table_to : 0, from, to);
  };
  adapt(slower.timing.read_latency, known ? own->read : 0, known ? there->read : 0);
  adapt(slower.timing.write_latency, known ? own->write : 0, known ? there->write : 0);
  return slower;
}

DeviceSpec at_data_rate(const DeviceSpec& device, DataRate rate) {
  DeviceSpec slower = device;
  slower.dram = at_data_rate(device.dram, rate);
  const Picoseconds longer = period(command_clock(slower.dram)) - period(command_clock(device.dram));
  slower.interconnect.request_latency += longer * device.interconnect.memory_clocks;
  return slower;
}

}  // namespace kvsim::config
