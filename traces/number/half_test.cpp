// SPDX-License-Identifier: Apache-2.0
#include "traces/number/half.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "traces/record/random_records.h"

namespace kvsim::trace {
namespace {

constexpr std::uint32_t kHalves = 1U << 16U;

Half half(std::uint32_t bits) {
  return {static_cast<std::uint16_t>(bits)};
}

/// The value by the standard's definition: sign, 5 bits of exponent, 10 of fraction.
double value_of(std::uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10U & 31U);
  const int fraction = static_cast<int>(bits & 1023U);
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  if (exponent == 31) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  return exponent == 0 ? sign * std::ldexp(fraction, -24) : sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(Half, EveryValueIsTheStandards) {
  for (std::uint32_t bits = 0; bits < kHalves; ++bits) {
    const double expected = value_of(bits);
    const float got = to_float(half(bits));
    ASSERT_TRUE(std::isnan(expected) ? std::isnan(got) : static_cast<double>(got) == expected) << bits;
    ASSERT_EQ(std::signbit(got), (bits & 0x8000U) != 0) << bits;
  }
}

TEST(Half, EveryNumberComesBack) {
  for (std::uint32_t bits = 0; bits < kHalves; ++bits) {
    if (!std::isnan(to_float(half(bits)))) {
      ASSERT_EQ(to_half(to_float(half(bits))).bits, bits);
    } else {
      ASSERT_TRUE(std::isnan(to_float(to_half(to_float(half(bits))))));
    }
  }
}

/// No neighbour is nearer, and of two equally near the even one was taken.
void expect_nearest(float value) {
  const std::uint32_t got = to_half(value).bits;
  const double error = std::abs(static_cast<double>(value) - value_of(got));
  for (const std::uint32_t neighbour : {got - 1, got + 1}) {
    if ((neighbour & 0x7fffU) < 0x7c00U && (got & 0x7fffU) != 0) {
      const double other = std::abs(static_cast<double>(value) - value_of(neighbour));
      ASSERT_TRUE(error < other || (error == other && got % 2 == 0)) << value;
    }
  }
}

TEST(Half, RoundsToNearestEven) {
  for (std::uint32_t bits = 1; bits < 0x7bffU; ++bits) {  // half-way points and just beside them
    const double middle = (value_of(bits) + value_of(bits + 1)) / 2;
    const auto tie = static_cast<float>(middle);
    for (const float value : {tie, std::nextafter(tie, 0.0F), std::nextafter(tie, 1e9F)}) {
      expect_nearest(value);
      expect_nearest(-value);
    }
  }
  Rng rng(2);
  for (int i = 0; i < 100'000; ++i) {
    expect_nearest(std::ldexp(rng.real(), static_cast<int>(rng.between(-30, 15))));
  }
}

TEST(Half, LimitsAreTheStandards) {
  EXPECT_EQ(to_half(65504.0F).bits, 0x7bffU);
  EXPECT_EQ(to_half(65519.996F).bits, 0x7bffU);
  EXPECT_EQ(to_half(65520.0F).bits, 0x7c00U) << "rounds to infinity";
  EXPECT_EQ(to_half(1e30F).bits, 0x7c00U);
  EXPECT_EQ(to_half(-std::numeric_limits<float>::infinity()).bits, 0xfc00U);
  EXPECT_EQ(to_half(0x1p-25F).bits, 0U) << "a tie with zero, which is even";
  EXPECT_EQ(to_half(0x1.000002p-25F).bits, 1U);
  EXPECT_EQ(to_half(-0.0F).bits, 0x8000U);
  EXPECT_EQ(to_half(1e-40F).bits, 0U);
}

}  // namespace
}  // namespace kvsim::trace
