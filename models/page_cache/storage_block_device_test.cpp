// SPDX-License-Identifier: Apache-2.0
// The page cache on the storage model.
#include "models/page_cache/storage_block_device.h"

#include <gtest/gtest.h>

#include "models/page_cache/page_cache.h"

namespace kvsim::model {
namespace {

using namespace literals;

// Two dies on one channel, 16 KiB pages; a link of 400 MB/s with 32 commands. Times are round, not of a part.
config::StoragePartSpec part() {
  config::StoragePartSpec part;
  part.capacity = 1_GiB;
  part.link.data_rate = config::DataRate(400_MHz);
  part.link.lanes = 8;
  part.link.queue_depth = 32;
  part.link.max_request = 512_KiB;
  part.controller.write_buffer = 1_MiB;
  part.controller.map_cache = 1_MiB;
  part.flash.dies = 2;
  part.flash.planes = 2;
  part.flash.channel_rate = config::DataRate(400_MHz);
  part.flash.read = 60_us;
  part.flash.program = 600_us;
  part.flash.erase = 3_ms;
  part.flash.slc_read = 30_us;
  part.flash.slc_program = 200_us;
  part.host.request = 5_us;
  part.host.completion = 5_us;
  return part;
}

CacheSetup setup() {
  CacheSetup setup;
  setup.memory = 32_MiB;
  setup.min_free = 1_MiB;
  setup.block.max_request = 512_KiB;
  return setup;
}

TEST(StorageBlockDevice, AScanThatDoesNotFitReadsAllAtTheDevicesPace) {
  StorageDevice device(part());
  ASSERT_TRUE(device.lay_out(Bytes(0), 64_MiB));
  StorageBlockDevice block(device);
  PageCache cache(block, setup());
  const FileId file = cache.add_file(64_MiB, {{Bytes(0), 64_MiB}});
  const Touched cold = cache.touch(file, Bytes(0), 64_MiB, {}, {});
  EXPECT_EQ(cold.read, 64_MiB);
  EXPECT_EQ(device.counters().host_read, 64_MiB);
  EXPECT_FALSE(cold.failed);
  EXPECT_GE(cold.done, device.link_time(64_MiB));
  // Nothing but waiting takes time here.
  EXPECT_EQ(cold.waited, cold.done);
  // Windows are asked for ahead of need, so that the link is busy nearly all the time; single pages are not.
  EXPECT_LE(ratio(cold.done, device.link_time(64_MiB)), 1.05);
  StorageDevice other(part());
  ASSERT_TRUE(other.lay_out(Bytes(0), 64_MiB));
  StorageBlockDevice other_block(other);
  PageCache pages(other_block, setup());
  const FileId same = pages.add_file(64_MiB, {{Bytes(0), 64_MiB}});
  pages.advise(same, Bytes(0), 64_MiB, MapAdvice::random);
  // The host's share of each page, and an array read for each set of two pages of 16 KiB.
  EXPECT_GE(pages.touch(same, Bytes(0), 64_MiB, {}, {}).done, (5_us + 5_us) * (64 << 8) + 60_us * (64 << 5));
}

TEST(StorageBlockDevice, WrittenPagesReachTheDevice) {
  StorageDevice device(part());
  StorageBlockDevice block(device);
  PageCache cache(block, setup());
  const FileId file = cache.add_file(8_MiB, {{16_MiB, 8_MiB}});
  const Touched written = cache.touch(file, Bytes(0), 8_MiB, {.path = AccessPath::read, .write = true}, {});
  const Touched synced = cache.sync(file, written.done);
  EXPECT_FALSE(synced.failed);
  EXPECT_EQ(device.counters().host_written, 8_MiB);
  EXPECT_EQ(cache.dirty(), Bytes(0));
}

TEST(StorageBlockDevice, ADeviceThatIsTooSmallIsAResultWithItsPlace) {
  StorageDevice device(part());
  StorageBlockDevice block(device);
  PageCache cache(block, setup());
  const FileId file = cache.add_file(2_MiB, {{1_GiB - 1_MiB, 2_MiB}});
  cache.touch(file, Bytes(0), 2_MiB, {.path = AccessPath::read, .write = true}, {});
  const Touched synced = cache.sync(file, {});
  ASSERT_TRUE(synced.failed);
  EXPECT_EQ(synced.failed->status, StorageStatus::device_full);
  EXPECT_GE(synced.failed->run.offset + synced.failed->run.bytes, 1_GiB);
}

}  // namespace
}  // namespace kvsim::model
