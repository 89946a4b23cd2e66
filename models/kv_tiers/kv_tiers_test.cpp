// SPDX-License-Identifier: Apache-2.0
// A KV cache in tiers on a storage device: direct and mapped, wear, and what the device refuses.
#include "models/kv_tiers/kv_tiers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/spec/resolve.h"
#include "models/kv_tiers/kv_tiers_testing.h"
#include "models/storage/test_part.h"

namespace kvsim::model {
namespace {

using namespace kvsim::literals;
using ::testing::HasSubstr;

config::DeviceSpec board(const config::StoragePartSpec& part = small_part()) {
  config::DeviceSpec device = config::load_device("rk3588_4gb");
  device.storage = part;
  return device;
}

/// A block of 16 tokens is 16 KiB of K and 16 of V; 256 tokens of two layers are 1 MiB.
KvGeometry geometry(std::int64_t cells = 256) {
  return {.address = 1 << 20, .layers = 2, .cells = cells, .k_row = 1024_B, .v_row = 1024_B, .block = 16};
}

config::KvTierSpec mapped() {
  config::KvTierSpec tiers{.block = 16, .dram = 4096_KiB, .prefetch = 0, .write_batch = 16};
  tiers.through = config::KvThrough::mapped;
  tiers.lock_current = false;
  return tiers;
}

KvTierUse decode(KvTiers& tiers, const KvGeometry& g, std::int64_t first, std::int64_t end,
                 Picoseconds attention = 100_us) {
  KvTierUse use;
  for (std::int64_t token = first; token < end && !tiers.failure(); ++token) {
    for (std::int64_t layer = 0; layer < g.layers; ++layer) {
      use += tiers.run(testing::append(g, layer, {.first = token, .end = token + 1}), 1_us);
      use += tiers.run(testing::attention(g, layer, {.first = 0, .end = token + 1}), attention);
    }
    use += tiers.end_step();
  }
  return use;
}

TEST(KvTiers, CountsWhatTheDeviceReadAndWrote) {
  const KvGeometry g = geometry();
  KvTiers tiers(board(), {.geometry = g, .tiers = {.block = 16, .write_batch = 16}, .dram_blocks = 4});
  const KvTierUse use = decode(tiers, g, 0, 128);
  EXPECT_EQ(use.written, g.row() * 128 * 2);
  EXPECT_EQ(use.read, tiers.storage().counters().host_read);
  EXPECT_GT(use.read, 0_B);
  EXPECT_GE(use.read, use.device.bytes) << "what was read ahead at the end has not been used";
  EXPECT_LE(use.read, use.device.bytes + g.block_bytes() * 4 * 2);
}

TEST(KvTiers, AFileOfFewerBitsTakesLessRoomReadsAndWrites) {
  const KvGeometry g = geometry();
  const KvTiers::Setup plain{.geometry = g, .tiers = {.block = 16, .write_batch = 16}, .dram_blocks = 4};
  KvTiers::Setup setup = plain;
  setup.conversion = KvConversion{.k_row = 256_B, .v_row = 256_B, .encode = 1_ns, .decode = 1_ns};
  EXPECT_EQ(KvTiers::span(setup) * 4, KvTiers::span(plain));
  KvTiers whole(board(), plain);
  KvTiers fewer(board(), setup);
  const KvTierUse all = decode(whole, g, 0, 128);
  const KvTierUse part = decode(fewer, g, 0, 128);
  EXPECT_EQ(part.written * 4, all.written);
  EXPECT_EQ(part.read * 4, all.read);
  EXPECT_EQ(part.device.bytes, all.device.bytes);
  EXPECT_LT(part.device.time, all.device.time);
}

/// Rows of 1 KiB are parts of a unit of 4 KiB, which the flash writes anew each time.
TEST(KvTiers, TokenByTokenWritesAreAmplifiedByTheUnit) {
  const auto amplification = [](std::int64_t batch) {
    const KvGeometry g = geometry(4096);
    KvTiers tiers(board(), {.geometry = g, .tiers = {.block = 16, .write_batch = batch}, .dram_blocks = 256});
    static_cast<void>(decode(tiers, g, 0, 2048, 5_ms));
    return wear_of(small_part(), tiers.storage().counters(), BytesPerSecond(1e6)).write_amplification;
  };
  EXPECT_NEAR(amplification(1), 4, 0.1);
  EXPECT_NEAR(amplification(16), 1, 0.1);
}

TEST(KvTiers, SramTakesReadsOutOfTheStream) {
  const KvGeometry g = geometry();
  KvTiers tiers(
      board(),
      {.geometry = g, .tiers = {.block = 16, .write_batch = 16}, .sram_blocks = 1, .dram_blocks = 16});
  static_cast<void>(decode(tiers, g, 0, 40));
  std::vector<ThreadWork> threads = testing::attention(g, 0, {.first = 0, .end = 40});
  const Picoseconds time = tiers.take_sram(threads);
  EXPECT_EQ(time, g.row() / 2 * 8 / board().llc.bandwidth) << "half of 8 tokens for each thread";
  EXPECT_EQ(touched(g, threads)->read, (std::vector<std::int64_t>{0, 1}));
}

TEST(KvTiers, AFileThatDoesNotFitIsAResult) {
  const KvGeometry g = geometry(32 * 1024);
  const KvTiers tiers(board(), {.geometry = g, .tiers = {.block = 16, .write_batch = 16}, .dram_blocks = 4});
  ASSERT_TRUE(tiers.failure());
  EXPECT_THAT(tiers.failure()->what,
              HasSubstr("a file that spans 128 MiB does not fit on it, which holds 64 MiB"));
}

/// A log takes room as it grows.
TEST(KvTiers, ADeviceThatIsFullInTheMiddleIsAResultWithItsPlace) {
  const KvGeometry g = geometry(2048);
  config::StoragePartSpec part = small_part();
  part.capacity = 4096_KiB;
  KvTiers tiers(board(part), {.geometry = g,
                              .tiers = {.block = 16, .write_batch = 16, .file = config::KvFile::log},
                              .dram_blocks = 4});
  EXPECT_FALSE(tiers.failure());
  static_cast<void>(decode(tiers, g, 0, 1500));
  ASSERT_TRUE(tiers.failure());
  EXPECT_THAT(tiers.failure()->what, HasSubstr("a write of 64 KiB at 4 MiB: "));
}

TEST(KvTiers, AReadOnlyDeviceIsAResult) {
  const KvGeometry g = geometry();
  KvTiers tiers(board(with([](config::StoragePartSpec& part) { part.read_only = true; })),
                {.geometry = g, .tiers = {.block = 16, .write_batch = 16}, .dram_blocks = 4});
  static_cast<void>(decode(tiers, g, 0, 64));
  ASSERT_TRUE(tiers.failure());
  EXPECT_THAT(tiers.failure()->what, HasSubstr("read-only"));
}

TEST(KvTiers, MappedCacheThatFitsReadsEachPageOnceAtMost) {
  const KvGeometry g = geometry();
  KvTiers tiers(board(), {.geometry = g, .tiers = mapped(), .dram_blocks = 64});
  const KvTierUse first = decode(tiers, g, 0, 200);
  EXPECT_LE(first.read, g.bytes()) << "a page's first write reads the rest of it from the file";
  const KvTierUse later = decode(tiers, g, 200, 205);
  EXPECT_LE(later.read, 128_KiB * 4);
  EXPECT_EQ(first.asked(), g.row() * 2 * (200 * 201 / 2));
}

/// A scan of twice the memory evicts what it needs next.
TEST(KvTiers, MappedCacheThatDoesNotFitReadsNearlyAllOfItAgain) {
  const KvGeometry g = geometry(2048);
  config::KvTierSpec tiers_spec = mapped();
  KvTiers tiers(board(), {.geometry = g, .tiers = tiers_spec, .dram_blocks = 64});
  static_cast<void>(decode(tiers, g, 0, 2000));
  const KvTierUse use = decode(tiers, g, 2000, 2004);
  EXPECT_GT(use.read, use.asked() / 2);
  EXPECT_GT(use.stall, 0_ps);
  EXPECT_GT(use.major_faults, 100);
  EXPECT_EQ(use.asked(), use.dram.bytes + use.device.bytes);
  tiers_spec.read_ahead = false;
  KvTiers random(board(), {.geometry = g, .tiers = tiers_spec, .dram_blocks = 64});
  static_cast<void>(decode(random, g, 0, 2000));
  const KvTierUse single = decode(random, g, 2000, 2004);
  EXPECT_GT(single.major_faults, 5 * use.major_faults) << "each page by itself";
  EXPECT_GT(single.stall, use.stall);
}

TEST(KvTiers, LockedBlocksThatLeaveNoMemoryAreAResult) {
  const KvGeometry g = geometry();
  const auto failure = [&](bool lock) {
    config::KvTierSpec spec = mapped();
    spec.dram = 64_KiB;
    spec.lock_current = lock;
    KvTiers tiers(board(), {.geometry = g, .tiers = spec, .dram_blocks = 1});
    static_cast<void>(decode(tiers, g, 0, 40));
    return tiers.failure();
  };
  EXPECT_FALSE(failure(false));
  ASSERT_TRUE(failure(true));
  EXPECT_EQ(failure(true)->what, "locked blocks take all of the page cache's 64 KiB");
}

}  // namespace
}  // namespace kvsim::model
