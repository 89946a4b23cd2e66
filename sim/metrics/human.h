// SPDX-License-Identifier: Apache-2.0
// Numbers for people: few digits, always a unit.
#pragma once

#include <string>

#include "configs/units/quantity.h"

namespace kvsim::sim {

[[nodiscard]] std::string human(Bytes bytes);          ///< "4.58 GiB"
[[nodiscard]] std::string human(Picoseconds time);     ///< "243.1 ms"
[[nodiscard]] std::string human(BytesPerSecond rate);  ///< "33.79 GB/s"
[[nodiscard]] std::string percent(double share);       ///< "12.3 %"

}  // namespace kvsim::sim
