// SPDX-License-Identifier: Apache-2.0
// Does the engine move what the plan says, overlap it with arithmetic, and keep to its SRAM?
#include "models/npu/tile_engine.h"

#include <random>

#include <gtest/gtest.h>

#include "models/testing/soc.h"
#include "models/testing/test_device.h"

namespace kvsim::model {
namespace {

using namespace literals;
using trace::AttentionMethod;
using trace::TileGeometry;
using trace::TileOptions;
using trace::TilePlan;

config::DeviceSpec npu_device(Bytes sram, std::int64_t cores = 1) {
  config::DeviceSpec d = testing::device();
  d.npu = config::NpuSpec{.cores = cores,
                          .clock = 1_GHz,
                          .int8_macs = 1024,
                          .fp16_macs = 512,
                          .softmax_rate = 16,
                          .dma_lines = 64,
                          .sram = {.size = sram, .banks = 8, .ports = 1, .word = 64_B, .interleave = 64_B}};
  return d;
}

/// Vectors of whole lines, so that what DRAM moves is what the plan says.
TileGeometry geometry(std::int64_t tokens = 256) {
  return {.heads = 8,
          .kv_heads = 2,
          .head_dim = 64,
          .queries = tokens,
          .context = tokens,
          .query_row = 128_B,
          .kv_row = 128_B};
}

TileResult play(const config::DeviceSpec& device, const TilePlan& plan, MacFormat format = MacFormat::fp16) {
  TileEngine engine("npu", device, Granularity::burst, plan, format);
  sc_core::sc_start();
  return engine.result();
}

void expect_plan(const TileResult& r, const TilePlan& plan, Bytes sram) {
  EXPECT_EQ(r.dram_read, plan.read);
  EXPECT_EQ(r.dram_written, plan.written);
  EXPECT_LE(r.most_in_sram, sram);
  EXPECT_GT(r.most_in_sram, Bytes());
}

TEST(TileEngine, TiledMovesThePlansBytesThroughDram) {
  const TilePlan plan = plan_tiles(geometry(), {.sram = 64_KiB, .cores = 3});
  expect_plan(play(npu_device(64_KiB, 3), plan), plan, 64_KiB);
}

TEST(TileEngine, NaiveMovesThePlansBytesThroughDram) {
  // 8 heads x 256 x 256 scores of 2 B; tiles of keys in whole lines.
  const TilePlan plan = plan_tiles(
      geometry(),
      {.method = AttentionMethod::naive, .sram = 64_KiB, .cores = 2, .shape = trace::TileShape{48, 64}});
  expect_plan(play(npu_device(64_KiB, 2), plan), plan, 64_KiB);
}

TEST(TileEngine, SpilledTilesGetThroughAndMoveMore) {
  TileGeometry g = geometry();
  g.head_dim = 62;  // accumulators of 62 x 4 + 8 B are whole lines
  const TilePlan plan =
      plan_tiles(g, {.sram = 64_KiB, .shape = trace::TileShape{64, 64}, .oversize = trace::Oversize::spill});
  ASSERT_GT(plan.spilled, 0);
  expect_plan(play(npu_device(64_KiB), plan), plan, 64_KiB);
}

TEST(TileEngine, ResidentKeysFit) {
  const TilePlan plan =
      plan_tiles(geometry(), {.sram = 256_KiB, .shape = trace::TileShape{32, 32}, .resident_keys = 64});
  expect_plan(play(npu_device(256_KiB), plan), plan, 256_KiB);
}

TEST(TileEngine, WithFastDramTakesTheTimeOfItsMacs) {
  config::DeviceSpec device = npu_device(256_KiB);
  device.npu->fp16_macs = 16;
  const TilePlan plan = plan_tiles(geometry(), {.sram = 256_KiB});
  std::int64_t macs = 0;
  for (const trace::TileStep& s : plan.cores[0]) {
    macs += s.macs;
  }
  const TileResult r = play(device, plan);
  EXPECT_NEAR(ratio(r.elapsed, 1_ns * (macs / 16)), 1, 0.01);
  EXPECT_EQ(r.arithmetic, 1_ns * (macs / 16));
}

TEST(TileEngine, WithFastArithmeticTakesTheTimeOfItsBytes) {
  config::DeviceSpec device = npu_device(64_KiB);
  device.npu->fp16_macs = 1 << 20;
  device.npu->softmax_rate = 1 << 20;
  device.npu->clock = 10_GHz;
  const TilePlan plan = plan_tiles(
      geometry(512), {.method = AttentionMethod::naive, .sram = 64_KiB, .shape = trace::TileShape{48, 64}});
  const TileResult r = play(device, plan);
  const double efficiency = ratio((plan.read + plan.written) / r.elapsed, config::peak_bandwidth(device));
  EXPECT_GT(efficiency, 0.4);
  EXPECT_LT(efficiency, 1.0);
  EXPECT_GT(r.waited, r.arithmetic);
}

TEST(TileEngine, LoadsOverlapArithmetic) {
  config::DeviceSpec device = npu_device(256_KiB);
  device.npu->fp16_macs = 128;
  const TilePlan plan = plan_tiles(geometry(), {.sram = 256_KiB, .shape = trace::TileShape{32, 64}});
  const TileResult r = play(device, plan);
  const Picoseconds transfer = (plan.read + plan.written) / config::peak_bandwidth(device);
  EXPECT_GT(r.elapsed, r.arithmetic);
  EXPECT_LT(r.elapsed, r.arithmetic + transfer) << "one behind the other takes longer";
}

TEST(TileEngine, Int8MacsHaveTheirOwnRate) {
  config::DeviceSpec device = npu_device(256_KiB);
  device.npu->fp16_macs = 16;
  device.npu->int8_macs = 32;
  const TilePlan plan = plan_tiles(geometry(), {.sram = 256_KiB});
  std::int64_t cycles = 0;
  for (const trace::TileStep& s : plan.cores[0]) {
    cycles += (s.macs + 31) / 32;
  }
  EXPECT_EQ(play(device, plan, MacFormat::int8).arithmetic, 1_ns * cycles);
}

struct Callers : public sc_core::sc_module {
  tlm_utils::simple_initiator_socket<Callers> a{"a"}, b{"b"};
  explicit Callers(const sc_core::sc_module_name& name) : sc_module(name) {}
};

/// Two processes share the banks through the socket, and each word costs its cycle.
TEST(Sram, CallersShareItsBanks) {
  const config::SramSpec spec{.size = 64_KiB, .banks = 8, .ports = 1, .word = 64_B, .interleave = 64_B};
  Sram sram("sram", spec, 1_GHz);
  Callers callers("callers");
  callers.a.bind(sram.socket);
  callers.b.bind(sram.socket);
  Picoseconds a_end, b_end;
  testing::simulate({[&] {
                       pass_bytes(callers.a, spec, 0_B, 8_KiB, trace::Access::read);
                       a_end = now();
                     },
                     [&] {
                       pass_bytes(callers.b, spec, 8_KiB, 16_KiB, trace::Access::write);
                       b_end = now();
                     }});
  // 16 and 32 vectors of all banks.
  EXPECT_EQ(std::max(a_end, b_end), 48_ns);
  EXPECT_LE(a_end, 32_ns);
  EXPECT_EQ(sram.counters().words, 128 + 256);
}

}  // namespace
}  // namespace kvsim::model
