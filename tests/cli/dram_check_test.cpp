// SPDX-License-Identifier: Apache-2.0
// `kvsim dram check` as a user meets it.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/process.h"

namespace kvsim::testing {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kHeader = "clock,command,channel,rank,bank_group,bank,row,column\n";
const std::string kLegal =
    "100,ACT,0,0,0,3,7,0\n"
    "129,RD,0,0,0,3,7,64\n"
    "137,RD,0,0,0,3,7,80\n"
    "168,PRE,0,0,0,3,0,0\n"
    "197,REFab,0,0,0,0,0,0\n";

struct DramCheck : ::testing::Test {
  Outcome check(const std::string& text, const std::vector<std::string>& options = {}) const {
    std::vector<std::string> arguments = {"dram", "check", folder.file("c.csv", text), "--part",
                                          "lpddr4-3200"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return kvsim(arguments);
  }

  TemporaryFolder folder;
};

TEST_F(DramCheck, ALegalTraceEndsWithZero) {
  const Outcome outcome = check(kHeader + kLegal);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("commands    5\nviolations  0\n"));
  EXPECT_EQ(outcome.err, "");
  const Outcome empty = check(kHeader);
  EXPECT_EQ(empty.exit_code, 0) << "so does an empty one";
  EXPECT_THAT(empty.err, HasSubstr("note: ")) << "but that is told";
  EXPECT_THAT(empty.err, HasSubstr("c.csv: has no commands"));
}

TEST_F(DramCheck, ViolationsAreToldByLineAndRuleAndEndWithOne) {
  std::string text = kHeader + kLegal;
  text.replace(text.find("129"), 3, "127");
  const Outcome outcome = check(text);
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("violations  1\n"));
  EXPECT_THAT(outcome.out, HasSubstr("line 3: tRCD: RD after ACT to bank 3 after 27 clocks, tRCD is 29\n"));
  EXPECT_THAT(outcome.out, EndsWith("by rule\n           1  tRCD\n"));
}

TEST_F(DramCheck, TheFirstTwentyAreToldAndAllAreCounted) {
  std::string text = kHeader;
  for (int i = 0; i < 35; ++i) {
    text += std::to_string(1000 * i) + ",RD,0,0,0,0,0,0\n";
  }
  const Outcome outcome = check(text);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("line 21: "));
  EXPECT_THAT(outcome.out, Not(HasSubstr("line 22: ")));
  EXPECT_THAT(outcome.out, HasSubstr("... and 15 more\n"));
  EXPECT_THAT(outcome.out, HasSubstr("35  row state\n"));
}

TEST_F(DramCheck, JsonSaysTheSame) {
  const Outcome outcome = check(kHeader + "100,ACT,2,0,0,3,7,0\n120,RD,2,0,0,3,7,0\n", {"--format", "json"});
  EXPECT_EQ(outcome.exit_code, 1);
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json.at("commands"), 2);
  EXPECT_EQ(json.at("channels"), 1);
  EXPECT_EQ(json.at("violations"), 1);
  EXPECT_EQ(json.at("by_rule").at("tRCD"), 1);
  EXPECT_EQ(json.at("first").at(0).at("line"), 3);
  EXPECT_EQ(json.at("first").at(0).at("channel"), 2);
  EXPECT_EQ(json.at("first").at(0).at("rule"), "tRCD");
}

TEST_F(DramCheck, RanksAndRefreshAreForTheUserToSay) {
  const std::string second_rank = kHeader + "100,ACT,0,1,0,3,7,0\n";
  const Outcome one_rank = check(second_rank);
  EXPECT_EQ(one_rank.exit_code, 1);
  EXPECT_EQ(one_rank.err,
            "note: commands name rank 1, but --ranks is 1; a channel with ranks 0 to 1 needs --ranks 2\n");
  const Outcome two_ranks = check(second_rank, {"--ranks", "2"});
  EXPECT_EQ(two_ranks.exit_code, 0);
  EXPECT_EQ(two_ranks.err, "");
  const std::string late = kHeader + "100000,ACT,0,0,0,3,7,0\n";
  const Outcome missing = check(late);
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.out, HasSubstr("tREFI"));
  EXPECT_EQ(check(late, {"--refresh", "per_bank"}).exit_code, 1);
  EXPECT_EQ(check(late, {"--refresh", "none"}).exit_code, 0);
}

/// tREFI is 6246 clocks: half as many refreshes below 45 C, a quarter below 25 C, twice as many above 85 C.
TEST_F(DramCheck, TheTemperatureSetsTheRefreshes) {
  const auto first_refresh = [](int clock) {
    return kHeader + std::to_string(clock) + ",REFab,0,0,0,0,0,0\n";
  };
  struct Case {
    const char* temperature;
    int latest;  // nine intervals: the first, and eight that may be owed
  };
  for (const Case& c :
       {Case{"45 C", 9 * 6246}, {"40 C", 18 * 6246}, {"20 C", 36 * 6246}, {"90 C", 9 * 3123}}) {
    EXPECT_EQ(check(first_refresh(c.latest), {"--temperature", c.temperature}).exit_code, 0) << c.temperature;
    EXPECT_EQ(check(first_refresh(c.latest + 1), {"--temperature", c.temperature}).exit_code, 1)
        << c.temperature;
  }
  EXPECT_EQ(check(first_refresh(9 * 6246 + 1)).exit_code, 1) << "45 C if nothing is said";
  const Outcome bare = check(kHeader, {"--temperature", "45"});
  EXPECT_EQ(bare.exit_code, 2);
  EXPECT_THAT(bare.err, HasSubstr("--temperature: '45' has no unit; write it as 45 C (a temperature)"));
  EXPECT_EQ(check(kHeader, {"--temperature", "126 C"}).exit_code, 2);
}

/// Above 105 C tRCD is 1.875 ns longer: 3 clocks of 0.625 ns.
TEST_F(DramCheck, HeatDeratesTimings) {
  const std::string column = kHeader + "100,ACT,0,0,0,3,7,0\n129,RD,0,0,0,3,7,64\n";
  EXPECT_EQ(check(column, {"--temperature", "105 C"}).exit_code, 0);
  const Outcome hot = check(column, {"--temperature", "106 C"});
  EXPECT_EQ(hot.exit_code, 1);
  EXPECT_THAT(hot.out, HasSubstr("after 29 clocks, tRCD is 32"));
}

TEST_F(DramCheck, PostponedRefreshesCanBeForbidden) {
  const std::string late = kHeader + std::to_string(3 * 6246) + ",REFab,0,0,0,0,0,0\n";
  EXPECT_EQ(check(late).exit_code, 0);
  EXPECT_EQ(check(late, {"--postponed-refreshes", "2"}).exit_code, 0);
  EXPECT_EQ(check(late, {"--postponed-refreshes", "1"}).exit_code, 1);
  for (const char* count : {"0", "9", "-1", "x"}) {
    EXPECT_EQ(check(late, {"--postponed-refreshes", count}).exit_code, 2) << count;
  }
}

TEST_F(DramCheck, AColumnWithinABurstIsFound) {
  std::string text = kHeader + kLegal;
  text.replace(text.find("7,80"), 4, "7,72");
  const Outcome outcome = check(text);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out,
              HasSubstr("line 4: burst: RD to column 72, which lies within a burst of 16 columns\n"));
}

TEST_F(DramCheck, SerialPartsHaveNoCommands) {
  const Outcome outcome =
      kvsim({"dram", "check", folder.file("c.csv", kHeader), "--part", "psram_aps6408l_esp32s3"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("is a serial PSRAM, which has no DRAM commands"));
}

TEST_F(DramCheck, BadInputEndsWithTwoAndSaysWhere) {
  const auto refused = [&](const std::string& text, const std::string& why) {
    const Outcome outcome = check(text);
    EXPECT_EQ(outcome.exit_code, 2) << text;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(why));
  };
  refused("", "is empty");
  refused(std::string("\0\1\2\3", 4), "c.csv:1:1:");
  refused("time,command\n", "c.csv:1:1:");
  refused(kHeader + "-1,ACT,0,0,0,0,0,0\n", "c.csv:2:1: clock '-1'");
  refused(kHeader + "99999999999999999999,ACT,0,0,0,0,0,0\n", "c.csv:2:1: clock");
  refused(kHeader + kLegal + "300,ACTIVATE,0,0,0,0,0,0\n", "c.csv:7:5: command 'ACTIVATE' is unknown");
  refused(kHeader + kLegal + "300,AC", "c.csv:7:");
  refused(kHeader + kLegal + "3000,ACT,0,0,0", "c.csv:7:15: the line ends before its bank");
  refused(kHeader + "1,ACT,99,0,0,0,0,0\n", "line 2: channel 99");
}

TEST_F(DramCheck, BadOptionsEndWithTwo) {
  const std::string file = folder.file("c.csv", kHeader);
  const auto said = [](const std::vector<std::string>& arguments) {
    const Outcome outcome = kvsim(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    return outcome.err;
  };
  EXPECT_THAT(said({"dram", "check", file}), HasSubstr("--part"));
  EXPECT_THAT(said({"dram", "check", "--part", "lpddr4-3200"}),
              HasSubstr("give one command trace (0 given)"));
  EXPECT_THAT(said({"dram", "check", file, "--part", "lpddr4-3201"}),
              HasSubstr("did you mean 'lpddr4-3200'?"));
  EXPECT_THAT(said({"dram", "check", folder.path("none"), "--part", "lpddr4-3200"}),
              HasSubstr("cannot read"));
  for (const char* ranks : {"0", "-1", "9", "two", "1.5", ""}) {
    EXPECT_EQ(check(kHeader, {"--ranks", ranks}).exit_code, 2) << ranks;
  }
  EXPECT_EQ(check(kHeader, {"--refresh", "some"}).exit_code, 2);
  EXPECT_EQ(check(kHeader, {"--format", "csv"}).exit_code, 2);
  EXPECT_EQ(check(kHeader, {"--rank", "2", "--what"}).exit_code, 2);
}

TEST(DramCheckHelp, GivesItsUse) {
  const Outcome outcome = kvsim({"dram", "check", "--help"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("usage: kvsim dram check"));
  EXPECT_THAT(outcome.out, HasSubstr("--refresh"));
  EXPECT_THAT(outcome.out, HasSubstr("--temperature"));
  EXPECT_THAT(outcome.out, HasSubstr("1: it breaks some"));
  EXPECT_THAT(kvsim({"--help"}).out, HasSubstr("1 'dram check' found"));
}

}  // namespace
}  // namespace kvsim::testing
