// SPDX-License-Identifier: Apache-2.0
// Dies and channels against sums of their times.
#include "models/storage/flash_array.h"

#include <vector>

#include <gtest/gtest.h>

#include "models/storage/test_part.h"

namespace kvsim::model {
namespace {

using namespace kvsim::literals;

constexpr Bytes kSet = 16_KiB;

struct Done {
  Picoseconds time;
  FlashOp op;
};

class Bench {
 public:
  explicit Bench(const config::StorageFlash& flash, double stretch = 1)
      : flash_(flash), array(flash, stretch, 1, calendar) {}

  void read(std::uint32_t die, std::uint64_t set, Picoseconds when, Bytes bytes = kSet) {
    run(when);
    array.enqueue(array.make({.die = die, .set = set, .array = flash_.read, .moved = bytes}), when);
  }
  void program(std::uint32_t die, Picoseconds when) {
    run(when);
    array.enqueue(array.make({.kind = OpKind::program,
                              .purpose = OpPurpose::destage,
                              .die = die,
                              .array = flash_.program,
                              .moved = kSet}),
                  when);
  }
  void erase(std::uint32_t die, Picoseconds when) {
    run(when);
    array.enqueue(
        array.make({.kind = OpKind::erase, .purpose = OpPurpose::erase, .die = die, .array = flash_.erase}),
        when);
  }
  void run(Picoseconds until = Picoseconds(INT64_MAX)) {
    while (!calendar.empty() && calendar.next_time() <= until) {
      const StorageCalendar::Event event = calendar.take();
      if (const std::optional<OpIndex> op = array.handle(event)) {
        done.push_back({event.time, array.op(*op)});
        array.release(*op, event.time);
      }
    }
  }

 private:
  config::StorageFlash flash_;

 public:
  StorageCalendar calendar;
  FlashArray array;
  std::vector<Done> done;
};

const config::StorageFlash& plain() {
  static const config::StorageFlash kFlash = [] {
    config::StorageFlash flash = small_part().flash;
    flash.transfer_command = 2_us;
    return flash;
  }();
  return kFlash;
}
const Picoseconds kMove(2'000'000 + 16'384'000);  // 2 us and 16 KiB at 1 GB/s

TEST(FlashArray, AReadIsArrayAndTransfer) {
  Bench bench(plain());
  EXPECT_EQ(bench.array.transfer_time(kSet), kMove);
  bench.read(0, 1, 10_us);
  bench.run();
  ASSERT_EQ(bench.done.size(), 1U);
  EXPECT_EQ(bench.done[0].time, 10_us + 50_us + kMove);
}

TEST(FlashArray, ParityGoesWithItsShareOfAPage) {
  config::StorageFlash flash = plain();
  flash.page_spare = 1024_B;
  Bench bench(flash);
  EXPECT_EQ(bench.array.transfer_time(4_KiB), 2_us + Picoseconds((4096 + 256) * 1000));
  Bench hot(flash, 1.5);
  EXPECT_EQ(hot.array.transfer_time(4_KiB).count(), bench.array.transfer_time(4_KiB).count() * 3 / 2);
}

TEST(FlashArray, WithoutCacheReadADieReadsAndMovesInTurn) {
  Bench bench(plain());
  for (std::uint64_t set = 0; set < 4; ++set) {
    bench.read(0, set, Picoseconds());
  }
  bench.run();
  EXPECT_EQ(bench.done.back().time, (50_us + kMove) * 4);
}

TEST(FlashArray, WithCacheReadTheLongerOfBothCounts) {
  config::StorageFlash flash = plain();
  flash.cache_read = true;
  Bench bench(flash);
  for (std::uint64_t set = 0; set < 4; ++set) {
    bench.read(0, set, Picoseconds());
  }
  bench.run();
  EXPECT_EQ(bench.done.back().time, 50_us * 4 + kMove);

  flash.read = 10_us;
  Bench quick(flash);
  for (std::uint64_t set = 0; set < 4; ++set) {
    quick.read(0, set, Picoseconds());
  }
  quick.run();
  EXPECT_EQ(quick.done.back().time, 10_us + kMove * 4);
}

TEST(FlashArray, DiesReadAtOnceAndShareTheirChannel) {
  config::StorageFlash flash = plain();
  flash.dies = 4;
  Bench one(flash);
  flash.channels = 4;
  Bench four(flash);
  for (std::uint32_t die = 0; die < 4; ++die) {
    one.read(die, die, Picoseconds());
    four.read(die, die, Picoseconds());
  }
  one.run();
  four.run();
  EXPECT_EQ(one.done.back().time, 50_us + kMove * 4);
  EXPECT_EQ(four.done.back().time, 50_us + kMove);
}

TEST(FlashArray, WhatIsInTheRegisterNeedsNoRead) {
  Bench bench(plain());
  bench.read(0, 7, Picoseconds(), 4_KiB);
  bench.read(0, 7, 1_ms, 4_KiB);
  bench.read(0, 8, 2_ms, 4_KiB);
  bench.run();
  const Picoseconds move = bench.array.transfer_time(4_KiB);
  EXPECT_EQ(bench.done[0].time, 50_us + move);
  EXPECT_EQ(bench.done[1].time, 1_ms + move);
  EXPECT_EQ(bench.done[2].time, 2_ms + 50_us + move);
}

TEST(FlashArray, AProgramEmptiesTheRegister) {
  Bench bench(plain());
  bench.read(0, 7, Picoseconds());
  bench.program(0, 1_ms);
  bench.read(0, 7, 5_ms);
  bench.run();
  EXPECT_EQ(bench.done[1].time, 1_ms + kMove + 500_us);
  EXPECT_EQ(bench.done[2].time, 5_ms + 50_us + kMove);
}

TEST(FlashArray, AReadWaitsForAProgramThatCannotStop) {
  Bench bench(plain());
  bench.program(0, Picoseconds());
  bench.read(0, 1, 100_us);
  bench.run();
  EXPECT_EQ(bench.done[0].op.kind, OpKind::program);
  EXPECT_EQ(bench.done[1].time, kMove + 500_us + 50_us + kMove);
}

TEST(FlashArray, AReadStopsAProgramWhichThenGoesOn) {
  config::StorageFlash flash = plain();
  flash.suspend = 20_us;
  Bench bench(flash);
  bench.program(0, Picoseconds());
  bench.read(0, 1, 100_us);
  bench.run();
  const Picoseconds served = 100_us + 20_us + 50_us + kMove;
  EXPECT_EQ(bench.done[0].op.kind, OpKind::read);
  EXPECT_EQ(bench.done[0].time, served);
  EXPECT_EQ(bench.done[1].time, served + (kMove + 500_us - 100_us));
  EXPECT_EQ(bench.array.suspends(), 1);
}

TEST(FlashArray, ReadsDoNotPutAnEraseOffForEver) {
  config::StorageFlash flash = plain();
  flash.suspend = 0_us;
  Bench bench(flash);
  bench.erase(0, Picoseconds());
  for (int i = 0; i < 2000; ++i) {
    bench.read(0, static_cast<std::uint64_t>(i), Picoseconds(std::int64_t{10'000'000} * i));
  }
  bench.run();
  std::size_t at = 0;
  while (bench.done[at].op.kind != OpKind::erase) {
    ++at;
  }
  EXPECT_EQ(at, 32U);
}

TEST(FlashArray, AChainedOperationWaitsForAllBeforeIt) {
  config::StorageFlash flash = plain();
  flash.dies = 2;
  Bench bench(flash);
  const OpIndex program = bench.array.make({.kind = OpKind::program,
                                            .purpose = OpPurpose::collect,
                                            .die = 0,
                                            .array = flash.program,
                                            .moved = kSet});
  for (std::uint32_t die = 0; die < 2; ++die) {
    const OpIndex read = bench.array.make(
        {.purpose = OpPurpose::collect, .die = die, .set = die, .array = flash.read, .moved = kSet});
    bench.array.chain(read, program);
    bench.array.enqueue(read, Picoseconds());
  }
  bench.run();
  ASSERT_EQ(bench.done.size(), 3U);
  EXPECT_EQ(bench.done[2].time, 50_us + kMove * 3 + 500_us);
  EXPECT_EQ(bench.array.pending(), 0);
}

TEST(FlashArray, RetriesComeInTheirShare) {
  config::StorageFlash flash = plain();
  flash.retry_share = 0.2;
  flash.retry_again = 0.5;
  Bench bench(flash);
  constexpr int kReads = 20'000;
  for (int i = 0; i < kReads; ++i) {
    bench.read(0, static_cast<std::uint64_t>(i), Picoseconds(std::int64_t{10'000'000'000} * i));
  }
  bench.run();
  // 0.2 x (1 + 1/2 + 1/4 + ...)
  EXPECT_NEAR(static_cast<double>(bench.array.retries()) / kReads, 0.4, 0.02);
  int longer = 0;
  for (int i = 0; i < kReads; ++i) {
    const Picoseconds took =
        bench.done[static_cast<std::size_t>(i)].time - Picoseconds(std::int64_t{10'000'000'000} * i) - kMove;
    EXPECT_EQ(took.count() % (50_us).count(), 0);
    longer += took > 50_us ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(longer) / kReads, 0.2, 0.01);
}

}  // namespace
}  // namespace kvsim::model
