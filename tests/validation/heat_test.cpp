// SPDX-License-Identifier: Apache-2.0
// The boards of `validate heat` stay within their bounds.
#include "tests/validation/heat.h"

#include <gtest/gtest.h>

namespace kvsim::testing {
namespace {

TEST(Heat, BoardsAreWithinTheirBounds) {
  int figures = 0;
  measure_heat({.title = [](const std::string&) {},
                .row =
                    [&](const HeatRow& row) {
                      EXPECT_NEAR(row.simulated, row.measured, row.bound) << row.what;
                      ++figures;
                    },
                .claim =
                    [&](const std::string& what, bool holds) {
                      EXPECT_TRUE(holds) << what;
                      ++figures;
                    }});
  EXPECT_EQ(figures, 12);
}

}  // namespace
}  // namespace kvsim::testing
