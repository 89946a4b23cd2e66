// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/named_map.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "configs/spec/address_map_test_support.h"
#include "configs/spec/grammar.h"
#include "configs/spec/scenario_test_support.h"

namespace kvsim::config {
namespace {

using namespace kvsim::literals;
using testing::HasSubstr;

using Items = std::vector<std::string>;

void name(DeviceSpec& device, MapOrder order, Bytes granule, bool hash = false) {
  AddressMapSpec& map = device.controller.mapping;
  map.order = order;
  map.channel_granule = granule;
  map.hash = hash;
  name_masks(
      map, device.dram,
      {.channels = device.controller.channels, .ranks = device.controller.ranks, .line = device.llc.line});
}

Items items(const std::vector<AddressBit>& bits) {
  return ListGrammar<std::vector<AddressBit>>::to_items(bits);
}

TEST(NamedMap, RowBankColumnHasItsBitsInOrder) {
  DeviceSpec device = small_device(8);
  name(device, MapOrder::row_bank_column, 8_B);
  const AddressMapSpec& map = device.controller.mapping;
  EXPECT_EQ(items(map.column), (Items{"0-2", "4"}));
  EXPECT_EQ(items(map.channel), (Items{"3"}));
  EXPECT_EQ(items(map.bank), (Items{"5", "6"}));
  EXPECT_EQ(items(map.rank), (Items{"7"}));
  EXPECT_EQ(items(map.row), (Items{"8-10"}));
}

TEST(NamedMap, BankRowColumnHasTheBanksAboveTheRows) {
  DeviceSpec device = small_device(8);
  name(device, MapOrder::bank_row_column, 16_B);
  const AddressMapSpec& map = device.controller.mapping;
  EXPECT_EQ(items(map.column), (Items{"0-3"}));
  EXPECT_EQ(items(map.channel), (Items{"4"}));
  EXPECT_EQ(items(map.row), (Items{"5-7"}));
  EXPECT_EQ(items(map.bank), (Items{"8", "9"}));
  EXPECT_EQ(items(map.rank), (Items{"10"}));
}

TEST(NamedMap, GroupsTakeTurnsLineByLine) {
  DeviceSpec device = small_device(8);
  device.dram.bank_groups = 2;
  name(device, MapOrder::row_bank_column_group, 8_B);
  const AddressMapSpec& map = device.controller.mapping;
  EXPECT_EQ(items(map.column), (Items{"0", "1", "4", "5"}));
  EXPECT_EQ(items(map.bank), (Items{"6", "2"})) << "the group is the bank's upper bit";
  EXPECT_EQ(items(map.channel), (Items{"3"}));
}

TEST(NamedMap, HashXorsBanksWithTheLowRowBits) {
  DeviceSpec device = small_device(8);
  name(device, MapOrder::row_bank_column, 8_B, true);
  EXPECT_EQ(items(device.controller.mapping.bank), (Items{"8^5", "9^6"}));
}

/// The same column and bank bits of consecutive rows: with the hash they are in different banks.
TEST(NamedMap, HashSpreadsRowsOfOneBankOverAllBanks) {
  for (const bool hash : {false, true}) {
    DeviceSpec device = small_device(8);
    name(device, MapOrder::row_bank_column, 8_B, hash);
    std::set<std::int64_t> banks;
    for (std::uint64_t row = 0; row < 4; ++row) {
      banks.insert(coordinate(device.controller.mapping.bank, row << 8));
    }
    EXPECT_EQ(banks.size(), hash ? 4U : 1U);
  }
}

TEST(NamedMap, EveryOneIsABijectionOverWhatExists) {
  for (const MapOrder order :
       {MapOrder::row_bank_column, MapOrder::bank_row_column, MapOrder::row_bank_column_group}) {
    for (const bool hash : {false, true}) {
      for (const Bytes granule : {8_B, 16_B}) {
        for (const std::int64_t rows : {1, 3, 6, 8, 12, 5, 7}) {
          for (const std::int64_t ranks : {1, 2, 3}) {
            DeviceSpec device = small_device(rows);
            device.dram.bank_groups = 2;
            device.controller.ranks = ranks;
            name(device, order, granule, hash);
            const bool both = partial_bits(rows) > 0 && ranks == 3;
            EXPECT_EQ(problems(device).empty(), !both) << rows << ' ' << ranks << problems(device);
            EXPECT_TRUE(both || is_bijection(device)) << rows << ' ' << ranks;
          }
        }
      }
    }
  }
}

TEST(NamedMap, CountsBits) {
  EXPECT_EQ(coordinate_bits(1), 0);
  EXPECT_EQ(coordinate_bits(8), 3);
  EXPECT_EQ(coordinate_bits(6), 3);
  EXPECT_EQ(coordinate_bits(98304), 17);
  EXPECT_EQ(partial_bits(1), 0);
  EXPECT_EQ(partial_bits(8), 0);
  EXPECT_EQ(partial_bits(3), 2);
  EXPECT_EQ(partial_bits(98304), 2) << "3 x 2^15: the values of the upper two bits end at 2";
}

TEST(PartialRows, MustBeTheTopmostAddressBits) {
  DeviceSpec device = small_device(6);
  name(device, MapOrder::row_bank_column, 8_B);
  AddressMapSpec& map = device.controller.mapping;
  ASSERT_EQ(items(map.row), (Items{"8-10"}));
  std::swap(map.row[2], map.bank[0]);
  EXPECT_THAT(problems(device),
              HasSubstr("row: bit 2 has to be address bit 10 alone, since 6 rows are no power"));
  EXPECT_FALSE(is_bijection(device));
  std::swap(map.row[2], map.bank[0]);
  map.row[2].mask |= 1 << 5;
  EXPECT_THAT(problems(device), HasSubstr("row: bit 2 has to be address bit 10 alone"));
  EXPECT_FALSE(is_bijection(device));
  map.row[2].mask = 1 << 10;
  map.bank[0].mask |= 1 << 10;  // others may be hashed with it
  EXPECT_EQ(problems(device), "");
  EXPECT_TRUE(is_bijection(device));
}

TEST(PartialRanks, MustBeTheTopmostAddressBits) {
  DeviceSpec device = small_device(8);
  device.controller.ranks = 3;
  name(device, MapOrder::row_bank_column, 8_B);
  EXPECT_EQ(items(device.controller.mapping.rank), (Items{"10", "11"}));
  EXPECT_EQ(dram_capacity(device), Bytes(3 * 2 * 4 * 8 * 16));
  EXPECT_TRUE(is_bijection(device));
  std::swap(device.controller.mapping.rank[0], device.controller.mapping.row[0]);
  EXPECT_THAT(problems(device), HasSubstr("rank: bit 0 has to be address bit 10 alone"));
  EXPECT_FALSE(is_bijection(device));
}

TEST(PartialRows, AndRanksTogetherAreRefused) {
  DeviceSpec device = small_device(6);
  device.controller.ranks = 3;
  name(device, MapOrder::row_bank_column, 8_B);
  EXPECT_THAT(problems(device), HasSubstr("neither rows nor ranks are a power of two"));
}

using NamedMapScenario = ScenarioTest;

TEST_F(NamedMapScenario, ReplacesTheMasksOfADevice) {
  const RunSpec spec = load(kPlain, {"device.controller.mapping.order=row-bank-column"});
  const AddressMapSpec& map = spec.device.controller.mapping;
  EXPECT_EQ(items(map.column), (Items{"0-7", "10-12"}));
  EXPECT_EQ(items(map.channel), (Items{"8", "9"}));
  EXPECT_EQ(items(map.bank), (Items{"13-15"}));
  EXPECT_EQ(items(map.rank), (Items{"16"}));
  EXPECT_EQ(items(map.row), (Items{"17-32"}));
  EXPECT_EQ(run_spec_from_json(to_json(spec).dump()), spec);
}

TEST_F(NamedMapScenario, TakesGranuleAndHash) {
  const RunSpec spec = load(
      "device: {extends: rk3588, controller: {mapping: {order: row-bank-column, channel_granule: 1 KiB, "
      "hash: "
      "true}}}\nmodel: llama3_8b\n");
  EXPECT_EQ(items(spec.device.controller.mapping.channel), (Items{"10", "11"}));
  EXPECT_EQ(items(spec.device.controller.mapping.bank), (Items{"17^13", "18^14", "19^15"}));
}

TEST_F(NamedMapScenario, RefusesGranulesThatTearALineOrLeaveARow) {
  for (const char* granule : {"32 B", "4 KiB"}) {
    EXPECT_THAT(error_of(kPlain, {"device.controller.mapping={order: row-bank-column, channel_granule: " +
                                  std::string(granule) + "}"}),
                HasSubstr(std::string("controller.mapping.channel_granule: '") + granule +
                          "' is out of range; with this part and order it is from 64 B to 2 KiB"));
  }
  EXPECT_THAT(error_of(kPlain, {"device.controller.mapping.order=row-column-bank"}),
              HasSubstr("is not one of masks, row-bank-column, bank-row-column, row-bank-column-group"));
}

/// An RK3588 with dies of 6 Gb per channel and rank.
TEST_F(NamedMapScenario, LetsTheMemoryEndWhereItsRowsEnd) {
  const RunSpec spec = load(
      "device: {extends: rk3588, dram: {rows: 49152}, controller: {mapping: {order: row-bank-column}}}\n"
      "model: tinyllama_1_1b\n");
  EXPECT_EQ(dram_capacity(spec.device), 6_GiB);
  EXPECT_EQ(items(spec.device.controller.mapping.row), (Items{"17-32"}));
}

}  // namespace
}  // namespace kvsim::config
