// SPDX-License-Identifier: Apache-2.0
#include "traces/number/hadamard.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "traces/record/random_records.h"

namespace kvsim::trace {
namespace {

TEST(Hadamard, IsTheSignMatrixByItsDefinition) {
  for (std::size_t row = 0; row < 16; ++row) {
    std::vector<float> unit(16);
    unit[row] = 1;
    hadamard(unit, 16);
    for (std::size_t column = 0; column < 16; ++column) {
      EXPECT_EQ(unit[column], std::popcount(row & column) % 2 == 0 ? 0.25F : -0.25F);
    }
  }
}

TEST(Hadamard, IsItsOwnInverseAndKeepsProducts) {
  Rng rng(3);
  std::vector<float> a(128), b(128);
  std::generate(a.begin(), a.end(), [&] { return rng.real(); });
  std::generate(b.begin(), b.end(), [&] { return rng.real(); });
  std::vector<float> ra = a, rb = b;
  hadamard(ra, 64);
  hadamard(rb, 64);
  EXPECT_NEAR(std::inner_product(a.begin(), a.end(), b.begin(), 0.0F),
              std::inner_product(ra.begin(), ra.end(), rb.begin(), 0.0F), 1e-5F);
  EXPECT_NE(a, ra);
  hadamard(ra, 64);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a[i], ra[i], 1e-6F);
  }
}

TEST(Hadamard, OtherSizesAreABug) {
  std::vector<float> numbers(96);
  EXPECT_THROW(hadamard(numbers, 48), InternalError);
  EXPECT_THROW(hadamard(numbers, 64), InternalError);
}

}  // namespace
}  // namespace kvsim::trace
