// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/address_map.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "configs/spec/address_map_test_support.h"
#include "configs/spec/catalogue.h"
#include "configs/spec/grammar.h"
#include "configs/spec/resolve.h"

namespace kvsim::config {
namespace {

using namespace kvsim::literals;
using testing::HasSubstr;
using testing::IsEmpty;

using Bits = std::vector<AddressBit>;

Bits bits(std::initializer_list<std::string_view> items) {
  Bits result;
  for (const std::string_view item : items) {
    const Bits parsed = ListGrammar<Bits>::parse_item(item).value.value();
    result.insert(result.end(), parsed.begin(), parsed.end());
  }
  return result;
}

/// With a plain map: 1 KiB in all.
DeviceSpec mapped_device() {
  DeviceSpec device = small_device(4);
  device.controller.mapping = {.channel = bits({"4"}),
                               .rank = bits({"9"}),
                               .bank = bits({"5", "6"}),
                               .row = bits({"7", "8"}),
                               .column = bits({"0-3"})};
  return device;
}

TEST(AddressMap, APlainMapIsSound) {
  EXPECT_EQ(problems(mapped_device()), "");
  EXPECT_TRUE(is_bijection(mapped_device()));
}

TEST(AddressMap, HashesThatCanBeUndoneAreSound) {
  DeviceSpec device = mapped_device();
  device.controller.mapping.bank = bits({"5^7", "6^8^5"});
  EXPECT_EQ(problems(device), "");
  EXPECT_TRUE(is_bijection(device));
}

TEST(AddressMap, CountsBits) {
  DeviceSpec device = mapped_device();
  device.controller.mapping.row = bits({"7"});
  device.controller.mapping.rank = bits({"9", "8"});
  EXPECT_EQ(problems(device), "rank: has 2 bits, but 2 ranks need 1\nrow: has 1 bits, but 4 rows need 2\n");
}

TEST(AddressMap, NamesWhatIsDoubledAndWhatIsMissing) {
  DeviceSpec device = mapped_device();
  device.controller.mapping.row = bits({"7", "7"});
  EXPECT_EQ(problems(device),
            ": address bit 8 is in no coordinate; it is missing\n"
            "row: row bit 0 (7) and row bit 1 (7) repeat each other (their XOR is always 0), so two "
            "addresses would share "
            "one place\n");
}

TEST(AddressMap, FindsDependenceAcrossCoordinates) {
  DeviceSpec device = mapped_device();
  device.controller.mapping.bank = bits({"7^8", "6"});
  device.controller.mapping.rank = bits({"9^5"});
  EXPECT_THAT(problems(device),
              HasSubstr("bank bit 0 (8^7) and row bit 0 (7) and row bit 1 (8) repeat each other"));
  EXPECT_FALSE(is_bijection(device));
}

TEST(AddressMap, RefusesBitsBeyondTheMemory) {
  DeviceSpec device = mapped_device();
  device.controller.mapping.rank = bits({"9^30"});
  EXPECT_EQ(problems(device), "rank: bit 0 uses address bit 30, but 1 KiB have bits 0 to 9\n");
}

TEST(AddressMap, KeepsACacheLineInOneRow) {
  DeviceSpec device = mapped_device();
  device.controller.mapping.bank = bits({"5^1", "6"});
  EXPECT_THAT(problems(device), HasSubstr("bank: bit 0: address bits 0 to 1 must be column bits 0 to 1"));
  device = mapped_device();
  device.controller.mapping.column = bits({"1", "0", "2", "3"});
  EXPECT_THAT(problems(device), HasSubstr("so that the 4 B of a cache line or burst lie in one row"));
  device = mapped_device();
  device.llc.line = 2_B;
  device.dram.burst_length = 8;  // the burst is the larger
  device.controller.mapping.column = bits({"0", "1", "3", "2"});
  EXPECT_THAT(problems(device), HasSubstr("so that the 8 B of a cache line or burst"));
}

/// Random maps, sound and not: the check agrees with trying every address.
TEST(AddressMap, AgreesWithTryingEveryAddress) {
  Random random(10);
  int sound = 0;
  for (int i = 0; i < 400; ++i) {
    DeviceSpec device = mapped_device();
    AddressMapSpec& map = device.controller.mapping;
    map.column = bits({"0", "1", "2", "3"});
    for (Bits* each : {&map.channel, &map.rank, &map.bank, &map.row}) {
      for (AddressBit& bit : *each) {
        if (random.below(3) == 0) {
          bit.mask ^= std::uint64_t{1} << (2 + random.below(8));
        }
        if (bit.mask == 0) {
          bit.mask = 16;
        }
      }
    }
    EXPECT_EQ(problems(device).empty(), is_bijection(device)) << problems(device);
    if (is_bijection(device)) {
      ++sound;
    }
  }
  EXPECT_GT(sound, 50);
  EXPECT_LT(sound, 350);
}

TEST(AddressMap, OfEveryDeviceIsSound) {
  for (const std::string& id : catalogue_ids("devices")) {
    EXPECT_THAT(address_map_problems(load_device(id)), IsEmpty()) << id;
  }
}

/// Read in bytes, the RK3588's channel mask 0x20 parts each cache line between two channels.
TEST(AddressMap, OfRk3588InBytesTearsLines) {
  DeviceSpec device = load_device("rk3588");
  device.controller.mapping = {.channel = bits({"5", "6"}),
                               .rank = bits({"22^12"}),
                               .bank = bits({"11^9", "12^10", "13^11"}),
                               .row = bits({"16-21", "23-32"}),
                               .column = bits({"0-4", "7-10", "14", "15"})};
  EXPECT_THAT(
      problems(device),
      HasSubstr("channel: bit 0: address bits 0 to 5 must be column bits 0 to 5, so that the 64 B of a "
                "cache line or burst lie in one row"));
  EXPECT_THAT(problems(device), testing::Not(HasSubstr("repeat each other"))) << "it is a bijection, though";
  EXPECT_THAT(problems(device), testing::Not(HasSubstr("missing")));
}

/// On an RK3588 a 4 KiB page spreads over all channels, and the rows above one bank go to other banks.
TEST(AddressMap, OfRk3588InterleavesChannels) {
  const AddressMapSpec map = load_device("rk3588").controller.mapping;
  std::set<std::int64_t> channels;
  for (std::uint64_t address = 0; address < 4096; address += 64) {
    channels.insert(coordinate(map.channel, address));
  }
  EXPECT_EQ(channels.size(), 4U);
  EXPECT_EQ(coordinate(map.channel, 64), 0);
  EXPECT_EQ(coordinate(map.channel, 128), 1);
  EXPECT_EQ(coordinate(map.bank, 1 << 13), 0b101);
  EXPECT_EQ(coordinate(map.row, 1 << 13), 0);
  EXPECT_EQ(coordinate(map.rank, 1 << 24), 1);
}

}  // namespace
}  // namespace kvsim::config
