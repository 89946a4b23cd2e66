// SPDX-License-Identifier: Apache-2.0
#include "models/layer_stream/layer_stream.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "models/storage/test_part.h"
#include "traces/record/spread.h"

namespace kvsim::model {
namespace {

using namespace kvsim::literals;
using config::FileRange;
using config::WeightUnit;

constexpr std::size_t kLayers = 4;
constexpr Bytes kUnit = 256_KiB;

/// Four layers and the output, side by side.
std::vector<WeightUnit> units() {
  std::vector<WeightUnit> units;
  for (std::size_t i = 0; i <= kLayers; ++i) {
    units.push_back({{.first = kUnit * static_cast<std::int64_t>(i), .bytes = kUnit}});
  }
  return units;
}

struct Bench {
  StorageDevice device{small_part()};
  LayerStream stream;
  Picoseconds now;
  LayerReads reads;  ///< of all steps

  explicit Bench(const config::WeightStream& how, std::vector<WeightUnit> units = model::units())
      : stream(device, how, std::move(units)) {
    EXPECT_TRUE(device.lay_out(Bytes(), 16_MiB));
  }

  void use(std::size_t unit, Picoseconds compute) {
    const LayerReads use = stream.use(unit, now);
    reads.asked += use.asked;
    reads.read += use.read;
    reads.rounding += use.rounding;
    reads.requests += use.requests;
    reads.stall += use.stall;
    now += use.stall + compute;
  }
  /// How long it takes.
  Picoseconds step(Picoseconds compute, bool with_output = true) {
    const Picoseconds begun = now;
    stream.begin_step(with_output, now);
    for (std::size_t unit = 0; unit < kLayers + (with_output ? 1 : 0); ++unit) {
      use(unit, compute);
    }
    return now - begun;
  }
};

config::WeightStream how(Bytes request = 64_KiB, std::int64_t in_flight = 4, std::int64_t buffers = 2) {
  return {.request = request, .in_flight = in_flight, .buffers = buffers};
}

/// Where arithmetic takes longer than reading, only the first layer of all is waited for.
TEST(LayerStream, ReadsHideBehindArithmetic) {
  Bench bench(how());
  StorageDevice alone(small_part());
  ASSERT_TRUE(alone.lay_out(Bytes(), 16_MiB));
  for (std::int64_t lane = 0; lane < 4; ++lane) {
    alone.submit(
        {.op = StorageOp::read, .offset = 64_KiB * lane, .bytes = 64_KiB, .when = 0_ps, .lane = lane});
  }
  Picoseconds first;
  while (const auto done = alone.next()) {
    first = done->done;
  }
  // The second layer's reads go on behind the first's.
  const Picoseconds took = bench.step(20_ms);
  EXPECT_EQ(took, first + 20_ms * 5);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(bench.step(20_ms), 20_ms * 5);
  }
}

/// Where reading takes longer, a step is what the die takes for its pages: 50 us of array and a transfer of
/// 16 KiB at 1 GB/s each.
TEST(LayerStream, ArithmeticHidesBehindReads) {
  Bench bench(how());
  bench.step(1_us);
  const double pages = (kUnit * 5).as_double() / (16 << 10);
  const double die = pages * (50e-6 + 16384e-9);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(seconds(bench.step(1_us)) / die, 1, 0.01);
  }
}

/// Between both a step takes the longer of the two, and at most a unit's share more.
TEST(LayerStream, AStepTakesTheLongerOfBoth) {
  Bench reads_only(how());
  reads_only.step(1_us);
  const Picoseconds reading = reads_only.step(1_us);
  for (const Picoseconds compute : {200_us, 800_us, 1_ms, 1200_us, 3_ms}) {
    Bench bench(how());
    bench.step(compute);
    const Picoseconds took = bench.step(compute);
    EXPECT_GE(took * 1001, std::max(compute * 5, reading) * 1000);
    EXPECT_LE(took, std::max(compute * 5, reading) + reading / 5);
  }
}

/// A layer that computes long gives later ones time only if there is room for them.
TEST(LayerStream, MoreBuffersCarryALongLayersTimeOver) {
  const auto stall = [](std::int64_t buffers) {
    Bench bench(how(64_KiB, 4, buffers));
    for (int i = 0; i < 2; ++i) {
      bench.reads.stall = 0_ps;
      bench.stream.begin_step(true, bench.now);
      for (std::size_t unit = 0; unit <= kLayers; ++unit) {
        bench.use(unit, unit == 0 ? 10_ms : 1_us);
      }
    }
    return bench.reads.stall;
  };
  EXPECT_GT(stall(2), 2_ms);
  EXPECT_LT(stall(3), stall(2));
  EXPECT_LT(stall(4), stall(3));
}

TEST(LayerStream, ReadsAllButWhatIsLockedOnceAStep) {
  for (const Bytes locked : {0_B, 64_KiB, 256_KiB, 400_KiB, 1280_KiB}) {
    Bench bench(how(), config::without_first(units(), locked));
    for (int i = 0; i < 3; ++i) {
      bench.reads = {};
      bench.step(100_us);
      EXPECT_EQ(bench.reads.read, kUnit * 5 - locked);
      EXPECT_EQ(bench.reads.rounding, 0_B);
    }
    // With two buffers at most one unit has been read for a step that does not come.
    const Bytes left = bench.device.counters().host_read - (kUnit * 5 - locked) * 3;
    EXPECT_GE(left, 0_B);
    EXPECT_LE(left, kUnit);
  }
}

TEST(LayerStream, TheOutputIsReadOnlyWhereItIsNeeded) {
  Bench bench(how());
  for (const bool with_output : {false, false, true, false, true, true}) {
    bench.reads = {};
    bench.step(1_ms, with_output);
    EXPECT_EQ(bench.reads.read, kUnit * (with_output ? 5 : 4));
    EXPECT_EQ(bench.reads.requests, with_output ? 20 : 16);
  }
}

TEST(LayerStream, RowsAreReadOnTheSpot) {
  Bench bench(how());
  StorageDevice alone(small_part());
  ASSERT_TRUE(alone.lay_out(Bytes(), 16_MiB));
  alone.submit({.op = StorageOp::read, .offset = 8_MiB, .bytes = 8_KiB, .when = 0_ps});
  const Picoseconds there = alone.next()->done;
  const std::vector<FileRange> row = {{.first = 8_MiB + 4000_B, .bytes = 500_B}};
  const LayerReads reads = bench.stream.read(row, 0_ps);
  EXPECT_EQ(reads.stall, there);
  EXPECT_EQ(reads.asked, 500_B);
  EXPECT_EQ(reads.read, 8_KiB);
  EXPECT_EQ(reads.rounding, 8_KiB - 500_B);
  EXPECT_EQ(reads.requests, 1);
}

/// Units of any runs, some of them empty: what is asked for is what was read less rounding, and the device
/// has read no more than what buffers hold beside it.
TEST(LayerStream, ConservesBytesUnderRandomUse) {
  trace::SplitMix64 draws(5);
  for (int round = 0; round < 40; ++round) {
    std::vector<WeightUnit> units(kLayers + 1);
    Bytes at;
    Bytes largest;
    for (WeightUnit& unit : units) {
      for (std::uint64_t runs = draws.below(4); runs > 0; --runs) {
        at += Bytes(static_cast<std::int64_t>(4096 + draws.below(50'000)));
        unit.push_back({.first = at, .bytes = Bytes(static_cast<std::int64_t>(1 + draws.below(100'000)))});
        at += unit.back().bytes;
      }
      largest = std::max(largest, config::read_bytes(unit));
    }
    const auto buffers = static_cast<std::int64_t>(2 + draws.below(4));
    Bench bench(how(4_KiB * static_cast<std::int64_t>(1 + draws.below(10)),
                    static_cast<std::int64_t>(1 + draws.below(4)), buffers),
                units);
    Bytes asked;
    for (int step = 0; step < 6; ++step) {
      const bool with_output = draws.below(3) > 0;
      bench.step(Picoseconds(static_cast<std::int64_t>(draws.below(2'000'000'000))), with_output);
      for (std::size_t i = 0; i < kLayers + (with_output ? 1 : 0); ++i) {
        asked += config::unit_bytes(units[i]);
      }
    }
    EXPECT_EQ(bench.reads.asked, asked);
    EXPECT_EQ(bench.reads.asked, bench.reads.read - bench.reads.rounding);
    const Bytes held = bench.device.counters().host_read - bench.reads.read;
    EXPECT_GE(held, 0_B);
    EXPECT_LE(held, largest * buffers);
  }
}

}  // namespace
}  // namespace kvsim::model
