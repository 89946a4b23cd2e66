// SPDX-License-Identifier: Apache-2.0
#include "traces/simd/simd.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "configs/error/error.h"
#include "traces/number/half.h"
#include "traces/record/random_records.h"

namespace kvsim::trace::simd {
namespace {

std::vector<float> random(Rng& rng, std::size_t count) {
  std::vector<float> numbers(count);
  std::generate(numbers.begin(), numbers.end(), [&] { return rng.real(); });
  return numbers;
}

TEST(Simd, ProductsAreThoseOfPlainLoops) {
  Rng rng(1);
  for (int round = 0; round < 200; ++round) {
    const std::size_t n = 1 + rng.below(9), m = 1 + rng.below(11), columns = 1 + rng.below(100);
    const std::vector<float> a = random(rng, n * columns), b = random(rng, m * columns);
    std::vector<float> out(n * m, 99);
    products({.numbers = a, .columns = columns}, {.numbers = b, .columns = columns}, out);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < m; ++j) {
        double expected = 0;
        for (std::size_t c = 0; c < columns; ++c) {
          expected += double{a[i * columns + c]} * double{b[j * columns + c]};
        }
        ASSERT_NEAR(double{out[i * m + j]}, expected, 1e-5) << n << "x" << m << "x" << columns;
      }
    }
  }
}

TEST(Simd, WeightedRowsAreAdded) {
  Rng rng(2);
  for (int round = 0; round < 200; ++round) {
    const std::size_t n = 1 + rng.below(9), m = 1 + rng.below(20), columns = 1 + rng.below(150);
    const std::vector<float> a = random(rng, n * m), b = random(rng, m * columns);
    std::vector<float> out = random(rng, n * columns);
    const std::vector<float> before = out;
    add_products({.numbers = a, .columns = m}, {.numbers = b, .columns = columns}, out);
    for (std::size_t i = 0; i < n * columns; ++i) {
      double expected = before[i];
      for (std::size_t j = 0; j < m; ++j) {
        expected += double{a[i / columns * m + j]} * double{b[j * columns + i % columns]};
      }
      ASSERT_NEAR(double{out[i]}, expected, 1e-5) << n << "x" << m << "x" << columns;
    }
  }
}

TEST(Simd, ExponentialsAndTheirSum) {
  Rng rng(3);
  const float infinity = std::numeric_limits<float>::infinity();
  for (std::size_t count = 0; count < 70; ++count) {
    std::vector<float> numbers = random(rng, count);
    for (float& x : numbers) {
      x = x > 0.8F ? -infinity : x * 40;
    }
    const std::vector<float> before = numbers;
    EXPECT_EQ(maximum(numbers), count == 0 ? -infinity : *std::max_element(before.begin(), before.end()));
    const float sum = exponentials(numbers, 40);
    double expected_sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double expected = std::exp(double{before[i]} - 40);
      ASSERT_NEAR(double{numbers[i]}, expected, 1e-5 * expected + 1e-37);
      expected_sum += expected;
    }
    EXPECT_NEAR(double{sum}, expected_sum, 1e-5 * expected_sum + 1e-36);
    scale(numbers, 2);
    if (count > 0 && before[0] > -infinity) {
      EXPECT_NEAR(double{numbers[0]}, 2 * std::exp(double{before[0]} - 40),
                  1e-5 * double{numbers[0]} + 1e-36);
    }
  }
}

TEST(Simd, HalvesAreWidenedExactly) {
  std::vector<Half> halves;
  for (std::uint32_t bits = 0; bits < 0x7c00; bits += 7) {
    halves.push_back({static_cast<std::uint16_t>(bits)});
    halves.push_back({static_cast<std::uint16_t>(bits | 0x8000U)});
  }
  std::vector<std::byte> bytes(halves.size() * sizeof(Half));
  std::memcpy(bytes.data(), halves.data(), bytes.size());
  std::vector<float> wide(halves.size());
  widen(bytes, wide);
  for (std::size_t i = 0; i < wide.size(); ++i) {
    ASSERT_EQ(wide[i], to_float(halves[i])) << halves[i].bits;
  }
}

TEST(Simd, ProductsWithHalvesInPlaceAreThoseWithWidenedOnes) {
  Rng rng(4);
  for (int round = 0; round < 200; ++round) {
    const std::size_t n = 1 + rng.below(9), m = 1 + rng.below(20), columns = 1 + rng.below(150);
    const std::size_t stride = columns + rng.below(9);
    std::vector<Half> halves(m * stride);
    std::vector<float> wide;
    for (std::size_t i = 0; i < halves.size(); ++i) {
      halves[i] = to_half(rng.real());
      if (i % stride < columns) {
        wide.push_back(to_float(halves[i]));
      }
    }
    std::vector<std::byte> bytes(halves.size() * sizeof(Half));
    std::memcpy(bytes.data(), halves.data(), bytes.size());
    const HalfRows in_place{.first = bytes.data(), .rows = m, .columns = columns, .stride = stride};
    const Rows widened{.numbers = wide, .columns = columns};

    const std::vector<float> a = random(rng, n * columns), weights = random(rng, n * m);
    std::vector<float> expected(n * m), got(n * m, 99);
    products({.numbers = a, .columns = columns}, widened, expected);
    products({.numbers = a, .columns = columns}, in_place, got);
    ASSERT_EQ(got, expected) << n << "x" << m << "x" << columns << " every " << stride;

    std::vector<float> sums = random(rng, n * columns);
    std::vector<float> expected_sums = sums;
    add_products({.numbers = weights, .columns = m}, widened, expected_sums);
    add_products({.numbers = weights, .columns = m}, in_place, sums);
    ASSERT_EQ(sums, expected_sums) << n << "x" << m << "x" << columns << " every " << stride;
  }
}

TEST(Simd, WrongShapesAreABug) {
  std::vector<float> two(2), three(3), out(1);
  EXPECT_THROW(products({.numbers = two, .columns = 2}, {.numbers = three, .columns = 3}, out),
               InternalError);
  EXPECT_THROW(products({.numbers = two, .columns = 2}, {.numbers = two, .columns = 2}, two), InternalError);
  EXPECT_THROW(add_products({.numbers = two, .columns = 1}, {.numbers = three, .columns = 1}, out),
               InternalError);
  const std::vector<std::byte> bytes(6);
  const HalfRows halves{.first = bytes.data(), .rows = 1, .columns = 3, .stride = 3};
  EXPECT_THROW(products({.numbers = two, .columns = 2}, halves, out), InternalError);
  EXPECT_THROW(products({.numbers = three, .columns = 3}, halves, two), InternalError);
  EXPECT_THROW(add_products({.numbers = two, .columns = 2}, halves, three), InternalError);
}

}  // namespace
}  // namespace kvsim::trace::simd
