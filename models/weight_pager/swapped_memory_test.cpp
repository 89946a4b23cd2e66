// SPDX-License-Identifier: Apache-2.0
#include "models/weight_pager/swapped_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "configs/spec/resolve.h"

namespace kvsim::model {
namespace {

using namespace kvsim::literals;

config::DeviceSpec board(Bytes swap) {
  config::DeviceSpec device = config::load_device("rk3588_4gb");
  device.storage = config::load_storage_part("nvme_sm2263xt_1tb");
  device.os.swap = swap;
  return device;
}

std::vector<ThreadWork> scan(Bytes bytes, trace::Access access, std::int64_t n = 1) {
  std::vector<ThreadWork> threads;
  for (std::int64_t i = 0; i < n; ++i) {
    threads.push_back({.extents = {{.address = static_cast<trace::Address>(bytes.count() / n * i),
                                    .row_bytes = bytes / n,
                                    .rows = 1,
                                    .stride = bytes / n,
                                    .access = access,
                                    .kind = trace::Kind::weights,
                                    .stream = Stream(static_cast<std::uint32_t>(i))}},
                       .simd_operations = 0});
  }
  return threads;
}

TEST(SwappedMemory, WhatFitsIsNotTouchedByTheDevice) {
  SwappedMemory memory(board(256_MiB), 64_MiB, 128_MiB, 10_MiB, 1);
  memory.load();
  const PagingUse use = memory.run(scan(64_MiB, trace::Access::read, 4), 10_ms);
  EXPECT_EQ(use.asked, 64_MiB);
  EXPECT_EQ(use.read, 0_B);
  EXPECT_EQ(use.written, 0_B);
  EXPECT_EQ(use.stall, 0_ps);
  EXPECT_EQ(memory.storage().counters().host_written, 0_B);
}

/// A scan of twice the memory swaps in what it lacks, and out only what was written since it came in.
TEST(SwappedMemory, WhatDoesNotFitIsSwapped) {
  SwappedMemory memory(board(256_MiB), 128_MiB, 64_MiB, 10_MiB, 1);
  memory.load();
  static_cast<void>(memory.run(scan(128_MiB, trace::Access::read), 10_ms));
  const StorageCounters before = memory.storage().counters();
  EXPECT_GE(before.host_written, 64_MiB);
  const PagingUse reads = memory.run(scan(128_MiB, trace::Access::read), 10_ms);
  EXPECT_EQ(reads.asked, 128_MiB);
  EXPECT_GE(reads.read, 64_MiB);
  EXPECT_LE(reads.read, 140_MiB);
  EXPECT_EQ(memory.storage().counters().host_read - before.host_read, reads.read);
  EXPECT_EQ(reads.written, 0_B) << "the area still has all of it";
  EXPECT_GT(reads.stall, 30_ms);
  const PagingUse writes = memory.run(scan(128_MiB, trace::Access::write), 10_ms);
  EXPECT_GE(writes.written, 60_MiB);
}

TEST(SwappedMemory, RefusesAnAreaThatTheStorageDoesNotHold) {
  EXPECT_THAT(message_of([] { const SwappedMemory memory(board(2000_GiB), 64_MiB, 32_MiB, 10_MiB, 1); }),
              ::testing::HasSubstr("do not fit on"));
}

}  // namespace
}  // namespace kvsim::model
