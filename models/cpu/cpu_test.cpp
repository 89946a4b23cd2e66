// SPDX-License-Identifier: Apache-2.0
// Cores, cache, interconnect and memory together. Each test elaborates, so each is a process of its own under
// ctest.
#include "models/cpu/cpu.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/testing/channel_bench.h"
#include "models/testing/soc.h"
#include "models/testing/test_device.h"

namespace kvsim::model {
namespace {

using namespace literals;
using testing::extent;
using ::testing::IsEmpty;
using testing::simulate;
using testing::Soc;
using testing::split;
using trace::Access;
using trace::Kind;

TEST(Cpu, MoreThreadsReadFaster) {
  Soc soc("soc", testing::device(), Granularity::burst);
  Picoseconds one, two, four;
  simulate([&] {
    one = soc.run(split(0, 8_MiB, 1));
    two = soc.run(split(0, 8_MiB, 2));
    four = soc.run(split(0, 8_MiB, 4));
  });
  EXPECT_GT(ratio(one, two), 1.35);
  EXPECT_LT(ratio(one, two), 2.0);
  EXPECT_GT(ratio(two, four), 1.15);
  EXPECT_LT(ratio(two, four), 1.6);
  const double peak_share = ratio(8_MiB / four, peak_bandwidth(testing::device()));
  EXPECT_GT(peak_share, 0.85);
  EXPECT_LT(peak_share, 1.0);
  EXPECT_THAT(soc.broken_rules(), IsEmpty());
}

/// Time that one core needs to read 4 MiB with this prefetcher.
Picoseconds read_alone(Soc& soc) {
  return soc.run(split(0, 4_MiB, 1));
}

// Eight demand misses alone are far from what a core reads; 28 lines a latency is the limit, which pages and
// rows cut.
TEST(Cpu, OneCoresBandwidthIsItsLinesInFlightPerLatency) {
  config::DeviceSpec device = testing::without_refresh(testing::device());
  config::DeviceSpec demand_only = device;
  demand_only.clusters[0].core.prefetch_lines = 0;
  config::DeviceSpec all_knowing = device;
  all_knowing.clusters[0].core.prefetch_training = 0;
  Soc prefetching("prefetching", device, Granularity::burst);
  Soc demanding("demanding", demand_only, Granularity::burst);
  Soc knowing("knowing", all_knowing, Granularity::burst);
  Picoseconds time, demand_time, knowing_time;
  simulate([&] {
    time = read_alone(prefetching);
    demand_time = read_alone(demanding);
    knowing_time = read_alone(knowing);
  });
  const ClockTiming t = clock_timing(device.dram, true);
  const CommandClock clock(command_clock(device.dram));
  const Picoseconds latency =
      clock.time(clock.cycle_at(25_ns + 20_ns) + t.read_latency + t.tCCD + t.burst);  // of a row that is open
  const double reads = (4_MiB / time).count();
  EXPECT_LT(reads, (4_MiB / knowing_time).count());
  EXPECT_GT(reads, 2 * (4_MiB / demand_time).count());
  EXPECT_NEAR((4_MiB / demand_time).count() / (Bytes(8 * 64) / latency).count(), 0.9, 0.1);
  EXPECT_NEAR((4_MiB / knowing_time).count() / (Bytes(28 * 64) / latency).count(), 0.8, 0.2);
}

constexpr std::uint64_t kTenMilliseconds = 46'000'000;  // of two operations a cycle at 2.3 GHz

TEST(Cpu, ComputeBoundWorkTakesItsComputeTime) {
  config::DeviceSpec device = testing::device();
  device.clusters[0].core.prefetch_training = 0;
  Soc soc("soc", device, Granularity::burst);
  Picoseconds time;
  simulate([&] { time = soc.run(split(0, 4_MiB, 1, kTenMilliseconds)); });
  EXPECT_GE(time, 10_ms);
  EXPECT_LT(time, 10_ms + 1_us);  // the first line has to come
  const Picoseconds beats = 4_MiB / peak_bandwidth(device);
  EXPECT_NEAR(ratio(soc.account().part(Owner::compute), time), 1 - ratio(beats, time), 0.001);
  EXPECT_EQ(soc.account().total(), time);
}

// At each page the prefetcher trains on three misses that this much work a line does not let overlap.
TEST(Cpu, ComputeDoesNotHideThePrefetchersTraining) {
  Soc soc("soc", testing::device(), Granularity::burst);
  Picoseconds time;
  simulate([&] { time = soc.run(split(0, 4_MiB, 1, kTenMilliseconds)); });
  constexpr std::int64_t kMisses = 3 * (4 << 20) / 4096;
  const Picoseconds per_miss = (time - 10_ms) / kMisses;
  EXPECT_GT(per_miss, 72_ns);   // an open row
  EXPECT_LT(per_miss, 110_ns);  // a row to close and one to open
}

TEST(Cpu, WorkWithoutBytesTakesExactlyItsComputeTime) {
  Soc soc("soc", testing::device(), Granularity::burst);
  Picoseconds time;
  simulate([&] { time = soc.run({{.extents = {}, .simd_operations = 4'600'000}}); });
  EXPECT_EQ(time, 1_ms);
  EXPECT_EQ(soc.account().part(Owner::compute), 1_ms);
  EXPECT_EQ(soc.counters().read, 0_B);
}

TEST(Cpu, ASecondReadOfASmallOperatorComesFromTheCache) {
  Soc soc("soc", testing::device(), Granularity::burst);
  Picoseconds first, second;
  MemoryCounters cold, warm;
  simulate([&] {
    first = soc.run(split(0, 2_MiB, 4));
    cold = soc.counters();
    second = soc.run(split(0, 2_MiB, 4));
    warm = soc.counters();
  });
  EXPECT_EQ(cold.read, 2_MiB);
  EXPECT_EQ(warm.read, 2_MiB);
  EXPECT_LT(second, first);
  EXPECT_EQ(second, (512_KiB).count() / kLineBytes * (Bytes(kLineBytes) / testing::device().llc.bandwidth));
  EXPECT_EQ(soc.account().total(), first + second);
}

TEST(Cpu, WhatASkippedOperatorPushesOutIsNotFound) {
  Soc soc("soc", testing::device(), Granularity::burst);
  simulate([&] {
    soc.run(split(0, 2_MiB, 4));
    soc.skip(split(1 << 28, 4_MiB, 4));  // more than the cache holds
    soc.run(split(0, 2_MiB, 4));
  });
  EXPECT_EQ(soc.counters().read, 4_MiB);
}

TEST(Cpu, ALargeOperatorIsReadAgainFromMemory) {
  Soc soc("soc", testing::device(), Granularity::burst);
  MemoryCounters counters;
  simulate([&] {
    soc.run(split(0, 4_MiB, 4));
    soc.run(split(0, 4_MiB, 4));
    counters = soc.counters();
  });
  EXPECT_EQ(counters.read, 8_MiB);
}

TEST(Cpu, WhatOneOperatorWroteTheNextFindsInTheCache) {
  Soc soc("soc", testing::device(), Granularity::burst);
  simulate([&] {
    soc.run({{.extents = {extent(1 << 20, 64_KiB, Kind::scratch, Access::write)}, .simd_operations = 0}});
    soc.run({{.extents = {extent(1 << 20, 64_KiB, Kind::scratch)}, .simd_operations = 0}});
  });
  EXPECT_EQ(soc.counters().read, 0_B);
  EXPECT_EQ(soc.counters().written, 0_B);
}

TEST(Cpu, WrittenBytesReachMemoryOnce) {
  Soc soc("soc", testing::device(), Granularity::burst);
  simulate([&] {
    soc.run({{.extents = {extent(1 << 30, 128_KiB, Kind::kv, Access::write)}, .simd_operations = 0}});
    soc.run(split(0, 16_MiB, 4));
    soc.run(split(0, 16_MiB, 4));
  });
  EXPECT_EQ(soc.counters().written, 128_KiB);
  EXPECT_EQ(soc.counters().read, 32_MiB);
}

TEST(Cpu, TheLastThreadHoldsTheBarrier) {
  Soc soc("soc", testing::device(), Granularity::burst);
  Picoseconds computing, reading;
  TimeAccount before, after;
  simulate([&] {
    std::vector<ThreadWork> threads = split(0, 256_KiB, 3);
    threads.push_back({.extents = {}, .simd_operations = kTenMilliseconds});  // far longer than the reads
    computing = soc.run(threads);
    before = soc.account();
    threads.back().simd_operations = 10;
    threads[0].extents = {extent(1 << 28, 8_MiB)};
    reading = soc.run(threads);
    after = soc.account();
  });
  EXPECT_EQ(computing, 10_ms);
  EXPECT_NEAR(ratio(before.part(Owner::compute), computing), 1.0, 0.002);  // the others' few data beats apart
  EXPECT_GT((after - before).part(Owner::weights), 0_ps);
  EXPECT_EQ(after.total(), computing + reading);
}

/// Operators of a small decoder layer: weights, a cache of keys and values, activations, and some arithmetic.
Picoseconds layer(Soc& soc) {
  Picoseconds time;
  const auto activations = [](Access access) { return extent(3 << 28, 16_KiB, Kind::scratch, access); };
  for (trace::Address op = 0; op < 4; ++op) {
    std::vector<ThreadWork> threads = split(op << 24, 3_MiB + 4_KiB, 4, 600'000);
    threads[0].extents.insert(threads[0].extents.begin(), activations(Access::read));
    threads[op].extents.push_back(activations(Access::write));
    time += soc.run(threads);
    std::vector<ThreadWork> heads(4);
    for (trace::Address i = 0; i < 4; ++i) {
      trace::Extent rows = extent((1 << 30) + (i << 20), 256_B, Kind::kv);
      rows.rows = 900;
      rows.stride = 1_KiB;
      heads[i] = {.extents = {rows}, .simd_operations = 20'000};
    }
    heads[op].extents.push_back(extent((1 << 30) + (op << 20) + (900 << 10), 256_B, Kind::kv, Access::write));
    time += soc.run(heads);
  }
  return time;
}

TEST(Cpu, TrainsMoveTheSameBytesInTheSameTime) {
  Soc exact("exact", testing::device(), Granularity::burst);
  Soc train("train", testing::device(), Granularity::train);
  Picoseconds exact_time, train_time;
  MemoryCounters exact_counters, train_counters;
  simulate([&] {
    exact_time = layer(exact);
    exact_counters = exact.counters();
    train_time = layer(train);
    train_counters = train.counters();
  });
  EXPECT_EQ(exact_counters.read, train_counters.read);
  EXPECT_NEAR(ratio(train_time, exact_time), 1.0, 0.02);
  EXPECT_THAT(train.broken_rules(), IsEmpty());
}

TEST(Cpu, TheAccountAddsUpToTheElapsedTime) {
  Soc exact("exact", testing::device(), Granularity::burst);
  Soc train("train", testing::device(), Granularity::train);
  simulate([&] {
    for (Soc* soc : {&exact, &train}) {
      Picoseconds elapsed;
      for (int i = 0; i < 3; ++i) {
        elapsed += layer(*soc);
        EXPECT_EQ(soc->account().total(), elapsed);
      }
      EXPECT_GT(soc->account().part(Owner::kv_read), 0_ps);
    }
  });
}

TEST(Cpu, EqualProgramsTakeEqualTime) {
  Soc first("first", testing::device(), Granularity::train);
  Soc second("second", testing::device(), Granularity::train);
  Picoseconds first_time, second_time;
  simulate({[&] { first_time = layer(first); }, [&] { second_time = layer(second); }});
  EXPECT_EQ(first_time, second_time);
  EXPECT_EQ(first.account(), second.account());
  EXPECT_EQ(first.counters().row_conflicts, second.counters().row_conflicts);
}

}  // namespace
}  // namespace kvsim::model
