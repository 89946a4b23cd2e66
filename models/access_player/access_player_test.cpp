// SPDX-License-Identifier: Apache-2.0
#include "models/access_player/access_player.h"

#include <vector>

#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "models/testing/channel_bench.h"
#include "models/testing/soc.h"
#include "models/testing/test_device.h"

namespace kvsim::model {
namespace {

using namespace literals;
using testing::without_refresh;
using trace::Access;

constexpr trace::Address kLine = kLineBytes;

void read_lines(AccessPlayer& player, trace::Address from, std::int64_t lines) {
  for (std::int64_t i = 0; i < lines; ++i) {
    player.access(from + static_cast<trace::Address>(i) * kLine, Access::read, Owner::weights);
  }
}

TEST(AccessPlayer, OneLineTakesTheUnloadedLatency) {
  const config::DeviceSpec device = without_refresh(testing::device());
  const ClockTiming t = clock_timing(device.dram, true);
  const CommandClock clock(command_clock(device.dram));
  AccessPlayer player(device);
  read_lines(player, 0, 1);
  const AccessPlayer::Played played = player.drain();
  const Cycle data_end =
      clock.cycle_at(device.interconnect.request_latency) + t.tRCD + t.read_latency + t.tCCD + t.burst;
  EXPECT_EQ(played.now, clock.time(data_end) + device.interconnect.response_latency);
  EXPECT_EQ(played.account.total(), played.now);
}

/// As the same lines take as an operator of one core on the whole SoC in SystemC.
TEST(AccessPlayer, AStreamTakesWhatItTakesOnTheSoc) {
  const config::DeviceSpec device = testing::device();
  testing::Soc soc("soc", device, Granularity::burst);
  Picoseconds time;
  testing::simulate([&] { time = soc.run(testing::split(0, 8_MiB, 1)); });
  AccessPlayer player(device);
  read_lines(player, 0, (8 << 20) / kLineBytes);
  EXPECT_NEAR(ratio(player.drain().now, time), 1.0, 0.001);
}

TEST(AccessPlayer, WorkBetweenLinesIsTheTimeWhereMemoryIsFaster) {
  AccessPlayer player(testing::device());
  for (std::int64_t i = 0; i < 10'000; ++i) {
    player.work(100_ns, 10);
    read_lines(player, static_cast<trace::Address>(i) * kLine, 1);
  }
  const AccessPlayer::Played played = player.drain();
  // Each page begins with misses that the prefetcher does not see coming, but loads do: 128 / 10 reach ahead.
  EXPECT_GE(played.now, 1_ms);
  EXPECT_LT(played.now, 1_ms + 1_us);
  EXPECT_EQ(played.account.total(), played.now);
}

/// Pages apart, so that no prefetcher helps: loads that are within the reorder buffer overlap with the work
/// before them, and those beyond it come after it.
TEST(AccessPlayer, LoadsReachAsFarAsTheReorderBuffer) {
  const config::DeviceSpec device = without_refresh(testing::device());
  AccessPlayer alone(device);
  read_lines(alone, 0, 1);
  const Picoseconds latency = alone.drain().now;
  const auto time = [&](std::int64_t instructions) {
    AccessPlayer player(device);
    for (trace::Address i = 0; i < 100; ++i) {
      read_lines(player, i * 3 * 4096, 1);
      player.work(200_ns, instructions);
    }
    return player.drain().now;
  };
  EXPECT_LT(time(10), 100 * 200_ns + 2 * latency);
  EXPECT_GE(time(1000), 100 * (200_ns + latency - 18_ns));  // a row may be open already, which saves tRCD
  EXPECT_EQ(time(200), time(1000));
}

TEST(AccessPlayer, HitsOfTheLastLevelCacheTakeItsBandwidth) {
  const config::DeviceSpec device = testing::device();
  AccessPlayer player(device);
  const std::int64_t lines = (1 << 20) / kLineBytes;  // more than the private cache, less than the other
  read_lines(player, 0, lines);
  const Picoseconds first = player.drain().now;
  read_lines(player, 0, lines);
  EXPECT_EQ(player.drain().now - first, Bytes(kLineBytes) / device.llc.bandwidth * lines);
  EXPECT_EQ(player.levels()[0], (LevelCounts{.hits = 0, .fills = 2 * lines}));
  EXPECT_EQ(player.levels()[1], (LevelCounts{.hits = lines, .fills = lines}));
  const Picoseconds second = player.drain().now;
  for (int i = 0; i < 100; ++i) {  // what is in the private cache costs nothing
    read_lines(player, (1 << 20) - kLine, 1);
  }
  EXPECT_EQ(player.drain().now, second);
}

/// A modified line is written to memory once, when the last-level cache has no room for it any more.
TEST(AccessPlayer, ModifiedLinesReachMemory) {
  config::DeviceSpec device = testing::device();
  AccessPlayer player(device);
  player.access(0, Access::write, Owner::kv_write);
  read_lines(player, kLine, 2 * device.llc.size.count() / kLineBytes);
  static_cast<void>(player.drain());
  EXPECT_EQ(player.levels()[0].write_backs, 1);
  EXPECT_EQ(player.levels()[1].write_backs, 1);
  int written = 0;
  for (const AccessPlayer::Moved& moved : player.moved()) {
    written += moved.access == Access::write ? 1 : 0;
    EXPECT_TRUE(moved.access == Access::read || moved.address == 0);
  }
  EXPECT_EQ(written, 1);
}

/// Every line that is fetched is read from DRAM, and what is written to it are write-backs; time goes on.
TEST(AccessPlayer, BytesAddUpUnderRandomAccesses) {
  for (const std::uint64_t seed : {1, 2}) {
    AccessPlayer player(testing::device());
    Random random(seed);
    Picoseconds before;
    LevelCounts so_far;
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 20'000; ++i) {
        player.work(Picoseconds(static_cast<std::int64_t>(random.below(2'000))), 3);
        player.access(random.below(200'000) * kLine, random.below(3) == 0 ? Access::write : Access::read,
                      Owner::other_data);
      }
      const AccessPlayer::Played played = player.drain();
      ASSERT_EQ(played.account.total(), played.now - before);
      ASSERT_GT(played.now, before);
      before = played.now;
      const LevelCounts llc = player.levels()[1];
      ASSERT_EQ(player.levels()[0].hits + player.levels()[0].fills, 20'000 * (round + 1));
      ASSERT_EQ(llc.hits + llc.fills, player.levels()[0].fills);
      ASSERT_EQ(player.memory().read.count(), llc.fills * kLineBytes);
      ASSERT_LE(player.memory().written.count(), llc.write_backs * kLineBytes);
      ASSERT_GE(player.memory().written.count(), llc.write_backs * kLineBytes - 256 * kLineBytes);  // queues
      ASSERT_EQ(static_cast<std::int64_t>(player.moved().size()),
                llc.fills - so_far.fills + llc.write_backs - so_far.write_backs);
      player.moved().clear();
      so_far = llc;
    }
    EXPECT_GT(so_far.write_backs, 1'000);
  }
}

}  // namespace
}  // namespace kvsim::model
