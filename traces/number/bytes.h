// SPDX-License-Identifier: Apache-2.0
// What the codecs of this folder share: reading and writing scales, and which values an integer format can
// hold.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "traces/number/half.h"

namespace kvsim::trace {

inline constexpr float kLargestHalf = 65504.0F;

inline void put_half(std::uint8_t* out, float value) {
  const Half half = to_half(value);
  std::memcpy(out, &half.bits, sizeof half.bits);
}

[[nodiscard]] inline float get_half(const std::uint8_t* in) {
  Half half;
  std::memcpy(&half.bits, in, sizeof half.bits);
  return to_float(half);
}

/// Integers have no NaN and no infinity, and one in a block would spoil its scale: NaN counts as 0, and what
/// is beyond `limit` (infinity too) as `limit`.
[[nodiscard]] inline float representable(float value, float limit) {
  return std::isnan(value) ? 0.0F : std::clamp(value, -limit, limit);
}

/// 1 / scale, 0 for a scale that is 0 or so small that its inverse would be infinite.
[[nodiscard]] inline float inverse(float scale) {
  return std::abs(scale) < std::numeric_limits<float>::min() ? 0.0F : 1.0F / scale;
}

}  // namespace kvsim::trace
