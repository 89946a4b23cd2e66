// SPDX-License-Identifier: Apache-2.0
// Measured temperatures, clocks and powers of boards beside the model of heat, clocks and power.
#pragma once

#include <functional>
#include <string>

namespace kvsim::testing {

struct HeatRow {
  std::string what;
  double measured = 0;
  double simulated = 0;
  double bound = 0;  ///< allowed difference, in the row's unit
};

struct HeatReport {
  std::function<void(const std::string&)> title;
  std::function<void(const HeatRow&)> row;
  std::function<void(const std::string&, bool)> claim;
};

void measure_heat(const HeatReport& report);

}  // namespace kvsim::testing
