// SPDX-License-Identifier: Apache-2.0
// What the READMEs of lessons C11 and D1 to D5 conclude still holds.
#include <gtest/gtest.h>

#include "tests/validation/tier_run.h"

namespace kvsim::testing {
namespace {

TEST(TierLessons, ToBeWritten) {
  EXPECT_GT(measure_tiers_run("d2_emmc_blocks", at_depth(512)).p50, 0);
}

}  // namespace
}  // namespace kvsim::testing
