// SPDX-License-Identifier: Apache-2.0
// Random mixes of all that tiers can be: what is read is what was written last, and nothing is lost.
#include <map>

#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "models/kv_tiers/direct_kv.h"
#include "models/kv_tiers/kv_tiers_testing.h"
#include "models/page_cache/page_cache_testing.h"

namespace kvsim::model {
namespace {

using namespace kvsim::literals;
using testing::TestDisk;

/// A disk that knows when each sector was written, and what has to be in it.
class Witness final : public BlockDevice {
 public:
  explicit Witness(Picoseconds each) : disk_(each) {}
  std::uint64_t submit(const StorageRequest& request) override {
    for (std::int64_t sector = request.offset.count() / kKvSector;
         sector < (request.offset + request.bytes).count() / kKvSector; ++sector) {
      if (request.op == StorageOp::write) {
        stamps_[sector] = step;
      } else {
        EXPECT_GE(stamps_[sector], wanted_[sector]) << "sector " << sector << " at step " << step;
        EXPECT_FALSE(alone && under_way_.contains(sector)) << "read before it is written";
        ++read_sectors;
      }
    }
    count(request, 1);
    return disk_.submit(request);
  }
  std::optional<StorageCompletion> next_until(Picoseconds until) override {
    return taken(disk_.next_until(until));
  }
  std::optional<StorageCompletion> next() override { return taken(disk_.next()); }

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
  bool alone = false;  ///< no two blocks have a sector in common, and none is read while it is filled

 private:
  void count(const StorageRequest& request, int change) {
    for (std::int64_t sector = request.offset.count() / kKvSector;
         request.op == StorageOp::write && sector < (request.offset + request.bytes).count() / kKvSector;
         ++sector) {
      if ((under_way_[sector] += change) == 0) {
        under_way_.erase(sector);
      }
    }
  }
  std::optional<StorageCompletion> taken(std::optional<StorageCompletion> done) {
    if (done) {
      count(done->request, -1);
    }
    return done;
  }

  TestDisk disk_;
  std::map<std::int64_t, int> under_way_;  ///< writes that the engine does not know to be done, by sector
  std::map<std::int64_t, std::int64_t> stamps_, wanted_;
};

struct Draw {
  KvGeometry geometry;
  config::KvTierSpec tiers;
  std::int64_t dram = 1;
  std::int64_t sram = 0;
  std::int64_t sinks = 0;  ///< of a ring: cells that are never used again
  bool ring = false;
  bool chooses = false;
  std::optional<KvConversion> conversion = {};
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
  d.chooses = !d.ring && random.below(2) == 0;
  if (d.chooses && random.below(2) == 0) {
    d.tiers.placement = config::KvPlacement::score;
  }
  if (random.below(3) == 0) {
    d.conversion = KvConversion{.k_row = Bytes(static_cast<std::int64_t>(64 * (1 + random.below(8)))),
                                .v_row = d.geometry.v_row > 0_B ? 192_B : 0_B,
                                .encode = 1_us,
                                .decode = 2_us};
  }
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

KvGeometry in_file(const Draw& d) {
  KvGeometry geometry = d.geometry;
  if (d.conversion) {
    geometry.k_row = d.conversion->k_row;
    geometry.v_row = d.conversion->v_row;
  }
  return geometry;
}

/// Some blocks of the live cells, the last one always; all, if attention does not choose.
KvTouch attention_of(const Draw& d, Random& random, std::int64_t layer, std::int64_t live) {
  KvTouch touch{.layer = layer};
  const std::int64_t blocks = (live - 1) / d.geometry.block + 1;
  for (std::int64_t block = 0; block < blocks; ++block) {
    if (!d.chooses || block + 1 == blocks || random.below(3) == 0) {
      touch.read.push_back(block);
    }
  }
  return touch;
}

Bytes asked_by(const Draw& d, const KvTouch& touch, std::int64_t live) {
  Bytes bytes;
  for (const std::int64_t block : touch.read) {
    bytes += d.geometry.row() * std::min(d.geometry.block, live - block * d.geometry.block);
  }
  return bytes;
}

void play(std::uint64_t seed) {
  Random random(seed);
  const Draw d = draw(random);
  Witness disk(random.below(2) == 0 ? 100_us : 20_ms);
  const KvGeometry rows = in_file(d);
  disk.alone = !d.ring && d.tiers.file == config::KvFile::in_place &&
               (rows.k_row * d.tiers.block).count() % kKvSector == 0 &&
               (rows.v_row * d.tiers.block).count() % kKvSector == 0;
  const KvFileMap file(rows, d.tiers, seed);
  DirectKv kv(disk, file,
              {.geometry = d.geometry,
               .tiers = d.tiers,
               .sram_blocks = d.sram,
               .dram_blocks = d.dram,
               .chooses = d.chooses,
               .conversion = d.conversion});
  std::int64_t cell = 0;
  std::int64_t live = 0;
  std::vector<std::int64_t> written(static_cast<std::size_t>(d.geometry.cells));
  for (disk.step = 1; disk.step <= 150 && (d.ring || cell < d.geometry.cells); ++disk.step) {
    const CellRange cells = next_cells(d, cell, static_cast<std::int64_t>(1 + random.below(5)));
    cell = cells.end;
    live = std::max(live, cell);
    KvTierUse use;
    Bytes asked;
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
      const KvTouch touch = attention_of(d, random, layer, live);
      asked += asked_by(d, touch, live);
      const std::int64_t before = kv.held(layer);
      use += kv.run(touch, Picoseconds(static_cast<std::int64_t>(random.below(2'000'000'000))));
      EXPECT_LE(kv.held(layer), std::max(before, d.dram)) << "seed " << seed;
    }
    use += kv.end_step();
    EXPECT_EQ(use.asked(), asked) << "seed " << seed;
    EXPECT_LE(kv.held(0), d.dram) << "seed " << seed;
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
