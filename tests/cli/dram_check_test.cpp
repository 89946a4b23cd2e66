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
  EXPECT_EQ(check(kHeader).exit_code, 0) << "so does an empty one";
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
  EXPECT_EQ(check(second_rank).exit_code, 1);
  EXPECT_EQ(check(second_rank, {"--ranks", "2"}).exit_code, 0);
  const std::string late = kHeader + "100000,ACT,0,0,0,3,7,0\n";
  const Outcome missing = check(late);
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.out, HasSubstr("tREFI"));
  EXPECT_EQ(check(late, {"--refresh", "per_bank"}).exit_code, 1);
  EXPECT_EQ(check(late, {"--refresh", "none"}).exit_code, 0);
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
}

}  // namespace
}  // namespace kvsim::testing
