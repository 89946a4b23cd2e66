// SPDX-License-Identifier: Apache-2.0
// Which blocks accesses touch, and where they lie in the file and on the device.
#include <set>

#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "models/kv_tiers/kv_file_map.h"
#include "models/kv_tiers/kv_tiers_testing.h"

namespace kvsim::model {
namespace {

using namespace kvsim::literals;

constexpr trace::Address kBase = 1 << 20;

KvGeometry geometry() {
  return {.address = kBase, .layers = 3, .cells = 40, .k_row = 1024_B, .v_row = 512_B, .block = 8};
}

TEST(KvGeometry, TellsLayerAndBlocksOfReads) {
  const auto touch = touched(geometry(), testing::attention(geometry(), 1, {.first = 5, .end = 17}));
  ASSERT_TRUE(touch);
  EXPECT_EQ(touch->layer, 1);
  EXPECT_EQ(touch->read, (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_TRUE(touch->written.empty());
}

TEST(KvGeometry, TellsCellsOfWrites) {
  const auto touch = touched(geometry(), testing::append(geometry(), 2, {.first = 39, .end = 40}));
  ASSERT_TRUE(touch);
  EXPECT_EQ(touch->layer, 2);
  EXPECT_EQ(touch->written, (std::vector<CellRange>{{.first = 39, .end = 40}}));
  EXPECT_TRUE(touch->read.empty());
}

TEST(KvGeometry, OtherMemoryIsNotItsConcern) {
  std::vector<ThreadWork> threads = testing::append(geometry(), 0, {.first = 0, .end = 1});
  for (trace::Extent& e : threads[0].extents) {
    e.kind = trace::Kind::scratch;
  }
  EXPECT_FALSE(touched(geometry(), threads));
  threads = testing::append(geometry(), 0, {.first = 0, .end = 1});
  for (trace::Extent& e : threads[0].extents) {
    e.address += static_cast<trace::Address>(geometry().bytes().count());
  }
  EXPECT_FALSE(touched(geometry(), threads));
}

/// What is taken out and what stays are the whole, and what stays touches no block that is held.
TEST(KvGeometry, TakesOutTheReadsOfBlocksThatAreHeld) {
  const KvGeometry g = geometry();
  const auto held = [](std::int64_t layer, std::int64_t block) { return layer == 1 && block % 2 == 1; };
  for (ThreadWork& thread : testing::attention(g, 1, {.first = 3, .end = 30})) {
    const Bytes taken = take_out(g, held, thread);
    EXPECT_EQ(taken, (g.row() / 2) * (8 + 6)) << "cells 8 to 16 and 24 to 30";
    Bytes left;
    for (const trace::Extent& e : thread.extents) {
      left += total_bytes(e);
    }
    EXPECT_EQ(left, (g.row() / 2) * (27 - 14));
    EXPECT_EQ(touched(g, std::vector{thread})->read, (std::vector<std::int64_t>{0, 2}));
  }
  ThreadWork whole_rows = testing::append(g, 1, {.first = 0, .end = 40})[0];
  for (trace::Extent& e : whole_rows.extents) {
    e.access = trace::Access::read;
  }
  EXPECT_EQ(take_out(g, held, whole_rows), g.row() * 16);
  EXPECT_EQ(whole_rows.extents.size(), 6U) << "blocks 0, 2 and 4 of K and V";
  ThreadWork writes = testing::append(g, 1, {.first = 8, .end = 16})[0];
  EXPECT_EQ(take_out(g, held, writes), 0_B) << "writes go on to DRAM";
}

/// Of every cell K and V have bytes of their own, and all of them lie in the file and on the device.
void expect_disjoint(const config::KvTierSpec& tiers, Bytes k_row, Bytes v_row) {
  KvGeometry g = geometry();
  g.k_row = k_row;
  g.v_row = v_row;
  const KvFileMap file(g, tiers, 7);
  std::set<std::int64_t> used;
  std::vector<FileExtent> pieces;
  for (std::int64_t layer = 0; layer < g.layers; ++layer) {
    for (std::int64_t cell = 0; cell < g.cells; ++cell) {
      for (const bool is_v : {false, true}) {
        const FileExtent at = file.in_file(layer, is_v, {.first = cell, .end = cell + 1});
        EXPECT_EQ(at.bytes, is_v ? v_row : k_row);
        for (std::int64_t b = at.offset.count(); b < (at.offset + at.bytes).count(); ++b) {
          EXPECT_TRUE(used.insert(b).second);
        }
      }
      pieces.clear();
      file.add_pieces(layer, {.first = cell, .end = cell + 1}, pieces);
      Bytes bytes;
      for (const FileExtent& piece : pieces) {
        EXPECT_EQ(piece.offset.count() % kKvSector, 0);
        EXPECT_EQ(piece.bytes.count() % kKvSector, 0);
        EXPECT_LE(piece.offset + piece.bytes, KvFileMap::span(g, tiers));
        bytes += piece.bytes;
      }
      EXPECT_GE(bytes, g.row());
    }
  }
  EXPECT_LT(*used.rbegin(), file.size().count());
  Bytes sum;
  for (const FileExtent& extent : file.extents()) {
    sum += extent.bytes;
  }
  EXPECT_EQ(sum, file.size());
}

TEST(KvFileMap, EveryCellHasItsPlace) {
  for (const config::KvFile kind : {config::KvFile::in_place, config::KvFile::log}) {
    for (const std::optional<Bytes> extent : {std::optional<Bytes>(), std::optional<Bytes>(4_KiB)}) {
      config::KvTierSpec tiers{.block = 8, .write_batch = 4, .file = kind, .extent = extent};
      expect_disjoint(tiers, 1024_B, 512_B);
      expect_disjoint(tiers, 1088_B, 136_B);
    }
  }
}

TEST(KvFileMap, ABlockIsOneRequestForEachOfKAndVUnlessItIsCut) {
  const KvGeometry g = geometry();
  const auto pieces = [&](const config::KvTierSpec& tiers) {
    std::vector<FileExtent> result;
    KvFileMap(g, tiers, 1).add_pieces(1, {.first = 8, .end = 16}, result);
    return result;
  };
  EXPECT_EQ(pieces({.block = 8, .write_batch = 8}).size(), 2U);
  EXPECT_EQ(pieces({.block = 8, .write_batch = 2, .file = config::KvFile::log}).size(), 8U)
      << "four batches of K and V";
  const auto cut = pieces({.block = 8, .write_batch = 8, .extent = 4_KiB});
  EXPECT_EQ(cut.size(), 3U) << "8 KiB of K in two extents, 4 KiB of V in one";
  EXPECT_EQ(cut[0].bytes, 4_KiB);
}

TEST(KvFileMap, ASizeThatDoesNotFitItsTypeIsTheLargest) {
  KvGeometry g = geometry();
  g.cells = std::int64_t{1} << 24;
  g.layers = 1 << 20;
  g.k_row = g.v_row = Bytes(1 << 20);
  for (const config::KvFile kind : {config::KvFile::in_place, config::KvFile::log}) {
    EXPECT_EQ(KvFileMap::span(g, {.block = 8, .write_batch = 4, .file = kind, .extent = 4_KiB}).count(),
              std::numeric_limits<std::int64_t>::max());
  }
}

TEST(KvFileMap, AnEntryOfALogHoldsABatchOfAllLayers) {
  const KvGeometry g = geometry();
  const KvFileMap file(g, {.block = 8, .write_batch = 4, .file = config::KvFile::log}, 1);
  EXPECT_EQ(file.entry(3).bytes, g.row() * 4 * 3);
  EXPECT_EQ(file.entry(3).offset, file.entry(3).bytes * 3);
  EXPECT_EQ(file.size(), 180_KiB) << "ten entries of 18 KiB";
}

}  // namespace
}  // namespace kvsim::model
