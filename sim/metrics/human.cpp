// SPDX-License-Identifier: Apache-2.0
#include "sim/metrics/human.h"

#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace kvsim::sim {

std::string human(Bytes bytes) {
  static constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = bytes.as_double();
  std::size_t unit = 0;
  while (std::abs(value) >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes.count()) : fmt::format("{:.2f} {}", value, kUnits[unit]);
}

std::string human(Picoseconds time) {
  static constexpr std::array<std::string_view, 5> kUnits = {"ps", "ns", "us", "ms", "s"};
  double value = time.as_double();
  std::size_t unit = 0;
  while (std::abs(value) >= 1000 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} ps", time.count()) : fmt::format("{:.4g} {}", value, kUnits[unit]);
}

std::string human(BytesPerSecond rate) {
  return fmt::format("{:.2f} GB/s", rate.count() / 1e9);
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

}  // namespace kvsim::sim
