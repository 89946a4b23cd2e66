// SPDX-License-Identifier: Apache-2.0
#include "sim/run/frame_map.h"

#include <gtest/gtest.h>

namespace kvsim::sim {
namespace {

using trace::Address;
using trace::Extent;

constexpr Address kFile = 1000;

Extent rows_at(Address address, std::int64_t row, std::uint32_t rows, std::int64_t stride) {
  return {.address = address,
          .row_bytes = Bytes(row),
          .rows = rows,
          .stride = Bytes(stride),
          .access = trace::Access::read,
          .kind = trace::Kind::weights,
          .stream = Stream(0)};
}

std::vector<Extent> placed(const FrameMap& map, const Extent& extent) {
  Operation operation;
  operation.threads.push_back({.extents = {extent}, .simd_operations = 7});
  const Operation result = map.placed(operation);
  EXPECT_EQ(result.threads.size(), 1U);
  EXPECT_EQ(result.threads[0].simd_operations, 7U);
  return result.threads[0].extents;
}

TEST(FrameMap, LeavesWhatLiesBeforeAndMovesDownWhatLiesBehind) {
  const FrameMap map(kFile, Bytes(500), Bytes(200));
  EXPECT_EQ(placed(map, rows_at(0, 64, 2, 64))[0].address, 0U);
  EXPECT_EQ(placed(map, rows_at(1500, 64, 2, 64))[0].address, 1200U);
  EXPECT_EQ(placed(map, rows_at(1700, 64, 2, 64))[0].address, 1400U);
}

TEST(FrameMap, PagesTakeFramesInTurn) {
  const FrameMap map(kFile, Bytes(500), Bytes(200));
  EXPECT_EQ(placed(map, rows_at(1000, 50, 2, 50))[0].address, 1000U);
  EXPECT_EQ(placed(map, rows_at(1250, 50, 2, 50))[0].address, 1050U);
}

/// Whatever the extent, its bytes are all there and lie in the frames.
TEST(FrameMap, KeepsEveryByteWithinTheFrames) {
  for (std::int64_t frames : {100, 130, 333}) {
    const FrameMap map(kFile, Bytes(5000), Bytes(frames));
    for (Address start = kFile; start < 1400; start += 37) {
      for (const Extent& extent : {rows_at(start, 40, 17, 40), rows_at(start, 24, 31, 96),
                                   rows_at(start, 99, 1, 99), rows_at(start, 1000, 3, 1000)}) {
        Bytes sum;
        for (const Extent& part : placed(map, extent)) {
          const Address end = part.address + static_cast<Address>(part.stride.count()) * (part.rows - 1) +
                              static_cast<Address>(part.row_bytes.count());
          EXPECT_GE(part.address, kFile);
          EXPECT_LE(end, kFile + static_cast<Address>(frames));
          EXPECT_TRUE(part.row_bytes == extent.row_bytes || extent.row_bytes > Bytes(frames));
          sum += total_bytes(part);
        }
        EXPECT_EQ(sum, total_bytes(extent));
      }
    }
  }
}

}  // namespace
}  // namespace kvsim::sim
