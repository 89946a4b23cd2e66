// SPDX-License-Identifier: Apache-2.0
// Blocks by age and by score: what is read and written, and when.
#include "models/kv_tiers/direct_kv.h"

#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "models/kv_tiers/kv_tiers_testing.h"
#include "models/page_cache/page_cache_testing.h"

namespace kvsim::model {
namespace {

using namespace kvsim::literals;
using testing::TestDisk;

/// A model that computes token after token.
struct Engine {
  Engine(const KvGeometry& g, const config::KvTierSpec& tiers, std::int64_t dram, std::int64_t sram = 0)
      : geometry(g),
        file(g, tiers, 3),
        kv(disk, file, {.geometry = g, .tiers = tiers, .sram_blocks = sram, .dram_blocks = dram}) {}

  /// Writes the cells, then attends to all that is live.
  KvTierUse step(CellRange cells, CellRange live) {
    KvTierUse use;
    for (std::int64_t layer = 0; layer < geometry.layers; ++layer) {
      use += kv.run(touched(geometry, testing::append(geometry, layer, cells)), other);
      use += kv.run(touched(geometry, testing::attention(geometry, layer, live)), attention);
      use += kv.run({}, other);
    }
    use += kv.end_step();
    return use;
  }
  KvTierUse tokens(std::int64_t first, std::int64_t end) {
    KvTierUse use;
    for (std::int64_t token = first; token < end; ++token) {
      use += step({.first = token, .end = token + 1}, {.first = 0, .end = token + 1});
    }
    return use;
  }

  KvGeometry geometry;
  KvFileMap file;
  TestDisk disk{Picoseconds(100'000'000), Picoseconds(10'000'000)};
  DirectKv kv;
  Picoseconds attention = 1_ms;
  Picoseconds other = 1_us;
};

/// A block of 8 tokens is 8 KiB of K and 8 of V.
KvGeometry geometry(std::int64_t cells = 64) {
  return {.address = 0, .layers = 2, .cells = cells, .k_row = 1024_B, .v_row = 1024_B, .block = 8};
}

TEST(DirectKv, WhatFitsIsWrittenBehindAndNeverRead) {
  Engine engine(geometry(), {.block = 8, .write_batch = 4}, 8);
  const KvTierUse use = engine.tokens(0, 61);
  EXPECT_EQ(engine.disk.read, 0_B);
  EXPECT_EQ(use.stall, 0_ps);
  EXPECT_EQ(use.device.blocks, 0);
  EXPECT_EQ(engine.disk.written, engine.geometry.row() * 2 * 60) << "15 batches of 4";
}

/// 40 tokens are 5 blocks; 2 are in memory, of which one is being filled or kept free for the next.
TEST(DirectKv, OlderBlocksAreReadForEachToken) {
  Engine engine(geometry(), {.block = 8, .prefetch = 0, .write_batch = 8}, 2);
  static_cast<void>(engine.tokens(0, 40));
  const Bytes before = engine.disk.read;
  const KvTierUse use = engine.tokens(40, 41);
  EXPECT_EQ(engine.disk.read - before, engine.geometry.block_bytes() * 4 * 2) << "of 6, in two layers";
  EXPECT_EQ(use.device.bytes, engine.disk.read - before);
  EXPECT_EQ(use.dram.bytes, engine.geometry.row() * (8 + 1) * 2);
  EXPECT_EQ(use.asked(), engine.geometry.row() * 41 * 2);
}

/// Requests one after the other, K and V of each block: the last share of the arithmetic comes after the
/// last block.
TEST(DirectKv, StallIsTheTimeOfTheReadsThatAttentionDoesNotHide) {
  Engine engine(geometry(), {.block = 8, .prefetch = 0, .write_batch = 8}, 2);
  static_cast<void>(engine.tokens(0, 40));
  const KvTierUse use = engine.tokens(40, 41);
  const Picoseconds request = 120_us;  // two pages
  const Picoseconds layer = request * 8 + engine.attention / 6 - engine.attention;
  EXPECT_NEAR(static_cast<double>(use.stall.count()), static_cast<double>((layer * 2).count()), 10);
  EXPECT_NEAR(static_cast<double>(use.device.time.count()),
              static_cast<double>((request * (2 + 4 + 6 + 8) * 2).count()), 10);
}

/// While a layer computes for longer than its neighbour's reads take, nothing waits.
TEST(DirectKv, PrefetchHidesReads) {
  const auto stall = [](std::int64_t layers, Picoseconds attention) {
    Engine engine(geometry(), {.block = 8, .prefetch = layers, .write_batch = 8}, 2);
    engine.attention = attention;
    static_cast<void>(engine.tokens(0, 42));
    return engine.tokens(42, 43).stall;
  };
  EXPECT_GT(stall(0, 1100_us), 0_ps);
  EXPECT_EQ(stall(1, 1100_us), 0_ps);
  EXPECT_GT(stall(1, 500_us), 0_ps) << "the device is the bound";
  EXPECT_LT(stall(1, 500_us), stall(0, 500_us));
}

TEST(DirectKv, SramHasTheNewestBlocks) {
  Engine engine(geometry(), {.block = 8, .write_batch = 8}, 4, 2);
  static_cast<void>(engine.tokens(0, 36));
  EXPECT_TRUE(engine.kv.in_sram(0, 4));
  EXPECT_TRUE(engine.kv.in_sram(1, 3));
  EXPECT_FALSE(engine.kv.in_sram(0, 2));
  const KvTierUse use = engine.tokens(36, 37);
  EXPECT_EQ(use.sram.bytes, engine.geometry.row() * (5 + 8) * 2);
  EXPECT_EQ(use.dram.bytes, engine.geometry.row() * 16 * 2);
  EXPECT_EQ(use.device.bytes, engine.geometry.row() * 8 * 2);
}

TEST(DirectKv, TokenByTokenWritesAsManyBytesInMoreRequests) {
  const auto requests = [](std::int64_t batch, config::KvFile file) {
    Engine engine(geometry(), {.block = 8, .write_batch = batch, .file = file}, 8);
    static_cast<void>(engine.tokens(0, 32));
    EXPECT_EQ(engine.disk.written, engine.geometry.row() * 2 * 32);
    return engine.disk.log.size();
  };
  EXPECT_EQ(requests(1, config::KvFile::in_place), 32U * 4);
  EXPECT_EQ(requests(8, config::KvFile::in_place), 4U * 4);
  EXPECT_EQ(requests(1, config::KvFile::log), 32U);
  EXPECT_EQ(requests(8, config::KvFile::log), 4U);
}

TEST(DirectKv, BeginsWhereItIsPlaced) {
  Engine engine(geometry(), {.block = 8, .prefetch = 0, .write_batch = 8}, 2);
  CellTokens cells(40);
  for (std::uint32_t i = 0; i < 40; ++i) {
    cells[i] = i;
  }
  engine.kv.place(cells);
  const KvTierUse use = engine.tokens(40, 41);
  EXPECT_EQ(use.device.bytes, engine.geometry.block_bytes() * 4 * 2);
  EXPECT_EQ(use.dram.bytes, engine.geometry.row() * 9 * 2);
}

/// Where a ring of 32 cells begins again, the block being filled still has older tokens, which are on the
/// device: they are read once.
TEST(DirectKv, ABlockThatIsFilledAgainIsReadFirst) {
  Engine engine(geometry(32), {.block = 8, .prefetch = 0, .write_batch = 8}, 2);
  static_cast<void>(engine.tokens(0, 32));
  const CellRange all{.first = 0, .end = 32};
  const KvTierUse again = engine.step({.first = 0, .end = 1}, all);
  EXPECT_EQ(again.device.blocks, 3 * 2) << "0, 1 and 2; the last of the ring is in memory";
  const KvTierUse next = engine.step({.first = 1, .end = 2}, all);
  EXPECT_EQ(next.device.blocks, 2 * 2) << "1 and 2";
}

TEST(DirectKv, ABatchThatIsLeftIsWrittenAsFarAsItCame) {
  Engine engine(geometry(), {.block = 8, .write_batch = 8}, 8);
  static_cast<void>(engine.step({.first = 0, .end = 3}, {.first = 0, .end = 3}));
  EXPECT_EQ(engine.disk.written, 0_B);
  static_cast<void>(engine.step({.first = 17, .end = 18}, {.first = 0, .end = 18}));
  EXPECT_EQ(engine.disk.written, engine.geometry.row() * 3 * 2);
}

TEST(DirectKv, WhatTheDeviceRefusesIsToldWithItsPlace) {
  Engine engine(geometry(), {.block = 8, .write_batch = 8}, 2);
  engine.disk.refuse_writes = true;
  static_cast<void>(engine.tokens(0, 20));
  ASSERT_TRUE(engine.kv.failure());
  EXPECT_EQ(engine.kv.failure()->what, "a write of 8 KiB at 0 B: read-only");
}

/// An engine that reads some blocks only; 40 tokens, 5 blocks of each layer, are there.
struct Choosy {
  explicit Choosy(config::KvPlacement placement, std::int64_t prefetch = 0, std::int64_t dram = 3)
      : tiers{.block = 8, .placement = placement, .prefetch = prefetch, .write_batch = 8},
        file(geometry(), tiers, 3),
        kv(disk, file, {.geometry = geometry(), .tiers = tiers, .dram_blocks = dram, .chooses = true}) {
    CellTokens cells(40);
    for (std::uint32_t i = 0; i < 40; ++i) {
      cells[i] = i;
    }
    kv.place(cells);
  }

  /// A token, and attention to these blocks, in either layer.
  KvTierUse step(const std::vector<std::int64_t>& first, const std::vector<std::int64_t>& second) {
    KvTierUse use;
    const CellRange cells{.first = token, .end = token + 1};
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      use += kv.run(touched(geometry(), testing::append(geometry(), layer, cells)), 1_us);
      use += kv.run(KvTouch{.layer = layer, .read = layer == 0 ? first : second}, 1_ms);
    }
    use += kv.end_step();
    ++token;
    return use;
  }
  /// Blocks that the device reads for the same choice in both layers.
  std::int64_t reads(const std::vector<std::int64_t>& blocks) {
    const Bytes before = disk.read;
    const KvTierUse use = step(blocks, blocks);
    EXPECT_EQ(use.asked(), geometry().row() * (8 * (std::ssize(blocks) - 1) + token - 40) * 2);
    EXPECT_EQ(use.device.bytes, disk.read - before);
    return (disk.read - before).count() / geometry().block_bytes().count() / 2;
  }

  config::KvTierSpec tiers;
  KvFileMap file;
  TestDisk disk{Picoseconds(100'000'000), Picoseconds(10'000'000)};
  DirectKv kv;
  std::int64_t token = 40;
};

/// 3 blocks are in memory: 5, which is being filled, and by age 4 and 3.
TEST(DirectKv, ByScoreTheBlocksReadMostOftenStay) {
  Choosy engine(config::KvPlacement::score);
  EXPECT_EQ(engine.reads({0, 5}), 1) << "0 comes, and 3, which nobody has read, goes";
  EXPECT_EQ(engine.reads({0, 4, 5}), 0);
  EXPECT_EQ(engine.reads({1, 5}), 1) << "read once, no oftener than 4: it does not stay";
  EXPECT_EQ(engine.reads({1, 5}), 1) << "now it does, and 4 goes";
  EXPECT_EQ(engine.reads({0, 1, 5}), 0);
  EXPECT_EQ(engine.reads({4, 5}), 1);
  EXPECT_EQ(engine.kv.held(0), 3);
}

TEST(DirectKv, TheBlockBeingFilledStaysWhateverItsScore) {
  Choosy engine(config::KvPlacement::score, 0, 1);
  for (int i = 0; i < 3; ++i) {
    static_cast<void>(engine.step({0}, {0}));
  }
  const Bytes before = engine.disk.read;
  EXPECT_EQ(engine.step({5}, {5}).dram.blocks, 2);
  EXPECT_EQ(engine.disk.read, before);
}

TEST(DirectKv, ByAgeWhatIsReadDoesNotStay) {
  Choosy engine(config::KvPlacement::age);
  EXPECT_EQ(engine.reads({0, 5}), 1);
  EXPECT_EQ(engine.reads({0, 4, 5}), 1);
  EXPECT_EQ(engine.reads({3, 4, 5}), 0);
}

/// Where layers choose, a layer's blocks of the token before are read ahead: those chosen again are there,
/// others are read in vain.
TEST(DirectKv, ReadsAheadWhatTheTokenBeforeChose) {
  Choosy engine(config::KvPlacement::age, 1);
  const Bytes block = geometry().block_bytes();
  static_cast<void>(engine.step({0, 5}, {1, 5}));
  Bytes before = engine.disk.read;
  const KvTierUse again = engine.step({0, 5}, {1, 5});
  EXPECT_EQ(engine.disk.read - before, block * 2) << "layer 1's, and layer 0's for the next token";
  EXPECT_EQ(again.device.blocks, 2);
  EXPECT_EQ(again.stall, 0_ps);
  before = engine.disk.read;
  const KvTierUse other = engine.step({0, 5}, {2, 5});
  EXPECT_EQ(engine.disk.read - before, block * 3) << "1 of layer 1 in vain";
  EXPECT_EQ(other.device.blocks, 2);
  EXPECT_EQ(other.landed, geometry().row() * 8 * 3);
}

/// A row of K, and one of V, of 512 B in the file: as many requests, of half the bytes, and each block is
/// decoded after it has come.
TEST(DirectKv, TheFilesFormatDecidesWhatIsReadAndWritten) {
  const auto run = [](Picoseconds decode) {
    KvGeometry half = geometry();
    half.k_row = half.v_row = 512_B;
    const config::KvTierSpec tiers{.block = 8, .prefetch = 0, .write_batch = 8};
    TestDisk disk{Picoseconds(100'000'000), Picoseconds(10'000'000)};
    const KvFileMap file(half, tiers, 3);
    DirectKv kv(
        disk, file,
        {.geometry = geometry(),
         .tiers = tiers,
         .dram_blocks = 2,
         .conversion = KvConversion{.k_row = 512_B, .v_row = 512_B, .encode = 3_us, .decode = decode}});
    KvTierUse use;
    for (std::int64_t token = 0; token < 41; ++token) {
      use = {};
      for (std::int64_t layer = 0; layer < 2; ++layer) {
        const CellRange cells{.first = token, .end = token + 1};
        const CellRange live{.first = 0, .end = token + 1};
        use += kv.run(touched(geometry(), testing::append(geometry(), layer, cells)), 1_us);
        use += kv.run(touched(geometry(), testing::attention(geometry(), layer, live)), 1_ms);
      }
      use += kv.end_step();
    }
    EXPECT_EQ(disk.written, half.row() * 40 * 2);
    EXPECT_EQ(use.device.bytes, geometry().block_bytes() * 4 * 2) << "as attention sees them";
    EXPECT_EQ(use.landed, (half.block_bytes() + geometry().block_bytes()) * 4 * 2 + half.row() * 2);
    return use;
  };
  const Picoseconds request = 110_us;
  EXPECT_EQ(run(0_ps).device.time, request * (2 + 4 + 6 + 8) * 2);
  EXPECT_EQ(run(1_us).device.time, request * (2 + 4 + 6 + 8) * 2 + 8_us * 4 * 2);
  EXPECT_EQ(run(100_us).device.time, (request * 2 * 4 + 800_us * (1 + 2 + 3 + 4)) * 2)
      << "the core that decodes is the bound";
  const Picoseconds stall = 3_us + request * 8 + 8_us + Picoseconds(1'000'000'000 / 6) - 1_ms;
  EXPECT_NEAR(static_cast<double>(run(1_us).stall.count()), static_cast<double>((stall * 2).count()), 20);
}

}  // namespace
}  // namespace kvsim::model
