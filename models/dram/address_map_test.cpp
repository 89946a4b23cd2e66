// SPDX-License-Identifier: Apache-2.0
#include "models/dram/address_map.h"

#include <set>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "configs/spec/address_map.h"
#include "configs/spec/device_spec.h"
#include "configs/spec/named_map.h"
#include "models/testing/test_device.h"

namespace kvsim::model {
namespace {

using namespace literals;

using Place = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;

Place place(const AddressMap& map, std::uint64_t address) {
  const DramPlace p = map.place(address);
  return {p.channel.value(), p.bank, p.row.value(), p.column};
}

/// `device()` with a named map over rows or ranks that are no power of two: 6 GiB and 12 GiB.
config::DeviceSpec partial_device(std::int64_t rows, std::int64_t ranks) {
  config::DeviceSpec device = testing::device();
  device.dram.rows = rows;
  device.controller.ranks = ranks;
  device.controller.mapping.order = config::MapOrder::row_bank_column;
  device.controller.mapping.hash = true;
  config::name_masks(device.controller.mapping, device.dram,
                     {.channels = device.controller.channels, .ranks = ranks, .line = device.llc.line});
  return device;
}

std::vector<config::DeviceSpec> devices() {
  return {testing::device(),        testing::plain_device(),    testing::one_rank_device(),
          testing::lpddr5_device(), partial_device(3 << 14, 2), partial_device(1 << 16, 3)};
}

AddressMap map_of(const config::DeviceSpec& device) {
  return AddressMap(device.controller.mapping, device.dram.banks);
}

// RK3588's map: channel 7 8, bank 13^11 14^12 15^13, rank 24^14 (eight banks each), row 16-23 25-32, column
// the rest.
TEST(AddressMap, DecodesTheRk3588MapAsByHand) {
  const AddressMap map = map_of(testing::device());
  EXPECT_EQ(place(map, 0), Place(0, 0, 0, 0));
  EXPECT_EQ(place(map, 0x7f), Place(0, 0, 0, 0x7f));
  EXPECT_EQ(place(map, 1 << 7), Place(1, 0, 0, 0));
  EXPECT_EQ(place(map, 1 << 8), Place(2, 0, 0, 0));
  EXPECT_EQ(place(map, 1 << 9), Place(0, 0, 0, 1 << 7));
  EXPECT_EQ(place(map, 1 << 11), Place(0, 1, 0, 1 << 9));  // column bit, and flips bank bit 0
  EXPECT_EQ(place(map, 1 << 13), Place(0, 1 | 4, 0, 0));   // bank bits 0 and 2
  EXPECT_EQ(place(map, 1 << 14), Place(0, 2 | 8, 0, 0));   // bank bit 1 and the rank
  EXPECT_EQ(place(map, 1 << 15), Place(0, 4, 0, 0));
  EXPECT_EQ(place(map, 1 << 16), Place(0, 0, 1, 0));
  EXPECT_EQ(place(map, 1 << 24), Place(0, 8, 0, 0));
  EXPECT_EQ(place(map, 1 << 25), Place(0, 0, 1 << 8, 0));
  EXPECT_EQ(place(map, std::uint64_t{1} << 32), Place(0, 0, 1 << 15, 0));
  // 0x1'0123'4567 sets the bits 0 1 2 5 6 8 10 14 16 17 21 24 32.
  EXPECT_EQ(place(map, 0x1'0123'4567), Place(2, 2, 0x8023, 0x167));
}

TEST(AddressMap, DecodesPlainRowsAsByHand) {
  const AddressMap map = map_of(testing::plain_device());
  EXPECT_EQ(place(map, (8 * 1234 + 5) * 2048 + 77), Place(0, 5, 1234, 77));
}

TEST(AddressMap, TheTestDevicesMapsAreSound) {
  for (const config::DeviceSpec& device : devices()) {
    EXPECT_TRUE(config::address_map_problems(device).empty()) << device.dram.name;
  }
}

/// Distinct addresses all over the memory: neighbours, powers of two apart, and random ones.
std::set<std::uint64_t> sample(std::uint64_t capacity) {
  std::set<std::uint64_t> addresses;
  Random random(2);
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t base = random.below(capacity);
    for (std::uint64_t step = 1; step < capacity; step *= 2) {
      addresses.insert((base ^ step) % capacity);
      addresses.insert((base + 3 * step) % capacity);
    }
  }
  for (std::uint64_t address = 0; address < 100'000; ++address) {
    addresses.insert(address);
  }
  return addresses;
}

TEST(AddressMap, DistinctAddressesHaveDistinctPlacesWithinTheMemory) {
  for (const config::DeviceSpec& device : devices()) {
    const AddressMap map = map_of(device);
    const auto addresses = sample(static_cast<std::uint64_t>(dram_capacity(device).count()));
    std::set<Place> places;
    for (const std::uint64_t address : addresses) {
      const DramPlace p = map.place(address);
      ASSERT_LT(p.channel.value(), device.controller.channels);
      ASSERT_LT(p.bank, device.controller.ranks * device.dram.banks);
      ASSERT_LT(p.row.value(), device.dram.rows);
      ASSERT_LT(p.column, row_bytes(device.dram).count());
      places.insert(place(map, address));
      AddressMap::Page page;
      const DramPlace line = map.place_of_line(address & ~std::uint64_t{63}, page);
      const DramPlace neighbour = map.place_of_line(address & ~std::uint64_t{4095}, page);
      ASSERT_EQ(std::tuple(line.channel, line.bank, line.row), std::tuple(p.channel, p.bank, p.row));
      ASSERT_EQ(line.column, p.column & ~63U);
      ASSERT_EQ(neighbour.column, map.place(address & ~std::uint64_t{4095}).column);
    }
    EXPECT_EQ(places.size(), addresses.size());
  }
}

TEST(AddressMap, AGranuleIsTheLargestBlockWithinOneRow) {
  EXPECT_EQ(map_of(testing::device()).granule(), 128_B);
  EXPECT_EQ(map_of(testing::plain_device()).granule(), 2_KiB);
  for (const config::DeviceSpec& device : devices()) {
    const AddressMap map = map_of(device);
    const auto granule = static_cast<std::uint64_t>(map.granule().count());
    Random random(3);
    for (int i = 0; i < 1000; ++i) {
      const std::uint64_t start =
          random.below(static_cast<std::uint64_t>(dram_capacity(device).count()) / granule) * granule;
      const DramPlace first = map.place(start);
      const DramPlace last = map.place(start + granule - 1);
      ASSERT_EQ(std::tuple(first.channel, first.bank, first.row),
                std::tuple(last.channel, last.bank, last.row));
      ASSERT_EQ(last.column - first.column, granule - 1);
    }
    const DramPlace next = map.place(granule);
    const DramPlace first = map.place(0);
    EXPECT_NE(std::tuple(first.channel, first.bank, first.row),
              std::tuple(next.channel, next.bank, next.row));
  }
}

}  // namespace
}  // namespace kvsim::model
