// SPDX-License-Identifier: Apache-2.0
// Is the right request served first?
#include <algorithm>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/dram/channel.h"
#include "models/testing/channel_bench.h"
#include "models/testing/test_device.h"

namespace kvsim::model {
namespace {

using namespace literals;
using testing::ChannelBench;
using ::testing::ElementsAre;
using testing::without_refresh;

config::DeviceSpec device() {
  return without_refresh(testing::device());
}

TEST(ChannelScheduling, ARowHitGoesBeforeAnOlderConflict) {
  ChannelBench bench(device());
  bench.read(1000, 0, 1);
  bench.read(1010, 0, 2);  // the row is too young to be closed
  bench.read(1020, 0, 1);
  bench.run();
  EXPECT_THAT(bench.order(), ElementsAre(0, 2, 1));
}

TEST(ChannelScheduling, PastTheAgeCapTheOldestGoesFirst) {
  config::DeviceSpec impatient = device();
  impatient.controller.age_cap = 0_ns;
  ChannelBench bench(impatient);
  bench.read(1000, 0, 1);
  bench.read(1010, 0, 2);
  bench.read(1020, 0, 1);
  bench.run();
  EXPECT_THAT(bench.order(), ElementsAre(0, 1, 2));
}

RowRun preferred(Cycle arrival, std::uint16_t bank, std::uint32_t row) {
  return {.arrival = arrival, .row = row, .bank = bank, .priority = 3};
}

TEST(ChannelScheduling, APreferredConflictGoesBeforeOlderHits) {
  ChannelBench bench(device());
  for (int i = 0; i < 8; ++i) {
    bench.read(1000, 0, 1);
  }
  const std::uint32_t tag = bench.add(preferred(1000, 0, 2));
  bench.run();
  EXPECT_EQ(bench.order().front(), tag) << "nothing was open, so it opens its row first";
  EXPECT_THAT(bench.order(), ElementsAre(8, 0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(ChannelScheduling, APreferredRunPassesThoseThatWaitBeforeAFullQueue) {
  config::DeviceSpec narrow = device();
  narrow.controller.read_queue = 2;
  ChannelBench bench(narrow);
  for (int i = 0; i < 20; ++i) {
    bench.read(1000, 0, 1);
  }
  const std::uint32_t tag = bench.add(preferred(1001, 0, 1));
  bench.run();
  const std::vector<std::uint32_t> order = bench.order();
  EXPECT_LE(std::find(order.begin(), order.end(), tag) - order.begin(), 2);
}

// Reads arrive all the time: a write of their priority waits for the last of them.
TEST(ChannelScheduling, APreferredWriteDoesNotWaitForTheReadsToEnd) {
  const auto waits = [](std::uint8_t priority) {
    ChannelBench bench(device());
    const ClockTiming t = clock_timing(device().dram, true);
    for (int i = 0; i < 400; ++i) {
      bench.read(1000 + i * t.tCCD, 0, 1);
    }
    const std::uint32_t tag = bench.add(
        {.arrival = 1001, .row = 1, .bank = 2, .access = trace::Access::write, .priority = priority});
    bench.run();
    return (bench.served(tag).data_start - 1001) / t.tCCD;
  };
  EXPECT_GE(waits(0), 400);
  EXPECT_LE(waits(1), 20);
}

// Hits of priority 3 arrive all the time; one of priority 0 waits for no longer than the age cap and a row.
TEST(ChannelScheduling, TheAgeCapBoundsTheWaitOfTheUnpreferred) {
  config::DeviceSpec d = device();
  d.controller.age_cap = 2_us;
  ChannelBench bench(d);
  const std::uint32_t waits = bench.read(1001, 0, 2);
  const ClockTiming t = clock_timing(d.dram, true);
  for (int i = 0; i < 1500; ++i) {
    bench.add(preferred(1000 + i * t.tCCD, 0, 1));
  }
  bench.run();
  const Cycle waited = bench.served(waits).data_start - 1001;
  EXPECT_GE(waited, 4224);
  EXPECT_LE(waited, 4224 + t.read_to_precharge + t.tRPpb + t.tRCD + t.read_latency + 2 * t.tCCD);
}

TEST(ChannelScheduling, OfTwoBanksTheOneThatIsReadyGoesFirst) {
  ChannelBench bench(device());
  bench.read(1000, 0, 1);
  bench.read(5000, 1, 1);  // has to open its row
  bench.read(5001, 0, 1);
  bench.run();
  EXPECT_THAT(bench.order(), ElementsAre(0, 2, 1));
}

/// When a conflict that arrives with the first of many hits is served. Hits arrive every `interval`.
Cycle conflict_starts(Cycle interval) {
  config::DeviceSpec d = device();
  d.controller.age_cap = 2_us;
  ChannelBench bench(d);
  for (int i = 0; i < 1500; ++i) {
    bench.read(1000 + i * interval, 0, 1);
    if (i == 0) {
      bench.read(1000, 0, 2);
    }
  }
  bench.run();
  return bench.served(1).data_start - 1000;
}

// 2 us are 4224 cycles. When the cap is reached: the last hit's end, precharge, activate, read.
TEST(ChannelScheduling, TheAgeCapBoundsTheWaitBehindAStreamOfHits) {
  const ClockTiming t = clock_timing(device().dram, true);
  const Cycle row_change = t.read_to_precharge + t.tRPpb + t.tRCD + t.read_latency;
  const Cycle waited = conflict_starts(t.tCCD);
  EXPECT_GE(waited, 4224);
  EXPECT_LE(waited, 4224 + row_change + 2 * t.tCCD);
}

TEST(ChannelScheduling, TheAgeCapHoldsWhenTheQueueIsFull) {
  const ClockTiming t = clock_timing(device().dram, true);
  const Cycle row_change = t.read_to_precharge + t.tRPpb + t.tRCD + t.read_latency;
  const Cycle waited = conflict_starts(0);
  EXPECT_GE(waited, 4224);
  EXPECT_LE(waited, 4224 + row_change + 2 * t.tCCD);
}

/// Many reads and `writes` writes, all there from the start, in rows that are open side by side.
std::vector<std::uint32_t> order_with_writes(int writes) {
  config::DeviceSpec d = device();
  d.controller.write_queue = 16;
  d.controller.write_high = 8;
  d.controller.write_low = 2;
  ChannelBench bench(d);
  for (int i = 0; i < writes; ++i) {
    bench.write(1000, 1, 1);
  }
  for (int i = 0; i < 200; ++i) {
    bench.read(1000, 0, 1);
  }
  bench.run();
  return bench.order();
}

TEST(ChannelScheduling, WritesBelowTheHighWatermarkWaitForTheReads) {
  const std::vector<std::uint32_t> order = order_with_writes(7);
  EXPECT_THAT(std::vector(order.end() - 7, order.end()), ElementsAre(0, 1, 2, 3, 4, 5, 6));
}

TEST(ChannelScheduling, WritesAtTheHighWatermarkDrainToTheLowOne) {
  const std::vector<std::uint32_t> order = order_with_writes(8);
  EXPECT_THAT(std::vector(order.begin(), order.begin() + 6), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(std::vector(order.end() - 2, order.end()), ElementsAre(6, 7));
}

TEST(ChannelScheduling, WritesGoAheadWhenThereIsNothingToRead) {
  ChannelBench bench(device());
  bench.write(1000, 0, 1);
  bench.read(2000, 0, 1);
  bench.run();
  EXPECT_THAT(bench.order(), ElementsAre(0, 1));
}

/// Order of service when the scheduler sees `capacity` reads: the last of the four hits the open row.
std::vector<std::uint32_t> order_with_read_queue(std::int64_t capacity) {
  config::DeviceSpec d = device();
  d.controller.read_queue = capacity;
  ChannelBench bench(d);
  bench.read(1000, 0, 1);
  bench.read(1050, 0, 2);
  bench.read(1051, 0, 3);
  bench.read(1052, 0, 1);
  bench.run();
  return bench.order();
}

TEST(ChannelScheduling, TheSchedulerSeesAsManyReadsAsTheQueueHolds) {
  EXPECT_THAT(order_with_read_queue(3), ElementsAre(0, 3, 1, 2));
  EXPECT_THAT(order_with_read_queue(2), ElementsAre(0, 1, 2, 3));
}

TEST(ChannelScheduling, AQueueOfOneServesInOrder) {
  config::DeviceSpec d = device();
  d.controller.read_queue = 1;
  ChannelBench bench(d);
  std::vector<std::uint32_t> asked;
  for (std::uint32_t i = 0; i < 300; ++i) {
    asked.push_back(bench.read(1000 + (i % 7) * 100 + i * 200, static_cast<std::uint16_t>(i % 3), i % 2));
  }
  bench.run();
  std::vector<std::uint32_t> expected = asked;
  std::stable_sort(expected.begin(), expected.end(), [](std::uint32_t a, std::uint32_t b) {
    return (a % 7) * 100 + a * 200 < (b % 7) * 100 + b * 200;
  });
  EXPECT_EQ(bench.order(), expected);
}

TEST(ChannelScheduling, ATrainTakesARunInOneDecision) {
  ChannelBench bench(device(), 64);
  bench.read(1000, 0, 1, 40);
  bench.run();
  const ClockTiming& t = bench.timing();
  ASSERT_EQ(bench.served().size(), 1U);
  EXPECT_EQ(bench.served(0).bursts, 40);
  EXPECT_EQ(bench.served(0).data_end - bench.served(0).data_start, 39 * t.tCCD + t.burst);
}

TEST(ChannelScheduling, ATrainDoesNotRunAheadOfItsLines) {
  ChannelBench bench(device(), 64);
  bench.read(1000, 0, 1);
  bench.add({.arrival = 5000, .line_spacing = 1000, .row = 1, .bank = 0, .bursts = 6});
  bench.run();
  const Cycle latency = bench.timing().read_latency;
  std::vector<Cycle> starts;
  for (const Served& served : bench.served()) {
    starts.push_back(served.data_start - latency);
  }
  EXPECT_THAT(std::vector(starts.begin() + 1, starts.end()), ElementsAre(5000, 6000, 7000));
}

TEST(ChannelScheduling, ARefreshThatFallsDueCutsATrain) {
  config::DeviceSpec d = testing::device();
  d.controller.refresh = config::RefreshMode::all_bank;
  d.controller.ranks = 1;
  ChannelBench bench(d, 64);
  const ClockTiming& t = bench.timing();
  bench.read(t.tREFI - 200, 0, 1, 64);
  bench.run();
  ASSERT_EQ(bench.served().size(), 2U);
  const Cycle refresh = bench.clocks(Command::refresh_all).at(0);
  const Served& before = bench.served()[0];
  const Served& after = bench.served()[1];
  EXPECT_LT(before.data_start - t.read_latency + (before.bursts - 1) * t.tCCD, t.tREFI);
  EXPECT_GE(refresh, t.tREFI);
  EXPECT_EQ(after.data_start, refresh + t.tRFCab + t.tRCD + t.read_latency);
  EXPECT_EQ(after.held_by, Owner::refresh);
  EXPECT_EQ(before.bursts + after.bursts, 64);
}

}  // namespace
}  // namespace kvsim::model
