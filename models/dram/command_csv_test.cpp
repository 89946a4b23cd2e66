// SPDX-License-Identifier: Apache-2.0
// Comes back what was written, and is everything refused that is not a command trace?
#include "models/dram/command_csv.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"

namespace kvsim::model {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using enum Command;

const std::string kHeader = std::string(kCommandCsvHeader) + "\n";

struct CommandCsv : ::testing::Test {
  CommandCsv() {
    std::string pattern = (std::filesystem::temp_directory_path() / "kvsim_csv_XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
    path = folder / "commands.csv";
  }
  ~CommandCsv() override { std::filesystem::remove_all(folder); }

  std::filesystem::path write(const std::string& text) const {
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  /// All commands of a file with this text.
  std::vector<CsvCommand> read(const std::string& text) const {
    CommandCsvReader reader(write(text));
    std::vector<CsvCommand> all;
    while (const auto command = reader.next()) {
      all.push_back(*command);
    }
    return all;
  }
  /// What is said about a line behind the header, without the file's name.
  std::string said(const std::string& line) const {
    const std::string message = message_of([&] { static_cast<void>(read(kHeader + line)); });
    EXPECT_THAT(message, StartsWith(path.string() + ":"));
    return message.substr(std::min(message.size(), path.string().size() + 1));
  }

  std::filesystem::path folder;
  std::filesystem::path path;
};

config::DramPartSpec part() {
  config::DramPartSpec p;
  p.bank_groups = 4;
  p.banks = 16;
  return p;
}

TEST_F(CommandCsv, WritesOneCommandALine) {
  {
    CommandCsvWriter writer(path, part(), {.channels = 2, .ranks = 2});
    writer.write(1, {17, activate, 16 + 7, 70000, 0});
    writer.write(0, {18, refresh_all, 16, 0, 0});
    writer.write(1, {60, read_auto_precharge, 16 + 7, 0, 1008});
    EXPECT_FALSE(std::filesystem::exists(path)) << "only a whole file has the name";
    writer.finish();
  }
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, kHeader + "17,ACT,1,1,1,3,70000,0\n18,REFab,0,1,0,0,0,0\n60,RDA,1,1,1,3,70000,1008\n");
}

TEST_F(CommandCsv, WithoutFinishNothingIsLeftBehind) {
  { CommandCsvWriter(path, part(), {}).write(0, {1, activate, 0, 0, 0}); }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(CommandCsv, ComesBackAsItWasWritten) {
  constexpr int kMany = 200'000;  // several buffers full
  Random random(1);
  std::vector<std::pair<std::uint32_t, IssuedCommand>> written;
  CommandCsvWriter writer(path, part(), {.channels = 4, .ranks = 2});
  for (int i = 0; i < kMany; ++i) {
    const auto command = static_cast<Command>(random.below(kCommands));
    written.push_back({static_cast<std::uint32_t>(random.below(4)),
                       {random.magnitude() >> 2, command, static_cast<std::uint16_t>(random.below(32)),
                        command == activate ? static_cast<std::uint32_t>(random.next()) : 0,
                        is_read(command) ? static_cast<std::uint32_t>(random.next()) : 0}});
    writer.write(written.back().first, written.back().second);
  }
  writer.finish();
  CommandCsvReader reader(path);
  for (int i = 0; i < kMany; ++i) {
    const auto& [channel, command] = written[static_cast<std::size_t>(i)];
    const auto back = reader.next();
    ASSERT_TRUE(back);
    ASSERT_EQ(back->line, static_cast<std::uint64_t>(i) + 2);
    ASSERT_EQ(back->clock, command.clock);
    ASSERT_EQ(back->command, command.command);
    ASSERT_EQ(back->channel, channel);
    ASSERT_EQ(back->rank * 16 + back->bank_group * 4 + back->bank, command.bank);
    ASSERT_TRUE(command.command != activate || back->row == command.row);
    ASSERT_EQ(back->column, command.column);
  }
  EXPECT_FALSE(reader.next());
}

TEST_F(CommandCsv, LeavesOutWhatACommandDoesNotHave) {
  const auto all = read(kHeader + "5,PREA,0,1,,,,\r\n9,PRE,0,0,1,2,,\n12,RD,0,0,1,2,,\n15,RD,0,0,1,2,3,4");
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].rank, 1U);
  EXPECT_EQ(all[0].column, std::nullopt);
  EXPECT_EQ(all[2].row, std::nullopt);
  EXPECT_EQ(all[3].row, 3U);
  EXPECT_EQ(all[3].column, 4U) << "the last line needs no end";
}

TEST_F(CommandCsv, EveryMistakeIsToldWithItsPlace) {
  EXPECT_THAT(said("-5,ACT,0,0,0,0,1,0\n"),
              StartsWith("2:1: clock '-5' is not a whole number from 0 to 2305843009213693951"));
  EXPECT_THAT(said("-0,ACT,0,0,0,0,1,0\n"), StartsWith("2:1: clock '-0'"));
  EXPECT_THAT(said("2305843009213693952,ACT,0,0,0,0,1,0\n"), StartsWith("2:1: clock"));
  EXPECT_THAT(said("99999999999999999999,ACT,0,0,0,0,1,0\n"), StartsWith("2:1: clock"));
  EXPECT_THAT(said("1.5,ACT,0,0,0,0,1,0\n"), StartsWith("2:1: clock '1.5'"));
  EXPECT_THAT(said("0x10,ACT,0,0,0,0,1,0\n"), StartsWith("2:1: clock '0x10'"));
  EXPECT_THAT(said(",ACT,0,0,0,0,1,0\n"), StartsWith("2:1: clock ''"));
  EXPECT_THAT(said("5,REFAB,0,0,0,0,1,0\n"),
              StartsWith("2:3: command 'REFAB' is unknown, did you mean 'REFab'?; one of ACT PRE PREA"));
  EXPECT_THAT(said("5,,0,0,0,0,1,0\n"), StartsWith("2:3: command '' is unknown"));
  EXPECT_THAT(said("5,ACT,0,4294967296,0,0,1,0\n"), StartsWith("2:9: rank '4294967296' is not"));
  EXPECT_THAT(said("5,ACT,0,0,,0,1,0\n"), StartsWith("2:11: bank_group ''"));
  EXPECT_THAT(said("5,ACT,0,0,0,0,,0\n"), StartsWith("2:15: row ''"));
  EXPECT_THAT(said("5,ACT,0,0,0,0,1,0\n7,RD,0,0\n"), StartsWith("3:9: the line ends before its bank_group"));
  EXPECT_THAT(said("5,ACT,0,0,0,0,1,0\n7,R"), StartsWith("3:4: the line ends before its channel"));
  EXPECT_THAT(said("5,ACT,0,0,0,0,1,0,9\n"), StartsWith("2:19: the line goes on behind its column"));
  EXPECT_THAT(said("\n"), StartsWith("2:1: the line ends before its command"));
  EXPECT_THAT(said("5,AC\x01\xff,0,0,0,0,1,0\n"), HasSubstr("'AC?"));
  EXPECT_THAT(said(std::string(3'000'000, 'x')), HasSubstr("a line of more than 4096 characters"));
}

TEST_F(CommandCsv, WhatIsNoCommandTraceIsRefused) {
  const auto message = [&](const std::string& text) {
    return message_of([&] { static_cast<void>(read(text)); });
  };
  EXPECT_THAT(message(""), HasSubstr("is empty; a command trace begins with the line 'clock,command,"));
  EXPECT_THAT(message("clock,command\n"), HasSubstr(":1:1: 'clock,command' is not the header"));
  EXPECT_THAT(message(std::string("\x7f\x45LF\0\0\n", 7)), HasSubstr("is not the header"));
  EXPECT_THAT(message(std::string(2'000'000, '\0')), HasSubstr("more than 4096 characters"));
  EXPECT_THAT(message("5,ACT,0,0,0,0,1,0\n"), HasSubstr("is not the header"));
  EXPECT_EQ(message(std::string(kCommandCsvHeader)), "no error");
  EXPECT_THAT(message_of([&] { CommandCsvReader reader(folder / "none.csv"); }), HasSubstr("cannot read"));
  EXPECT_THAT(message_of([&] { CommandCsvReader reader(folder); }), HasSubstr("cannot read"));
}

}  // namespace
}  // namespace kvsim::model
