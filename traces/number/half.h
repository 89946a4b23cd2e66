// SPDX-License-Identifier: Apache-2.0
// IEEE 754 half precision (binary16) in integers: GCC 12 has no portable C++ type for it.
#pragma once

#include <bit>
#include <cstdint>

namespace kvsim::trace {

struct Half {
  std::uint16_t bits = 0;

  bool operator==(const Half&) const = default;
};

/// Exact. Without branches, so that loops over it vectorise.
[[nodiscard]] inline float to_float(Half half) {
  constexpr std::uint32_t kInfinity = 0x7c00U << 13U;  // smallest magnitude whose exponent is all ones
  const std::uint32_t sign = (half.bits & 0x8000U) << 16U;
  const std::uint32_t magnitude = (half.bits & 0x7fffU) << 13U;
  // The exponent's bias grows from 15 to 127; the product also brings subnormals into normal form.
  const auto scaled = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
  return std::bit_cast<float>(sign | scaled | (magnitude >= kInfinity ? 0x7f800000U : 0U));
}

/// Rounds to nearest, ties to even; what is too large becomes infinity.
[[nodiscard]] inline Half to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16U & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t result = 0;
  if (magnitude > 0x7f800000U) {
    result = 0x7e00U;  // not a number
  } else if (magnitude >= 0x47800000U) {
    result = 0x7c00U;  // 2^16 and more
  } else if (magnitude < 0x38800000U) {
    // Below 2^-14: the spacing of floats in [0.5, 1) is the spacing of half's subnormals, so the sum rounds.
    const float sum = std::bit_cast<float>(magnitude) + 0.5F;
    result = std::bit_cast<std::uint32_t>(sum) - std::bit_cast<std::uint32_t>(0.5F);
  } else {
    const std::uint32_t odd = magnitude >> 13U & 1U;
    result = (magnitude - (112U << 23U) + 0xfffU + odd) >> 13U;
  }
  return {static_cast<std::uint16_t>(sign | result)};
}

}  // namespace kvsim::trace
