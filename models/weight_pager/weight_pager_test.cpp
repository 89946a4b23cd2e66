// SPDX-License-Identifier: Apache-2.0
#include "models/weight_pager/weight_pager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "configs/spec/resolve.h"

namespace kvsim::model {
namespace {

using namespace kvsim::literals;

config::DeviceSpec board() {
  config::DeviceSpec device = config::load_device("rk3588_4gb");
  device.storage = config::load_storage_part("emmc_foresee_sld64g");
  return device;
}

constexpr trace::Address kBase = 1 << 20;

/// Thread `i` of `n` reads its part of `bytes` weights.
std::vector<ThreadWork> scan(Bytes bytes, std::int64_t n = 1) {
  std::vector<ThreadWork> threads;
  for (std::int64_t i = 0; i < n; ++i) {
    threads.push_back({.extents = {{.address = kBase + static_cast<trace::Address>(bytes.count() / n * i),
                                    .row_bytes = bytes / n,
                                    .rows = 1,
                                    .stride = bytes / n,
                                    .access = trace::Access::read,
                                    .kind = trace::Kind::weights,
                                    .stream = Stream(static_cast<std::uint32_t>(i))}},
                       .simd_operations = 0});
  }
  return threads;
}

TEST(WeightPager, WhatFitsIsReadOnceAtLoad) {
  WeightPager pager(board(), {.address = kBase, .bytes = 64_MiB}, 256_MiB, 1);
  pager.load();
  const Bytes loaded = pager.storage().counters().host_read;
  EXPECT_EQ(loaded, 64_MiB);
  for (int token = 0; token < 3; ++token) {
    const PagingUse use = pager.run(scan(64_MiB, 4), 10_ms);
    EXPECT_EQ(use.asked, 64_MiB);
    EXPECT_EQ(use.read, 0_B);
    EXPECT_EQ(use.major_faults, 0);
    EXPECT_EQ(use.stall, 0_ps);
  }
  EXPECT_EQ(pager.storage().counters().host_read, loaded);
}

/// A scan of twice the memory reads nearly all of it each time, at the device's speed.
TEST(WeightPager, WhatDoesNotFitIsReadAgain) {
  WeightPager pager(board(), {.address = kBase, .bytes = 256_MiB}, 64_MiB, 1);
  pager.load();
  static_cast<void>(pager.run(scan(256_MiB), 10_ms));
  const Bytes before = pager.storage().counters().host_read;
  const PagingUse use = pager.run(scan(256_MiB), 10_ms);
  EXPECT_EQ(use.asked, 256_MiB);
  EXPECT_GT(use.read, 190_MiB);
  EXPECT_LT(use.read, 300_MiB);
  EXPECT_EQ(pager.storage().counters().host_read - before, use.read);
  const double rate = use.read.as_double() / (seconds(use.stall) + 0.01);
  EXPECT_GT(rate, 60e6);
  EXPECT_LT(rate, 300e6) << "270 MB/s is what the part reads in order";
}

/// Reads go on while the thread works: time that the operator takes anyway is not stall.
TEST(WeightPager, ArithmeticHidesReads) {
  const auto stall = [](Picoseconds in_memory) {
    WeightPager pager(board(), {.address = kBase, .bytes = 128_MiB}, 64_MiB, 1);
    pager.load();
    static_cast<void>(pager.run(scan(128_MiB), in_memory));
    return pager.run(scan(128_MiB), in_memory).stall;
  };
  EXPECT_LT(stall(1000_ms), stall(1_ms));
}

/// What is locked is never read again; the rest is scanned as ever in the memory beside it.
TEST(WeightPager, LockedBytesStay) {
  WeightPager pager(board(), {.address = kBase, .bytes = 128_MiB}, 96_MiB, 1);
  pager.lock(64_MiB);
  EXPECT_EQ(pager.storage().counters().host_read, 64_MiB);
  pager.load();
  for (int token = 0; token < 4; ++token) {
    const PagingUse all = pager.run(scan(128_MiB), 10_ms);
    EXPECT_GT(all.read, 20_MiB);
    EXPECT_LE(all.read, 68_MiB);
    const PagingUse locked = pager.run(scan(64_MiB), 10_ms);
    EXPECT_EQ(locked.asked, 64_MiB);
    EXPECT_EQ(locked.read, 0_B);
    EXPECT_EQ(locked.stall, 0_ps);
  }
}

TEST(WeightPager, AllCanBeLocked) {
  WeightPager pager(board(), {.address = kBase, .bytes = 32_MiB}, 64_MiB, 1);
  pager.lock(1_GiB);
  EXPECT_EQ(pager.run(scan(32_MiB), 10_ms).read, 0_B);
  EXPECT_EQ(pager.storage().counters().host_read, 32_MiB);
}

config::FileReaderSpec program(Bytes file, Bytes bytes, Picoseconds every, Picoseconds first = {}) {
  config::FileReaderSpec program;
  program.file = file;
  program.bytes = bytes;
  program.every = every;
  program.first = first;
  return program;
}

/// 40 tokens over 48 MiB of weights, while another program reads.
struct Beside {
  Bytes read;    ///< again, of weights, from the tenth token on
  Bytes others;  ///< for the program

  Beside(const config::FileReaderSpec& other, Bytes memory, Picoseconds token) {
    config::DeviceSpec device = board();
    device.storage = config::load_storage_part("nvme_sm2263xt_1tb");
    device.os.readers = {other};
    WeightPager pager(device, {.address = kBase, .bytes = 48_MiB}, memory, 1);
    pager.load();
    const Bytes before = pager.storage().counters().host_read;
    Bytes all;
    for (int i = 0; i < 40; ++i) {
      const PagingUse use = pager.run(scan(48_MiB, 2), token);
      read += i < 10 ? 0_B : use.read;
      all += use.read + use.others;
      others += use.others;
    }
    const Bytes under_way = all - (pager.storage().counters().host_read - before);
    EXPECT_GE(under_way, 0_B) << "all that is read is told";
    EXPECT_LE(under_way, 1_MiB);
  }
};

TEST(WeightPager, OtherProgramsDoNotDisturbWhereThereIsRoom) {
  const Beside beside(program(32_MiB, 2_MiB, 50_ms), 128_MiB, 50_ms);
  EXPECT_EQ(beside.read, 0_B);
  EXPECT_EQ(beside.others, 32_MiB) << "the file is read once and then found in the cache";
}

/// Pages that are read once come to the inactive list's end and go; weights are found accessed there.
TEST(WeightPager, AFileThatIsReadOncePushesNoWeightsOut) {
  const Beside beside(program(2_GiB, 2_MiB, 50_ms), 80_MiB, 400_ms);
  EXPECT_GT(beside.others, 300_MiB) << "more than memory";
  EXPECT_EQ(beside.read, 0_B);
}

/// Its pages come back within the active list's length, and become active in place of weights.
TEST(WeightPager, AFileThatIsReadAgainAndAgainPushesWeightsOut) {
  config::FileReaderSpec again = program(64_MiB, 2_MiB, 50_ms);
  again.order = config::FileOrder::random;
  EXPECT_GT(Beside(again, 80_MiB, 400_ms).read, 1_MiB);
}

/// The inactive list lasts for less than 400 ms: weights pass it before they are used again.
TEST(WeightPager, SlowTokensLoseTheirWeights) {
  const config::FileReaderSpec once = program(2_GiB, 2_MiB, 50_ms);
  EXPECT_EQ(Beside(once, 64_MiB, 50_ms).read, 0_B);
  EXPECT_GT(Beside(once, 64_MiB, 400_ms).read, 100_MiB);
}

TEST(WeightPager, OtherProgramsWaitForTheirTime) {
  EXPECT_EQ(Beside(program(2_GiB, 2_MiB, 50_ms, 3600'000_ms), 128_MiB, 50_ms).others, 0_B);
  const Beside seldom(program(2_GiB, 2_MiB, 800_ms, 1_ms), 128_MiB, 50_ms);
  EXPECT_GE(seldom.others, 6_MiB) << "at 0, 0.8 and 1.6 s of 2";
  EXPECT_LE(seldom.others, 6_MiB + 512_KiB) << "with what is read ahead";
}

TEST(WeightPager, RefusesAProgramsFileThatTheStorageDoesNotHold) {
  config::DeviceSpec device = board();
  device.os.readers = {program(100_GiB, 1_MiB, 1_ms)};
  EXPECT_THAT(message_of([&] { const WeightPager pager(device, {.address = 0, .bytes = 1_MiB}, 1_MiB, 1); }),
              ::testing::HasSubstr("device.os.readers"));
}

TEST(WeightPager, OtherMemoryIsNotItsConcern) {
  WeightPager pager(board(), {.address = kBase, .bytes = 64_MiB}, 32_MiB, 1);
  std::vector<ThreadWork> threads = scan(64_MiB);
  threads[0].extents[0].kind = trace::Kind::kv;
  EXPECT_EQ(pager.run(threads, 5_ms).asked, 0_B);
  threads[0].extents[0].kind = trace::Kind::weights;
  threads[0].extents[0].address = kBase + (65 << 20);
  EXPECT_EQ(pager.run(threads, 5_ms).asked, 0_B);
}

TEST(WeightPager, RefusesAFileThatTheStorageDoesNotHold) {
  config::DeviceSpec device = board();
  EXPECT_THAT(
      message_of([&] { const WeightPager pager(device, {.address = 0, .bytes = 100_GiB}, 1_GiB, 1); }),
      ::testing::HasSubstr("do not fit"));
}

}  // namespace
}  // namespace kvsim::model
