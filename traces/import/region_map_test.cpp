// SPDX-License-Identifier: Apache-2.0
#include "traces/import/region_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "traces/import/test_files.h"

namespace kvsim::trace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryFile;

constexpr const char* kHeader = "kind,start,end,bytes,tensor\n";

RegionMap load(const std::string& lines) {
  return RegionMap::load(TemporaryFile(kHeader + lines).path());
}

std::string refusal(const std::string& content) {
  const TemporaryFile file(content);
  std::string message = message_of([&] { static_cast<void>(RegionMap::load(file.path())); });
  return message.erase(0, file.path().string().size());
}

std::string kind_at(const RegionMap& map, Address address) {
  return map.kinds()[map.piece_at(address).kind];
}

TEST(RegionMap, NamesAddresses) {
  const RegionMap map = load("W,0x1000,0x2000,4096,a\nKV,8192,0x3000,4096,b\n");
  EXPECT_THAT(map.kinds(), ElementsAre("W", "KV", "other"));
  EXPECT_EQ(kind_at(map, 0xfff), "other");
  EXPECT_EQ(map.piece_at(0xfff).end, 0x1000U);
  EXPECT_EQ(kind_at(map, 0x1000), "W");
  EXPECT_EQ(map.piece_at(0x1000).end, 0x2000U);
  EXPECT_EQ(kind_at(map, 0x2000), "KV");
  EXPECT_EQ(kind_at(map, 0x2fff), "KV");
  EXPECT_EQ(kind_at(map, 0x3000), "other");
  EXPECT_EQ(map.piece_at(0x3000).end, ~Address{0});
  EXPECT_EQ(kind_at(RegionMap(), 0x1000), "other");
}

TEST(RegionMap, ViewsBelongToTheirBase) {
  const RegionMap map = load("KVVIEW,100,200,100,v\nKV,150,300,150,\"k, \"\"quoted\"\"\"\n");
  EXPECT_THAT(map.kinds(), ElementsAre("KV", "other"));
  EXPECT_EQ(kind_at(map, 100), "KV");
  EXPECT_EQ(map.piece_at(100).end, 300U);
}

TEST(RegionMap, AKindThatIsCalledOtherIsTheOthers) {
  const RegionMap map = load("other,0,100,100,a\nW,100,200,100,b\n");
  EXPECT_THAT(map.kinds(), ElementsAre("W", "other"));
  EXPECT_EQ(kind_at(map, 50), "other");
  EXPECT_EQ(map.piece_at(50).end, 100U);
  EXPECT_EQ(kind_at(map, 150), "W");
}

/// Random ranges, of which those of different kinds lie apart, against a table by byte.
TEST(RegionMap, IsTheSameAsATable) {
  Random random(5);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::string> table(2000, "other");
    std::string lines;
    for (int i = 0; i < 40; ++i) {
      const std::uint64_t begin = random.below(1900);
      const std::uint64_t end = begin + 1 + random.below(99);
      const std::string kind(1, static_cast<char>('a' + random.below(3)));
      const auto fits = [&](const std::string& at) { return at == "other" || at == kind; };
      if (!std::all_of(table.begin() + static_cast<std::ptrdiff_t>(begin),
                       table.begin() + static_cast<std::ptrdiff_t>(end), fits)) {
        continue;
      }
      std::fill(table.begin() + static_cast<std::ptrdiff_t>(begin),
                table.begin() + static_cast<std::ptrdiff_t>(end), kind);
      lines += kind + "," + std::to_string(begin) + "," + std::to_string(end) + "," +
               std::to_string(end - begin) + ",t\n";
    }
    const RegionMap map = load(lines);
    for (std::size_t at = 0; at < table.size(); ++at) {
      ASSERT_EQ(kind_at(map, at), table[at]);
      const Address end = std::min<Address>(map.piece_at(at).end, table.size());
      ASSERT_GT(end, at);
      ASSERT_TRUE(end == table.size() || table[end] != table[at]);
    }
  }
}

TEST(RegionMap, RangesOfTwoKindsMayNotOverlap) {
  EXPECT_THAT(refusal(std::string(kHeader) + "W,0,100,100,a\nKV,99,200,101,b\n"),
              HasSubstr(":3:4: the range 0x63 to 0xc8 of 'KV' overlaps one of 'W', 0x0 to 0x64 on line 2"));
  // Also where a third one of a kind begins between them.
  EXPECT_THAT(refusal(std::string(kHeader) + "KV,50,60,10,a\nW,0,100,100,a\nW,10,20,10,b\n"),
              HasSubstr(":3:3: the range 0x0 to 0x64 of 'W' overlaps one of 'KV'"));
}

TEST(RegionMap, TellsWhereALineIsWrong) {
  const auto line = [](const char* text) { return refusal(std::string(kHeader) + "W,0,8,8,a\n" + text); };
  EXPECT_THAT(line("W,9,9,0,a\n"), HasSubstr(":3:5: the range ends at 0x9, which is not behind its start"));
  EXPECT_THAT(line("W,9,0x8,0,a\n"), HasSubstr(":3:5: the range ends at 0x8"));
  EXPECT_THAT(line("W,x,9,0,a\n"), HasSubstr(":3:3: start 'x' is no number below 2^64"));
  EXPECT_THAT(line("W,0x,9,0,a\n"), HasSubstr(":3:3: start '0x' is no number"));
  EXPECT_THAT(line("W,-1,9,0,a\n"), HasSubstr(":3:3: start '-1' is no number"));
  EXPECT_THAT(line("W,0,0x10000000000000000,0,a\n"),
              HasSubstr(":3:5: end '0x10000000000000000' is no number"));
  EXPECT_THAT(line("W,10,12,3,a\n"), HasSubstr(":3:9: 3 bytes, but from 0xa to 0xc there are 2"));
  EXPECT_THAT(line("W,10,12,2\n"), HasSubstr(":3:1: the line has 4 values, and the first line names 5"));
  EXPECT_THAT(line("W,10,12,2,\"a\n"), HasSubstr(":3:11: the quote does not end"));
  EXPECT_THAT(line(",10,12,2,a\n"), HasSubstr(":3:1: the kind is empty"));
  EXPECT_THAT(line("VIEW,10,12,2,a\n"), HasSubstr(":3:1: VIEW stands behind no kind"));
  EXPECT_THAT(line((std::string(5000, 'x') + "\n").c_str()), HasSubstr(":3:4097: the line is longer"));
}

TEST(RegionMap, NeedsItsColumns) {
  EXPECT_THAT(refusal(""), HasSubstr(":1:1: is empty"));
  EXPECT_THAT(refusal("kind,start\n"), HasSubstr(":1:1: there is no column 'end'"));
  EXPECT_EQ(kind_at(RegionMap::load(TemporaryFile("end,start,kind\n9,8,W").path()), 8), "W");
  std::string many = "kind,start,end\n";
  for (int i = 0; i < 64; ++i) {
    many += "k" + std::to_string(i) + "," + std::to_string(i) + "," + std::to_string(i + 1) + "\n";
  }
  EXPECT_THAT(refusal(many), HasSubstr(":65:1: there are more than 63 kinds"));
  EXPECT_THAT(message_of([] { static_cast<void>(RegionMap::load("/nowhere/r.csv")); }),
              HasSubstr("/nowhere/r.csv: cannot be opened"));
}

TEST(RegionMap, NamesTellTheUse) {
  EXPECT_EQ(use_of("W"), Kind::weights);
  EXPECT_EQ(use_of("KV"), Kind::kv);
  EXPECT_EQ(use_of("C"), Kind::scratch);
  EXPECT_EQ(use_of("other"), Kind::other);
  EXPECT_EQ(use_of("KVX"), Kind::other);
}

}  // namespace
}  // namespace kvsim::trace
