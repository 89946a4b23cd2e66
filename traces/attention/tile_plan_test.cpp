// SPDX-License-Identifier: Apache-2.0
// Do tiles move the bytes that closed forms say, and fit?
#include "traces/attention/tile_plan.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "configs/error/error.h"

namespace kvsim::trace {
namespace {

using namespace literals;

TileGeometry llama(std::int64_t tokens = 2048) {
  return {.heads = 32,
          .kv_heads = 8,
          .head_dim = 128,
          .queries = tokens,
          .context = tokens,
          .query_row = 256_B,
          .kv_row = 256_B};
}

std::int64_t up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// K and V once per query tile and KV head, causally visible key tiles only.
Bytes tiled_kv(const TileGeometry& g, const TileShape& tile) {
  std::int64_t tokens = 0;
  for (std::int64_t first = 0; first < g.queries; first += tile.queries) {
    const std::int64_t sees = g.context - g.queries + std::min(first + tile.queries, g.queries);
    tokens += std::min(up(sees, tile.keys) * tile.keys, g.context);
  }
  return g.kv_row * (2 * g.kv_heads * tokens);
}

Bytes moved(const TilePlan& plan, Access access) {
  Bytes all;
  for (const auto& core : plan.cores) {
    for (const TileStep& s : core) {
      for (const auto* moves : {&s.loads, &s.stores}) {
        for (const TileMove& m : *moves) {
          EXPECT_TRUE(well_formed(m.extent));
          EXPECT_LE(total_bytes(m.extent), plan.buffers[m.buffer].bytes);
          EXPECT_EQ(m.extent.access, moves == &s.loads ? Access::read : Access::write);
          all += m.extent.access == access ? total_bytes(m.extent) : Bytes();
        }
      }
    }
  }
  return all;
}

std::int64_t macs(const TilePlan& plan) {
  std::int64_t all = 0;
  for (const auto& core : plan.cores) {
    for (const TileStep& s : core) {
      all += s.macs;
    }
  }
  return all;
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::int64_t upto(std::int64_t most) {
    return 1 + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(most));
  }

 private:
  std::mt19937_64 engine_;
};

TileGeometry random_geometry(Random& r) {
  TileGeometry g;
  g.kv_heads = r.upto(4);
  g.heads = g.kv_heads * r.upto(4);
  g.head_dim = r.upto(128);
  g.context = r.upto(300);
  g.queries = r.upto(g.context);
  g.query_row = Bytes(2 * g.head_dim);
  g.kv_row = Bytes(r.upto(256));
  g.score = Bytes(2 * r.upto(2));
  return g;
}

TEST(TilePlan, TiledMovesItsClosedForm) {
  Random r(1);
  for (int i = 0; i < 400; ++i) {
    const TileGeometry g = random_geometry(r);
    const TileOptions o{.sram = 64_MiB, .cores = r.upto(4), .shape = TileShape{r.upto(80), r.upto(80)}};
    const TilePlan plan = plan_tiles(g, o);
    const Bytes q = g.query_row * (g.heads * g.queries);
    EXPECT_EQ(plan.read, q + tiled_kv(g, plan.shape));
    EXPECT_EQ(plan.written, q);
    EXPECT_EQ(moved(plan, Access::read), plan.read);
    EXPECT_EQ(moved(plan, Access::write), plan.written);
    EXPECT_EQ(plan.spilled, 0);
  }
}

TEST(TilePlan, NaiveMovesItsClosedForm) {
  Random r(2);
  for (int i = 0; i < 400; ++i) {
    const TileGeometry g = random_geometry(r);
    const TileOptions o{.method = AttentionMethod::naive,
                        .sram = 64_MiB,
                        .cores = r.upto(4),
                        .shape = TileShape{r.upto(80), r.upto(80)}};
    const TilePlan plan = plan_tiles(g, o);
    const Bytes q = g.query_row * (g.heads * g.queries);
    const Bytes matrix = g.score * (g.heads * g.queries * g.context);
    const Bytes kv = g.kv_row * (2 * g.heads * g.context * up(g.queries, plan.shape.queries));
    EXPECT_EQ(plan.read, q + kv + matrix * 2);
    EXPECT_EQ(plan.written, q + matrix * 2);
    EXPECT_EQ(moved(plan, Access::read), plan.read);
    EXPECT_EQ(moved(plan, Access::write), plan.written);
    EXPECT_EQ(macs(plan), 2 * g.heads * g.queries * g.context * g.head_dim);
  }
}

TEST(TilePlan, ResidentKeysComeOncePerHeadAndCore) {
  const TileGeometry g = llama(512);
  TileOptions o{.sram = 4_MiB, .cores = 1, .shape = TileShape{64, 64}};
  const TilePlan without = plan_tiles(g, o);
  o.resident_keys = 128;
  const TilePlan with = plan_tiles(g, o);
  // Of 8 query tiles all see the first key tile and 7 the second: loaded once in place of 8 and 7 times.
  EXPECT_EQ(without.read - with.read, g.kv_row * (2 * g.kv_heads * 64 * (7 + 6)));
  o.resident_keys = 512;
  EXPECT_EQ(plan_tiles(g, o).read, g.query_row * (g.heads * 512) + g.kv_row * (2 * g.kv_heads * 512));
}

TEST(TilePlan, AShapeFromTheSramFitsAndTheNextLargerDoesNot) {
  for (const Bytes sram : {16_KiB, 64_KiB, 256_KiB, 384_KiB, 1_MiB, 2_MiB}) {
    for (const AttentionMethod method : {AttentionMethod::tiled, AttentionMethod::naive}) {
      const TileOptions o{.method = method, .sram = sram};
      const TileShape shape = fitting_shape(llama(), o);
      EXPECT_LE(tile_bytes(llama(), o, shape), sram);
      if (shape.queries < 2048) {
        EXPECT_GT(tile_bytes(llama(), o, {shape.queries + 1, shape.keys}), sram);
      }
      for (const TileBuffer& b : plan_tiles(llama(256), o).buffers) {
        EXPECT_LE(b.offset + b.bytes, sram);
      }
    }
  }
  EXPECT_THROW((void)fitting_shape(llama(), {.sram = 1_KiB}), UserError);
}

TEST(TilePlan, ATileThatDoesNotFitIsRefusedOrSpilledAndCounted) {
  const TileGeometry g = llama(256);
  TileOptions o{.sram = 256_KiB, .shape = TileShape{128, 64}};
  EXPECT_THROW((void)plan_tiles(g, o), UserError);
  o.oversize = Oversize::spill;
  const TilePlan plan = plan_tiles(g, o);
  EXPECT_LT(plan.rows_at_once, 128);
  EXPECT_EQ(plan.tiles, 8 * (2 + 4));  // KV heads x visible key tiles of two query tiles
  EXPECT_EQ(plan.spilled, plan.tiles);
  // Q again for each further key tile; accumulators out and in between two of them.
  const Bytes q = g.query_row * (g.heads * 128);
  const Bytes acc = Bytes(128 * 4 + 8) * (g.heads * 128);
  EXPECT_EQ(plan.spill_bytes, q * (1 + 3) + acc * (2 * (1 + 3)));
  EXPECT_EQ(plan.read + plan.written,
            g.query_row * (g.heads * 256 * 2) + tiled_kv(g, plan.shape) + plan.spill_bytes);
  EXPECT_EQ(moved(plan, Access::read), plan.read);
  o.shape = TileShape{128, 256};
  EXPECT_THROW((void)plan_tiles(g, o), UserError) << "the keys alone are too large";
}

TEST(TilePlan, RefusesWhatMakesNoSense) {
  TileGeometry g = llama(64);
  g.heads = 30;
  EXPECT_THROW((void)plan_tiles(g, {.sram = 1_MiB}), UserError);
  g = llama(64);
  g.queries = 65;
  EXPECT_THROW((void)plan_tiles(g, {.sram = 1_MiB}), UserError);
  EXPECT_THROW((void)plan_tiles(llama(1 << 20), {.sram = 1_MiB, .shape = TileShape{1, 1}}), UserError)
      << "too many steps";
  EXPECT_THROW(
      (void)plan_tiles(llama(), {.method = AttentionMethod::naive, .sram = 1_MiB, .resident_keys = 64}),
      UserError);
}

}  // namespace
}  // namespace kvsim::trace
