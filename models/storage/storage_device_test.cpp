// SPDX-License-Identifier: Apache-2.0
// The device against closed forms, and bad requests.
#include "models/storage/storage_device.h"

#include <vector>

#include <gtest/gtest.h>

#include "models/storage/fio_job.h"
#include "models/storage/test_part.h"

namespace kvsim::model {
namespace {

using namespace kvsim::literals;

StorageCompletion ask(StorageDevice& device, StorageOp op, Bytes offset, Bytes bytes, Picoseconds when) {
  device.submit({.op = op, .offset = offset, .bytes = bytes, .when = when});
  const std::optional<StorageCompletion> done = device.next();
  EXPECT_TRUE(done.has_value());
  return *done;
}

FioResult run(const config::StoragePartSpec& part, const FioSpec& spec) {
  StorageDevice device(part);
  EXPECT_TRUE(device.lay_out(Bytes(), spec.size));
  FioJob job(device, spec);
  while (job.take_batch()) {
  }
  return job.result();
}

double rate(const FioResult& result) {
  return result.moved.as_double() / seconds(result.elapsed);
}

// Host 7 + 1 a page, command 3 + 5, firmware 2, link 4096 B at 1 GB/s, completion 11.
constexpr Picoseconds kMove4K(4'096'000);
const Picoseconds kHost4K = 7_us + 1_us + 3_us + 5_us + 2_us + kMove4K + 11_us;

TEST(StorageDevice, ARandomReadIsTheSumOfItsParts) {
  StorageDevice device(small_part());
  ASSERT_TRUE(device.lay_out(Bytes(), 1_MiB));
  const StorageCompletion done = ask(device, StorageOp::read, 64_KiB, 4_KiB, 10_us);
  EXPECT_EQ(done.status, StorageStatus::ok);
  EXPECT_EQ(done.issued, 10_us + 8_us);
  EXPECT_EQ(done.done, 10_us + kHost4K + 50_us + kMove4K);
  EXPECT_EQ(device.counters().host_read, 4_KiB);
}

TEST(StorageDevice, WhatTheMappingDoesNotHoldIsReadFirst) {
  const auto part = with([](auto& p) { p.controller.map_cache = 4_KiB; });
  StorageDevice device(part);
  ASSERT_TRUE(device.lay_out(Bytes(), 64_MiB));
  const StorageCompletion done = ask(device, StorageOp::read, Bytes(), 4_KiB, Picoseconds());
  EXPECT_EQ(done.done, kHost4K + 20_us + kMove4K + 50_us + kMove4K);
  EXPECT_EQ(device.counters().map_misses, 1);
  const StorageCompletion again = ask(device, StorageOp::read, 64_KiB, 4_KiB, 1_ms);
  EXPECT_EQ(again.done, 1_ms + kHost4K + 50_us + kMove4K);
}

TEST(StorageDevice, WhatWasNeverWrittenIsNotRead) {
  StorageDevice device(small_part());
  EXPECT_EQ(ask(device, StorageOp::read, Bytes(), 4_KiB, Picoseconds()).done,
            kHost4K + 20_us + kMove4K);  // the mapping only
  EXPECT_EQ(device.counters().page_reads, 0);
}

TEST(StorageDevice, SequentialReadsAreLimitedByTheLink) {
  for (const double code : {1.0, 0.8}) {
    const auto part = with([&](auto& p) {
      p.flash.dies = p.flash.channels = 16;
      p.flash.pages_per_block = 8;
      p.link.packet_overhead = 36_B;
      p.link.payload_bits = code == 1 ? 1 : 8;
      p.link.line_bits = code == 1 ? 1 : 10;
      p.flash.over_provisioning = 0.3;
    });
    const FioResult result = run(part, {.pattern = FioPattern::read,
                                        .block = 512_KiB,
                                        .depth = 8,
                                        .size = 32_MiB,
                                        .runtime = Picoseconds(1'000'000'000'000)});
    const double wire = 1e9 * 512 / (512 + 36) * code;
    EXPECT_LT(rate(result), wire);
    EXPECT_GT(rate(result), 0.98 * wire);
  }
}

TEST(StorageDevice, DieLimitedReadsScaleWithTheDies) {
  double one = 0;
  for (const std::int64_t dies : {1, 2, 4, 8}) {
    const auto part = with([&](auto& p) {
      p.flash.dies = p.flash.channels = dies;
      p.flash.pages_per_block = 16;
      p.flash.over_provisioning = 0.5;
      p.flash.cache_read = true;
      p.link.data_rate = Hertz(80'000'000'000);
      p.host = {};
      p.controller.read_command = Picoseconds();
    });
    const FioResult result = run(part, {.pattern = FioPattern::read,
                                        .block = 16_KiB,
                                        .depth = 64,
                                        .size = 16_MiB,
                                        .runtime = Picoseconds(1'000'000'000'000)});
    const double closed = static_cast<double>(dies) * 16384 / 50e-6;
    EXPECT_NEAR(rate(result), closed, 0.03 * closed) << dies;
    one = dies == 1 ? rate(result) : one;
    EXPECT_NEAR(rate(result) / one, static_cast<double>(dies), 0.03 * static_cast<double>(dies));
  }
}

TEST(StorageDevice, ADeepQueueHidesWhatOneRequestWaitsFor) {
  const auto part = with([](auto& p) {
    p.flash.dies = 8;
    p.flash.over_provisioning = 1;
  });
  const auto iops = [&](std::int64_t depth, std::int64_t device_depth) {
    auto limited = part;
    limited.link.queue_depth = device_depth;
    const FioResult result =
        run(limited, {.pattern = FioPattern::randread, .depth = depth, .size = 32_MiB, .runtime = 100_ms});
    return static_cast<double>(result.ios) / seconds(result.elapsed);
  };
  EXPECT_GT(iops(8, 256), 3 * iops(1, 256));
  // One command at a time in the device: only the host's own share overlaps.
  const double alone = 1 / seconds(kHost4K + 50_us + kMove4K - 7_us - 1_us - 11_us);
  EXPECT_LT(iops(8, 1), 1.01 * alone * 1.15);  // some hit the register
  EXPECT_GT(iops(8, 1), 0.99 * alone);
}

TEST(StorageDevice, OneThreadDoesItsShareOfOneRequestAtATime) {
  const auto part = with([](auto& p) {
    p.flash.dies = 16;
    p.flash.pages_per_block = 8;
    p.flash.over_provisioning = 1;
    p.flash.read = 1_us;
    p.host.request = 20_us;
    p.host.page = Picoseconds();
  });
  const FioResult one =
      run(part, {.pattern = FioPattern::randread, .depth = 32, .jobs = 1, .size = 32_MiB, .runtime = 50_ms});
  EXPECT_NEAR(static_cast<double>(one.ios) / seconds(one.elapsed), 50'000, 500);
  const FioResult two =
      run(part, {.pattern = FioPattern::randread, .depth = 32, .jobs = 2, .size = 32_MiB, .runtime = 50_ms});
  EXPECT_NEAR(static_cast<double>(two.ios) / seconds(two.elapsed), 100'000, 1000);
}

TEST(StorageDevice, LongRequestsAreCut) {
  const auto part = with([](auto& p) {
    p.link.max_request = 64_KiB;
    p.link.queue_depth = 1;
    p.controller.read_command = 1_ms;  // each command costs that
  });
  StorageDevice device(part);
  ASSERT_TRUE(device.lay_out(Bytes(), 1_MiB));
  const Picoseconds took = ask(device, StorageOp::read, Bytes(), 512_KiB, Picoseconds()).done;
  EXPECT_GT(took, 8_ms);
  EXPECT_LT(took, 12_ms);
}

TEST(StorageDevice, ReadAheadComesBeforeItIsAskedFor) {
  const auto part = with([](auto& p) {
    p.controller.read_ahead = 64_KiB;
    p.flash.read = 200_us;
  });
  StorageDevice device(part);
  ASSERT_TRUE(device.lay_out(Bytes(), 8_MiB));
  Picoseconds now;
  std::vector<Picoseconds> times;
  for (int i = 0; i < 64; ++i) {
    const Picoseconds done = ask(device, StorageOp::read, 16_KiB * i, 16_KiB, now).done;
    times.push_back(done - now);
    now = done + 1_ms;  // long enough for what is read ahead
  }
  const Picoseconds move(16'384'000);
  const Picoseconds hit = 7_us + 4_us + 3_us + 5_us + 2_us + move + 11_us;
  EXPECT_EQ(times[0], hit + 200_us + move);
  for (std::size_t i = 2; i < times.size(); ++i) {
    EXPECT_EQ(times[i], hit) << i;
  }
  EXPECT_EQ(device.counters().host_read, 16_KiB * 64);
}

TEST(StorageDevice, WhatWasReadAheadAndThenWrittenIsReadAgain) {
  const auto part = with([](auto& p) { p.controller.read_ahead = 64_KiB; });
  StorageDevice device(part);
  ASSERT_TRUE(device.lay_out(Bytes(), 8_MiB));
  ask(device, StorageOp::read, Bytes(), 16_KiB, Picoseconds());
  ask(device, StorageOp::read, 16_KiB, 16_KiB, 1_ms);
  ask(device, StorageOp::write, 32_KiB, 16_KiB, 3_ms);
  const std::int64_t before = device.counters().page_reads;
  ask(device, StorageOp::read, 32_KiB, 16_KiB, 9_ms);
  EXPECT_GT(device.counters().page_reads, before);
}

TEST(StorageDevice, AWriteIsDoneInTheBufferAndTheRestAtTheDiesPace) {
  StorageDevice device(small_part());
  const StorageCompletion first = ask(device, StorageOp::write, Bytes(), 4_KiB, Picoseconds());
  EXPECT_EQ(first.done, kHost4K + 1_us);  // firmware takes 3 us of a write
  const FioResult result = run(small_part(), {.pattern = FioPattern::write,
                                              .block = 64_KiB,
                                              .depth = 4,
                                              .size = 32_MiB,
                                              .runtime = Picoseconds(10'000'000'000'000)});
  const double closed = 16384 / (500e-6 + 16384e-9);
  EXPECT_NEAR(rate(result), closed, 0.02 * closed);
}

TEST(StorageDevice, ProgramsScaleWithTheDies) {
  for (const std::int64_t dies : {2, 4}) {
    const auto part = with([&](auto& p) {
      p.flash.dies = p.flash.channels = dies;
      p.flash.over_provisioning = 0.5;
    });
    const FioResult result = run(part, {.pattern = FioPattern::write,
                                        .block = 64_KiB,
                                        .depth = 8,
                                        .size = 32_MiB,
                                        .runtime = Picoseconds(10'000'000'000'000)});
    const double closed = static_cast<double>(dies) * 16384 / (500e-6 + 16384e-9);
    EXPECT_NEAR(rate(result), closed, 0.03 * closed) << dies;
  }
}

TEST(StorageDevice, TheSlcCacheIsFastUntilItIsFull) {
  const auto part = with([](auto& p) {
    p.flash.bits_per_cell = 2;
    p.flash.slc_cache = 16_MiB;
    p.flash.slc_program = 100_us;
  });
  StorageDevice device(part);
  Picoseconds now;
  const auto write = [&](Bytes from, Bytes to) {
    const Picoseconds begin = now;
    for (Bytes at = from; at < to; at += 64_KiB) {
      now = ask(device, StorageOp::write, at, 64_KiB, now).done;
    }
    return (to - from).as_double() / seconds(now - begin);
  };
  const double before = write(Bytes(), 14_MiB);
  write(14_MiB, 18_MiB);
  const double after = write(18_MiB, 32_MiB);
  const double slc = 16384 / (100e-6 + 16384e-9);
  EXPECT_NEAR(before, slc, 0.05 * slc);
  // Each page set is written, read, and programmed once more.
  const double folded = 16384 / (100e-6 + 20e-6 + 500e-6 + 3 * 16384e-9 + 3e-3 / 8);
  EXPECT_NEAR(after, folded, 0.15 * folded);
  const StorageCounters& counters = device.counters();
  EXPECT_NEAR(counters.collected.as_double(), 16.0 * (1 << 20), 1.5 * (1 << 20));

  // A pause empties it.
  now += Picoseconds(60'000'000'000'000);
  const double rested = write(32_MiB, 44_MiB);
  EXPECT_NEAR(rested, slc, 0.05 * slc);
}

TEST(StorageDevice, TheJournalOfTheMappingIsWrittenWhenItIsFull) {
  const auto part = with([](auto& p) {
    p.controller.journal = 100;
    p.controller.map_cache = 4_KiB;
  });
  StorageDevice device(part);
  ASSERT_TRUE(device.lay_out(Bytes(), 64_MiB));
  Picoseconds now, longest;
  for (int i = 0; i < 250; ++i) {
    const Picoseconds done = ask(device, StorageOp::write, 4_KiB * ((i * 1025) % 16'384), 4_KiB, now).done;
    longest = std::max(longest, done - now);
    now = done + 2_ms;
  }
  EXPECT_EQ(device.counters().map_flushes, 2);
  // The 16 mapping pages of 64 MiB lie in four page sets.
  EXPECT_EQ(device.counters().map_programmed, 16_KiB * 8);
}

TEST(StorageDevice, HeatStretchesTheWires) {
  const auto part =
      with([](auto& p) { p.thermal = config::StorageThermal{.above = Celsius(70), .stretch = 2}; });
  StorageDevice cool(part, {.temperature = Celsius(69.9)});
  StorageDevice hot(part, {.temperature = Celsius(70)});
  EXPECT_EQ(hot.link_time(1_MiB), cool.link_time(1_MiB) * 2);
}

TEST(StorageDevice, WhatCannotBeIsAResultWithItsPlace) {
  StorageDevice device(small_part());
  const auto expect = [&](StorageOp op, Bytes offset, Bytes bytes, StorageStatus status, Bytes place) {
    const StorageCompletion done = ask(device, op, offset, bytes, Picoseconds());
    EXPECT_EQ(done.status, status);
    EXPECT_EQ(done.place, place);
  };
  expect(StorageOp::read, 64_MiB - 4_KiB, 8_KiB, StorageStatus::beyond_capacity, 64_MiB - 4_KiB);
  expect(StorageOp::read, 65_MiB, 4_KiB, StorageStatus::beyond_capacity, 64_MiB);
  expect(StorageOp::write, 64_MiB - 4_KiB, 8_KiB, StorageStatus::device_full, 64_MiB - 4_KiB);
  expect(StorageOp::discard, 64_MiB, 4_KiB, StorageStatus::beyond_capacity, 64_MiB);
  expect(StorageOp::read, 1_B, 4_KiB, StorageStatus::misaligned, 1_B);
  expect(StorageOp::read, Bytes(), Bytes(), StorageStatus::misaligned, Bytes());
  expect(StorageOp::read, Bytes(-512), 4_KiB, StorageStatus::misaligned, Bytes(-512));
  expect(StorageOp::read, 512_B, Bytes(INT64_MAX / 512 * 512), StorageStatus::beyond_capacity, 512_B);
  expect(StorageOp::read, 64_MiB - 4_KiB, 4_KiB, StorageStatus::ok, 64_MiB);

  StorageDevice locked(with([](auto& p) { p.read_only = true; }));
  EXPECT_EQ(ask(locked, StorageOp::write, Bytes(), 4_KiB, Picoseconds()).status, StorageStatus::read_only);
  EXPECT_EQ(ask(locked, StorageOp::discard, Bytes(), 4_KiB, Picoseconds()).status, StorageStatus::read_only);
  EXPECT_EQ(ask(locked, StorageOp::read, Bytes(), 4_KiB, Picoseconds()).status, StorageStatus::ok);
  EXPECT_FALSE(locked.lay_out(Bytes(), 65_MiB));
}

TEST(StorageDevice, ASerialFlashIsReadInPlaceByTheLine) {
  const auto part = with([](auto& p) {
    p.interface = config::StorageInterface::spi;
    p.link.queue_depth = 1;
    p.flash.read = Picoseconds();
    p.flash.channel_rate = Hertz(1'000'000'000'000);
    p.host = {};
    p.controller.read_command = Picoseconds();
  });
  StorageDevice device(part);
  ASSERT_TRUE(device.lay_out(Bytes(), 1_MiB));
  const StorageCompletion line = ask(device, StorageOp::read, Bytes(32), Bytes(32), 1_us);
  EXPECT_EQ(line.status, StorageStatus::ok);
  // Command 5 us, a unit from the array at 1 TB/s, 512 B packets of which 32 B are asked for at 1 GB/s.
  EXPECT_EQ(line.done, 1_us + 5_us + Picoseconds(4096) + Picoseconds(32'000));
  EXPECT_FALSE(device.next_event());
}

TEST(StorageDevice, TheSameSeedGivesTheSameTimes) {
  const auto times = [](std::uint64_t seed) {
    const auto part = with([](auto& p) { p.flash.retry_share = 0.1; });
    StorageDevice device(part, {.seed = seed});
    EXPECT_TRUE(device.lay_out(Bytes(), 16_MiB));
    FioJob job(device, {.pattern = FioPattern::randread, .depth = 4, .size = 16_MiB, .runtime = 50_ms});
    while (job.take_batch()) {
    }
    return std::pair(job.result().completion.sum, job.result().ios);
  };
  EXPECT_EQ(times(1), times(1));
  EXPECT_NE(times(1), times(2));
}

TEST(StorageDevice, WearFollowsFromWhatWasProgrammed) {
  StorageDevice device(small_part());
  EXPECT_FALSE(device.wear(BytesPerSecond(1)).days_to_endurance);
  Picoseconds now;
  for (Bytes at; at < 64_MiB; at += 1_MiB) {
    now = ask(device, StorageOp::write, at, 1_MiB, now).done;
  }
  const StorageWear wear = device.wear(BytesPerSecond(1e6));
  EXPECT_NEAR(wear.write_amplification, 1, 1e-3);
  const double physical =
      superblock(device.part().flash).as_double() * static_cast<double>(superblocks(device.part()));
  EXPECT_NEAR(wear.cycles, 64.0 * (1 << 20) / physical, 1e-3);
  EXPECT_NEAR(*wear.days_to_endurance, 3000 * physical / 1e6 / 86'400, 0.01);
}

TEST(FioJob, CountsWhatItAskedFor) {
  const FioResult pass = run(small_part(), {.pattern = FioPattern::read,
                                            .block = 64_KiB,
                                            .size = 8_MiB,
                                            .runtime = Picoseconds(1'000'000'000'000)});
  EXPECT_EQ(pass.ios, 128);
  EXPECT_EQ(pass.moved, 8_MiB);
  EXPECT_EQ(pass.completion.histogram.count(), 128);
  EXPECT_NEAR(pass.completion.mean() * 128, nanoseconds(pass.elapsed), 128);
  const FioResult timed =
      run(small_part(), {.pattern = FioPattern::randread, .size = 8_MiB, .runtime = 5_ms, .ramp = 5_ms});
  EXPECT_NEAR(milliseconds(timed.elapsed), 5, 0.2);
}

TEST(FioJob, EndsWhereTheDeviceIsFull) {
  StorageDevice device(small_part());
  FioJob job(device, {.pattern = FioPattern::write,
                      .block = 1_MiB,
                      .size = 80_MiB,
                      .runtime = Picoseconds(100'000'000'000'000)});
  while (job.take_batch()) {
  }
  EXPECT_EQ(job.result().status, StorageStatus::device_full);
  EXPECT_EQ(job.result().place, 64_MiB);
  EXPECT_EQ(job.result().moved, 64_MiB);
}

}  // namespace
}  // namespace kvsim::model
