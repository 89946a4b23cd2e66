// SPDX-License-Identifier: Apache-2.0
// Weights that the engine itself reads from storage, layer by layer, while it computes.
#pragma once

#include <cstdint>

#include "configs/units/quantity.h"

namespace kvsim::config {

struct WeightStream {
  Bytes request{1 << 20};      ///< largest read
  std::int64_t in_flight = 4;  ///< reads at once
  std::int64_t buffers = 2;    ///< layers in memory: the one at work, and those on their way

  bool operator==(const WeightStream&) const = default;
};

}  // namespace kvsim::config
