// SPDX-License-Identifier: Apache-2.0
// What the READMEs of lessons C11 and D1 to D5 conclude still holds.
#include <gtest/gtest.h>

#include "tests/validation/tier_run.h"

namespace kvsim::testing {
namespace {

using Changes = std::vector<std::string>;

Changes operator+(Changes a, const Changes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// C11: the nearest tier has the newest tokens; what the farthest has decides the speed.
TEST(TierLessons, C11TheFarthestTierDecides) {
  const TierRun near = measure_tiers_run("c11_three_tiers", at_depth(512));
  EXPECT_NEAR(near.shares[0], 0.17, 0.03);
  EXPECT_DOUBLE_EQ(near.shares[2], 0);
  const TierRun far = measure_tiers_run("c11_three_tiers", at_depth(4096));
  EXPECT_LT(far.shares[0], 0.03);
  EXPECT_GT(far.shares[2], 0.7);
  EXPECT_GT(far.p50, 20 * near.p50);
  const double without =
      measure_tiers_run("c11_three_tiers", at_depth(512) + Changes{"engine.kv_tiers.sram=0 B"}).p50;
  EXPECT_LT(near.p50, without);
  EXPECT_NEAR(near.p50 / without, 1, 0.02) << "SRAM is worth little where weights are read from DRAM";
}

/// C11: fewer bits in flash pay as they are fewer; by score half is read.
TEST(TierLessons, C11FewerBitsInFlashAndScoresPay) {
  const auto at4096 = [](const Changes& changes) {
    return measure_tiers_run("c11_three_tiers",
                             at_depth(4096) + Changes{"engine.kv_tiers.sram=0 B"} + changes);
  };
  const TierRun f16 = at4096({"engine.kv_tiers.block=512"});
  const TierRun q4 = at4096({"engine.kv_tiers.block=512", "engine.kv_tiers.format=q4_0"});
  EXPECT_NEAR(q4.read / f16.read, 72.0 / 256, 1e-3);
  EXPECT_LT(q4.p50, 0.5 * f16.p50);
  const TierRun age = at4096({"engine.kv=f16+topk=512"});
  const TierRun score = at4096({"engine.kv=f16+topk=512", "engine.kv_tiers.placement=score"});
  EXPECT_NEAR(score.read / age.read, 0.54, 0.08);
  EXPECT_LT(score.p50, 0.7 * age.p50);
}

/// D1: "18 ms to 217 ms past 512 tokens at 40 MB/s": ten times slower already at twice the tokens.
TEST(TierLessons, D1SerialNandIsACliff) {
  const double before = measure_tiers_run("d1_spi_nand", at_depth(256)).p50;
  const TierRun after = measure_tiers_run("d1_spi_nand", at_depth(1024));
  EXPECT_GT(after.p50, 8 * before);
  const double rate = after.read / (after.p50 * after.stall / 1e3) / 1e6;
  EXPECT_NEAR(rate, 13, 2) << "MB/s, as measured, not the 40 of the claim";
}

/// D2: blocks read by the engine beat the mapping; read-ahead is worth a factor of three.
TEST(TierLessons, D2TheWayToTheBlocksDecides) {
  const auto at512 = [](const Changes& changes) {
    return measure_tiers_run("d2_emmc_blocks", at_depth(512) + changes);
  };
  const Changes mapped = {"engine.kv_tiers.through=mapped", "engine.kv_tiers.prefetch=0"};
  const TierRun direct = at512({});
  const TierRun read_ahead = at512(mapped);
  const TierRun none = at512(mapped + Changes{"engine.kv_tiers.read_ahead=false"});
  const TierRun unlocked = at512(mapped + Changes{"engine.kv_tiers.lock_current=false"});
  EXPECT_LT(direct.p50, at512({"engine.kv_tiers.prefetch=0"}).p50);
  EXPECT_LT(direct.p50, 0.7 * read_ahead.p50);
  EXPECT_GT(none.p50, 2.5 * read_ahead.p50);
  EXPECT_GT(none.faults, 10 * read_ahead.faults);
  EXPECT_GT(unlocked.p50, read_ahead.p50);
}

/// D3: "200 us against 120 ns": the measured parts take 119 to 463 us.
TEST(TierLessons, D3ARandomReadTakesAThousandTimesAsLong) {
  EXPECT_NEAR(random_read_us("emmc_foresee_sld64g"), 119, 12);
  EXPECT_NEAR(random_read_us("emmc_samsung_bjtd4r"), 159, 16);
  EXPECT_NEAR(random_read_us("emmc_sandisk_dg4016"), 371, 37);
}

/// D4: small writes are amplified by unit over row, and batches end that.
TEST(TierLessons, D4BatchesEndAmplification) {
  const auto run = [](int batch, const char* file = "in_place") {
    return measure_tiers_run("d4_write_batching", {"engine.kv_tiers.write_batch=" + std::to_string(batch),
                                                   std::string("engine.kv_tiers.file=") + file});
  };
  const TierRun single = run(1);
  const TierRun batched = run(16);
  EXPECT_NEAR(single.amplification, 8, 0.2) << "rows of 512 B in units of 4 KiB";
  EXPECT_NEAR(run(4).amplification, 2, 0.1);
  EXPECT_NEAR(batched.amplification, 1, 0.05);
  EXPECT_GT(batched.days, 4 * single.days);
  EXPECT_GT(single.days, 100) << "three days are out of reach";
  const TierRun log = run(1, "log");
  EXPECT_LT(log.amplification, 1.2);
  EXPECT_GT(log.p50, 10 * single.p50) << "a token's rows lie apart when they are read";
}

/// D5: pieces cost nothing as long as they are no smaller than a request.
TEST(TierLessons, D5PiecesSmallerThanARequestCost) {
  const auto p50 = [](const char* extent) {
    return measure_tiers_run("d5_preallocated_image",
                             {std::string("engine.kv_tiers.extent=") + extent, "engine.kv_tiers.prefetch=0"})
        .p50;
  };
  const double whole = p50("none");
  EXPECT_NEAR(p50("256 KiB") / whole, 1, 0.02);
  EXPECT_GT(p50("16 KiB"), 1.7 * whole);
  EXPECT_GT(p50("4 KiB"), p50("16 KiB"));
}

}  // namespace
}  // namespace kvsim::testing
