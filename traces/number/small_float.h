// SPDX-License-Identifier: Apache-2.0
// bfloat16 and the 8-bit floats of the OCP (OFP8 revision 1.0), in integers. Without branches, so that loops
// over them vectorise. All round to nearest, ties to even.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "traces/number/half.h"

namespace kvsim::trace {

inline constexpr std::uint32_t kFloatInfinity = 0x7f800000U;

/// The upper half of a float. What is too large becomes infinity; a NaN stays one and becomes quiet.
[[nodiscard]] inline std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + (bits >> 16U & 1U)) >> 16U;
  const bool nan = (bits & 0x7fffffffU) > kFloatInfinity;
  return static_cast<std::uint16_t>(nan ? bits >> 16U | 0x40U : rounded);
}

[[nodiscard]] inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16U);
}

/// The code of `magnitude` (a float's bits without the sign) in a float of `Fraction` bits and an exponent
/// with `Bias`, as if its exponent had no end. Precondition: no NaN.
template <std::uint32_t Fraction, std::uint32_t Bias>
[[nodiscard]] inline std::uint32_t small_code(std::uint32_t magnitude) {
  constexpr std::uint32_t kShift = 23 - Fraction;
  constexpr std::uint32_t kRebias = (127 - Bias) << 23U;
  // The spacing of floats in the power of two of this one is the spacing of the format's subnormals: the sum
  // rounds.
  constexpr auto kMagic = std::bit_cast<float>((127 + 1 - Bias - Fraction + 23) << 23U);
  const auto sum = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + kMagic);
  const std::uint32_t subnormal = sum - std::bit_cast<std::uint32_t>(kMagic);
  const std::uint32_t odd = magnitude >> kShift & 1U;
  const std::uint32_t normal = (magnitude - kRebias + (1U << (kShift - 1U)) - 1U + odd) >> kShift;
  return magnitude < kRebias + (1U << 23U) ? subnormal : normal;
}

/// E4M3 has no infinity: what is above 448, infinity too, becomes 448 (saturating conversion). NaN is 0x7f.
[[nodiscard]] inline std::uint8_t to_fp8_e4m3(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  const std::uint32_t code = std::min(small_code<3, 7>(magnitude), 0x7eU);
  return static_cast<std::uint8_t>((bits >> 24U & 0x80U) | (magnitude > kFloatInfinity ? 0x7fU : code));
}

[[nodiscard]] inline float from_fp8_e4m3(std::uint8_t code) {
  const std::uint32_t sign = (code & 0x80U) << 24U;
  const std::uint32_t magnitude = code & 0x7fU;
  // The exponent's bias grows from 7 to 127; the product also brings subnormals into normal form.
  const auto scaled = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude << 20U) * 0x1p120F);
  return std::bit_cast<float>(sign | scaled | (magnitude == 0x7fU ? 0x7fc00000U : 0U));
}

/// E5M2 is the upper half of a half. Finite values above 57344 become 57344 (an infinite score would spoil a
/// softmax); infinity stays infinity and NaN becomes 0x7e.
[[nodiscard]] inline std::uint8_t to_fp8_e5m2(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  const std::uint32_t finite = std::min(small_code<2, 15>(magnitude), 0x7bU);
  const std::uint32_t special = magnitude > kFloatInfinity ? 0x7eU : 0x7cU;
  return static_cast<std::uint8_t>((bits >> 24U & 0x80U) | (magnitude >= kFloatInfinity ? special : finite));
}

[[nodiscard]] inline float from_fp8_e5m2(std::uint8_t code) {
  return to_float(Half{static_cast<std::uint16_t>(std::uint32_t{code} << 8U)});
}

}  // namespace kvsim::trace
