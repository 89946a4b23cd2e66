// SPDX-License-Identifier: Apache-2.0
// A fabric with a clock of its own, which caps what all masters move together.
#pragma once

#include "configs/units/quantity.h"

namespace kvsim::config {

/// The data of all reads and writes pass through it, `width` in each of its clocks.
struct FabricSpec {
  Bytes width;
  Hertz clock;

  bool operator==(const FabricSpec&) const = default;
};

[[nodiscard]] inline BytesPerSecond fabric_bandwidth(const FabricSpec& fabric) {
  return BytesPerSecond(fabric.width.as_double() * fabric.clock.as_double());
}

}  // namespace kvsim::config
