// SPDX-License-Identifier: Apache-2.0
#include "traces/number/small_float.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "traces/record/random_records.h"

namespace kvsim::trace {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// A float by its definition: sign, exponent with `bias`, `fraction` bits.
double value_of(std::uint32_t code, int fraction, int bias, int bits) {
  const std::uint32_t magnitude = code & ((1U << (bits - 1)) - 1U);
  const auto exponent = static_cast<int>(magnitude >> fraction);
  const auto part = static_cast<int>(magnitude & ((1U << fraction) - 1U));
  const double value = exponent == 0 ? std::ldexp(part, 1 - bias - fraction)
                                     : std::ldexp((1 << fraction) + part, exponent - bias - fraction);
  return (code >> (bits - 1)) != 0 ? -value : value;
}

TEST(Bf16, EveryCodeComesBack) {
  for (std::uint32_t bits = 0; bits < 1U << 16U; ++bits) {
    const float value = from_bf16(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(from_bf16(to_bf16(value)))) << bits;
      continue;
    }
    ASSERT_EQ(to_bf16(value), bits);
    if (!std::isinf(value)) {
      ASSERT_EQ(static_cast<double>(value), value_of(bits, 7, 127, 16));
    }
  }
}

TEST(Bf16, RoundsToNearestEven) {
  EXPECT_EQ(to_bf16(1.0F), 0x3f80U);
  EXPECT_EQ(to_bf16(0x1.01p0F), 0x3f80U) << "a tie: the even one is below";
  EXPECT_EQ(to_bf16(0x1.010002p0F), 0x3f81U);
  EXPECT_EQ(to_bf16(0x1.03p0F), 0x3f82U) << "a tie: the even one is above";
  EXPECT_EQ(to_bf16(-0x1.03p0F), 0xbf82U);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()), 0x7f80U) << "infinity";
  EXPECT_EQ(to_bf16(-kInfinity), 0xff80U);
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(kNan))));
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(std::bit_cast<float>(0x7f800001U)))))
      << "its low bits alone say NaN";
}

TEST(Fp8, EveryCodeIsTheStandardsAndComesBack) {
  for (std::uint32_t bits = 0; bits < 256; ++bits) {
    const auto code = static_cast<std::uint8_t>(bits);
    const float e4m3 = from_fp8_e4m3(code);
    if ((bits & 0x7fU) == 0x7fU) {
      EXPECT_TRUE(std::isnan(e4m3));
      EXPECT_EQ(to_fp8_e4m3(e4m3), code);
    } else {
      EXPECT_EQ(static_cast<double>(e4m3), value_of(bits, 3, 7, 8)) << bits;
      EXPECT_EQ(to_fp8_e4m3(e4m3), code);
    }
    const float e5m2 = from_fp8_e5m2(code);
    if ((bits & 0x7fU) > 0x7cU) {
      EXPECT_TRUE(std::isnan(e5m2));
      EXPECT_TRUE(std::isnan(from_fp8_e5m2(to_fp8_e5m2(e5m2))));
    } else {
      EXPECT_EQ(static_cast<double>(e5m2),
                (bits & 0x7fU) == 0x7cU
                    ? std::copysign(std::numeric_limits<double>::infinity(), static_cast<double>(e5m2))
                    : value_of(bits, 2, 15, 8));
      EXPECT_EQ(to_fp8_e5m2(e5m2), code);
    }
  }
}

TEST(Fp8, KnownPatterns) {
  EXPECT_EQ(to_fp8_e4m3(1.0F), 0x38U);
  EXPECT_EQ(to_fp8_e4m3(448.0F), 0x7eU);
  EXPECT_EQ(to_fp8_e4m3(0x1p-6F), 0x08U) << "the smallest normal number";
  EXPECT_EQ(to_fp8_e4m3(0x1p-9F), 0x01U);
  EXPECT_EQ(to_fp8_e4m3(0x1p-10F), 0x00U) << "a tie with zero, which is even";
  EXPECT_EQ(to_fp8_e4m3(3 * 0x1p-10F), 0x02U);
  EXPECT_EQ(to_fp8_e4m3(17.0F), 0x58U) << "between 16 and 18";
  EXPECT_EQ(to_fp8_e4m3(19.0F), 0x5aU) << "between 18 and 20";
  EXPECT_EQ(to_fp8_e5m2(1.0F), 0x3cU);
  EXPECT_EQ(to_fp8_e5m2(57344.0F), 0x7bU);
  EXPECT_EQ(to_fp8_e5m2(0x1p-16F), 0x01U);
  EXPECT_EQ(to_fp8_e5m2(9.0F), 0x48U) << "between 8 and 10";
  EXPECT_EQ(to_fp8_e5m2(11.0F), 0x4aU) << "between 10 and 12";
}

TEST(Fp8, WhatIsTooLargeSaturates) {
  for (const float value : {449.0F, 480.0F, 1e10F, std::numeric_limits<float>::max(), kInfinity}) {
    EXPECT_EQ(to_fp8_e4m3(value), 0x7eU);
    EXPECT_EQ(to_fp8_e4m3(-value), 0xfeU);
  }
  for (const float value : {57345.0F, 61440.0F, 1e10F, std::numeric_limits<float>::max()}) {
    EXPECT_EQ(to_fp8_e5m2(value), 0x7bU);
    EXPECT_EQ(to_fp8_e5m2(-value), 0xfbU);
  }
  EXPECT_EQ(to_fp8_e5m2(kInfinity), 0x7cU);
  EXPECT_EQ(to_fp8_e5m2(-kInfinity), 0xfcU);
  EXPECT_EQ(to_fp8_e4m3(kNan) & 0x7fU, 0x7fU);
  EXPECT_EQ(to_fp8_e5m2(kNan) & 0x7fU, 0x7eU);
}

/// No neighbour is nearer, and of two equally near the even one was taken.
template <class To>
void expect_nearest(float value, To to, int fraction, int bias, std::uint32_t largest) {
  const std::uint32_t got = to(value);
  const double error = std::abs(static_cast<double>(value) - value_of(got, fraction, bias, 8));
  for (const std::uint32_t neighbour : {got - 1, got + 1}) {
    if ((neighbour & 0x7fU) <= largest && (got & 0x7fU) != 0) {
      const double other = std::abs(static_cast<double>(value) - value_of(neighbour, fraction, bias, 8));
      ASSERT_TRUE(error < other || (error == other && got % 2 == 0)) << value;
    }
  }
}

TEST(Fp8, RoundsToNearestEven) {
  Rng rng(3);
  for (int i = 0; i < 200'000; ++i) {
    const float value = std::ldexp(rng.real(), static_cast<int>(rng.between(-20, 8)));
    expect_nearest(value, to_fp8_e4m3, 3, 7, 0x7eU);
    expect_nearest(value, to_fp8_e5m2, 2, 15, 0x7bU);
  }
  for (std::uint32_t code = 1; code < 0x7eU; ++code) {  // half-way points and just beside them
    for (const int fraction : {2, 3}) {
      const int bias = fraction == 3 ? 7 : 15;
      const auto tie =
          static_cast<float>((value_of(code, fraction, bias, 8) + value_of(code + 1, fraction, bias, 8)) / 2);
      for (const float value : {tie, std::nextafter(tie, 0.0F), std::nextafter(tie, 1e9F)}) {
        if (fraction == 3) {
          expect_nearest(value, to_fp8_e4m3, 3, 7, 0x7eU);
        } else if (code < 0x7bU) {
          expect_nearest(value, to_fp8_e5m2, 2, 15, 0x7bU);
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvsim::trace
