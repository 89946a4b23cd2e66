// SPDX-License-Identifier: Apache-2.0
// Does a trace in a file come out as its commands do, each channel for itself?
#include "models/dram/legality/trace_check.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "models/dram/legality/random_traffic.h"
#include "models/dram/legality/test_parts.h"

namespace kvsim::model::legality {
namespace {

using config::DramStandard;
using ::testing::ElementsAre;
using ::testing::Pair;

struct TraceCheck : ::testing::Test {
  TraceCheck() {
    std::string pattern = (std::filesystem::temp_directory_path() / "kvsim_trace_XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
    path = folder / "commands.csv";
  }
  ~TraceCheck() override { std::filesystem::remove_all(folder); }

  TraceFindings check(const std::string& lines, std::size_t keep = 20) const {
    std::ofstream(path) << kCommandCsvHeader << '\n' << lines;
    return check_file(keep);
  }
  TraceFindings check_file(std::size_t keep = 20) const {
    CommandCsvReader reader(path);
    return check_trace(reader, part, conditions, keep);
  }

  std::filesystem::path folder;
  std::filesystem::path path;
  config::DramPartSpec part = test_part(DramStandard::lpddr4);
  Conditions conditions;
};

TEST_F(TraceCheck, ChannelsAreApart) {
  const TraceFindings found = check(
      "100,ACT,0,0,0,3,7,0\n"
      "50,ACT,1,0,0,3,9,0\n"  // earlier, but another channel's
      "128,RD,0,0,0,3,7,0\n"
      "79,RD,1,0,0,3,8,0\n");
  EXPECT_EQ(found.commands, 4U);
  EXPECT_EQ(found.channels, 2U);
  EXPECT_EQ(found.violations, 2U);
  ASSERT_EQ(found.first.size(), 2U);
  EXPECT_EQ(found.first[0].line, 4U);
  EXPECT_EQ(found.first[0].text, "RD after ACT to bank 3 after 28 clocks, tRCD is 29");
  EXPECT_EQ(found.first[1].channel, 1U);
  EXPECT_EQ(found.first[1].text, "RD to row 8 of bank 3, where row 9 is open");
}

TEST_F(TraceCheck, CountsByRuleAndKeepsTheFirst) {
  const TraceFindings found = check(
      "100,ACT,0,0,0,0,1,0\n200,RD,0,0,0,0,,0\n207,RD,0,0,0,0,,0\n214,RD,0,0,0,0,,0\n300,ACT,0,0,0,9,1,0\n"
      "400,ACT,0,1,0,0,1,0\n",
      2);
  EXPECT_EQ(found.violations, 4U);
  EXPECT_EQ(found.highest_rank, 1U);
  EXPECT_EQ(found.first.size(), 2U);
  EXPECT_THAT(found.by_rule, ElementsAre(Pair("tCCD", 2), Pair("range", 2)));
}

TEST_F(TraceCheck, ARandomLegalTraceOfEveryStandardIsLegal) {
  for (const TestPart& test : test_parts()) {
    part = test.part;
    conditions.ranks = 2;
    RandomTraffic traffic(part, conditions, 99);
    CommandCsvWriter writer(path, part, {.channels = 1, .ranks = 2});
    for (int i = 0; i < 20'000; ++i) {
      writer.write(0, traffic.next().command);
    }
    writer.finish();
    const TraceFindings found = check_file();
    EXPECT_EQ(found.commands, 20'000U);
    EXPECT_EQ(found.violations, 0U) << test.name << ": " << found.first[0].text;
  }
}

TEST_F(TraceCheck, MoreChannelsThanAControllerHasAreRefused) {
  EXPECT_THAT(message_of([&] { static_cast<void>(check("1,ACT,64,0,0,0,1,0\n")); }),
              ::testing::HasSubstr("line 2: channel 64 is more than"));
}

}  // namespace
}  // namespace kvsim::model::legality
