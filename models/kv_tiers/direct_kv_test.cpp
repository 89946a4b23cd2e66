// SPDX-License-Identifier: Apache-2.0
// Blocks by age: what is read and written, when, and that what is read is what was written last.
#include "models/kv_tiers/direct_kv.h"

#include <map>

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

/// A disk that knows when each sector was written, and what has to be in it.
class Witness final : public BlockDevice {
 public:
  std::uint64_t submit(const StorageRequest& request) override {
    for (std::int64_t sector = request.offset.count() / kKvSector;
         sector < (request.offset + request.bytes).count() / kKvSector; ++sector) {
      if (request.op == StorageOp::write) {
        stamps_[sector] = step;
      } else {
        EXPECT_GE(stamps_[sector], wanted_[sector]) << "sector " << sector << " at step " << step;
        ++read_sectors;
      }
    }
    return disk_.submit(request);
  }
  std::optional<StorageCompletion> next_until(Picoseconds until) override { return disk_.next_until(until); }
  std::optional<StorageCompletion> next() override { return disk_.next(); }

  /// The cell's newest content has to be on the device when its sectors are read.
  void want(const KvFileMap& file, std::int64_t layer, std::int64_t cell, std::int64_t written) {
    std::vector<FileExtent> pieces;
    file.add_pieces(layer, {.first = cell, .end = cell + 1}, pieces);
    for (const FileExtent& piece : pieces) {
      for (std::int64_t sector = piece.offset.count() / kKvSector;
           sector < (piece.offset + piece.bytes).count() / kKvSector; ++sector) {
        wanted_[sector] = std::max(wanted_[sector], written);
      }
    }
  }

  std::int64_t step = 0;
  std::int64_t read_sectors = 0;

 private:
  TestDisk disk_;
  std::map<std::int64_t, std::int64_t> stamps_, wanted_;
};

struct Draw {
  KvGeometry geometry;
  config::KvTierSpec tiers;
  std::int64_t dram = 1;
  std::int64_t sram = 0;
  std::int64_t sinks = 0;  ///< of a ring: cells that are never used again
  bool ring = false;
};

Draw draw(Random& random) {
  Draw d;
  const std::int64_t batch = std::int64_t{1} << random.below(4);
  d.tiers = {.block = batch * static_cast<std::int64_t>(1 + random.below(3)),
             .prefetch = static_cast<std::int64_t>(random.below(3)),
             .write_batch = batch,
             .file = random.below(3) == 0 ? config::KvFile::log : config::KvFile::in_place};
  if (random.below(2) == 0) {
    d.tiers.extent = 4_KiB;
  }
  d.ring = d.tiers.file == config::KvFile::in_place && random.below(2) == 0;
  d.geometry = {.address = 4096,
                .layers = static_cast<std::int64_t>(1 + random.below(3)),
                .cells = static_cast<std::int64_t>(8 + random.below(60)),
                .k_row = Bytes(static_cast<std::int64_t>(64 * (1 + random.below(20)))),
                .v_row = Bytes(static_cast<std::int64_t>(64 * random.below(20))),
                .block = d.tiers.block};
  d.dram = static_cast<std::int64_t>(1 + random.below(5));
  d.sram = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(d.dram + 1)));
  d.sinks = d.ring ? static_cast<std::int64_t>(random.below(4)) : 0;
  return d;
}

/// Cells of the next tokens: a ring behind the sinks, or in order until they end. No token follows in the
/// same step where the ring ends.
CellRange next_cells(const Draw& d, std::int64_t cell, std::int64_t tokens) {
  if (cell == d.geometry.cells) {
    cell = d.sinks;
  }
  return {.first = cell, .end = std::min(d.geometry.cells, cell + tokens)};
}

void play(std::uint64_t seed) {
  Random random(seed);
  const Draw d = draw(random);
  Witness disk;
  const KvFileMap file(d.geometry, d.tiers, seed);
  DirectKv kv(disk, file,
              {.geometry = d.geometry, .tiers = d.tiers, .sram_blocks = d.sram, .dram_blocks = d.dram});
  std::int64_t cell = 0;
  std::int64_t live = 0;
  std::vector<std::int64_t> written(static_cast<std::size_t>(d.geometry.cells));
  for (disk.step = 1; disk.step <= 150 && (d.ring || cell < d.geometry.cells); ++disk.step) {
    const CellRange cells = next_cells(d, cell, static_cast<std::int64_t>(1 + random.below(5)));
    cell = cells.end;
    live = std::max(live, cell);
    KvTierUse use;
    for (std::int64_t c = cells.first; c < cells.end; ++c) {
      written[static_cast<std::size_t>(c)] = disk.step;
    }
    for (std::int64_t layer = 0; layer < d.geometry.layers; ++layer) {
      use += kv.run(touched(d.geometry, testing::append(d.geometry, layer, cells)), 1_us);
      // All have to be on the device if they are read there, but those whose batch is not full, and in a log
      // those of this step.
      const std::int64_t full = cells.end / d.tiers.write_batch * d.tiers.write_batch;
      for (std::int64_t c = 0; c < live; ++c) {
        const std::int64_t at = written[static_cast<std::size_t>(c)];
        const bool waits =
            (c >= full && c < cells.end) || (d.tiers.file == config::KvFile::log && at == disk.step);
        if (!waits) {
          disk.want(file, layer, c, at);
        }
      }
      use += kv.run(touched(d.geometry, testing::attention(d.geometry, layer, {.first = 0, .end = live})),
                    Picoseconds(static_cast<std::int64_t>(random.below(2'000'000'000))));
    }
    use += kv.end_step();
    EXPECT_EQ(use.asked(), d.geometry.row() * live * d.geometry.layers) << "seed " << seed;
    EXPECT_GE(use.stall, 0_ps);
    ASSERT_FALSE(kv.failure());
  }
}

TEST(DirectKv, EveryBlockThatIsReadIsWhatWasWrittenLast) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    play(seed);
  }
}

}  // namespace
}  // namespace kvsim::model
