// SPDX-License-Identifier: Apache-2.0
// Files that kvsim writes: never an input or another output, whole or not there at all; and pipes as inputs.
#include <cstdint>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace kvsim::testing {
namespace {

using ::testing::HasSubstr;

const std::string kTrace = "R 0x0\nW 0x40\nR 0x100000\n";
const std::string kPart = "extends: ./base.yaml\n";
const std::string kBase = "extends: lpddr4-3200\n";
const std::string kMap = "column: [0-11]\nrow: [12-27]\nbank: [28-30]\n";

struct Outputs : ::testing::Test {
  Outcome run(const std::vector<std::string>& options) const {
    std::vector<std::string> arguments = {"dram",    "run", "--part",    folder.path("part.yaml"),
                                          "--trace", trace, "--mapping", folder.path("map.yaml")};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return kvsim(arguments);
  }
  void expect_refused(const std::vector<std::string>& options, const std::string& why) const {
    const Outcome outcome = run(options);
    EXPECT_EQ(outcome.exit_code, 2) << options[1];
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(why));
  }

  TemporaryFolder folder;
  std::string trace = folder.file("t.txt", kTrace);
  std::string part = folder.file("part.yaml", kPart);
  std::string base = folder.file("base.yaml", kBase);
  std::string map = folder.file("map.yaml", kMap);
};

TEST_F(Outputs, OfDramRunAreNoInputs) {
  std::filesystem::create_symlink(trace, folder.path("link"));
  std::filesystem::create_hard_link(part, folder.path("hard"));
  std::filesystem::create_directory(folder.path("sub"));
  for (const char* option : {"--commands", "--power-over-time"}) {
    for (const char* name : {"t.txt", "part.yaml", "base.yaml", "map.yaml", "link", "hard", "sub/../t.txt"}) {
      expect_refused({option, folder.path(name)}, "an input of this run; give another name");
    }
    expect_refused({option, "-"}, "goes into a file, not to standard output");
  }
  EXPECT_EQ(read_file(trace), kTrace);
  EXPECT_EQ(read_file(part), kPart);
  EXPECT_EQ(read_file(base), kBase);
  EXPECT_EQ(read_file(map), kMap);
  EXPECT_EQ(folder.entries(), 7U);
}

TEST_F(Outputs, OfDramRunAreTwoFiles) {
  std::filesystem::create_directory(folder.path("sub"));
  const std::string csv = folder.path("o.csv");
  for (const std::string& other : {csv, folder.path("./o.csv"), folder.path("sub/../o.csv")}) {
    expect_refused({"--commands", csv, "--power-over-time", other}, "is the file of --commands as well");
  }
  EXPECT_FALSE(std::filesystem::exists(csv));
  static_cast<void>(folder.file("o.csv", "old"));
  std::filesystem::create_hard_link(csv, folder.path("hard"));
  expect_refused({"--commands", csv, "--power-over-time", folder.path("hard")},
                 "is the file of --commands as well");
  EXPECT_EQ(read_file(csv), "old");
  const Outcome both = run({"--commands", csv, "--power-over-time", folder.path("p.csv")});
  EXPECT_EQ(both.exit_code, 0) << both.err;
  EXPECT_THAT(read_file(csv), ::testing::StartsWith("clock,"));
  EXPECT_THAT(read_file(folder.path("p.csv")), ::testing::StartsWith("time_ns,"));
}

/// Half a second of reads and more.
std::string long_trace(const TemporaryFolder& folder) {
  return folder.file("long.bin", std::string(80'000'000, '\0'));
}

TEST_F(Outputs, AnInterruptLeavesWhatWasThere) {
  trace = long_trace(folder);
  const std::string power = folder.file("p.csv", "old\n");
  const std::size_t before = folder.entries();
  const Outcome outcome = shell("$K dram run --part lpddr4-3200 --trace '" + trace + "' --power-over-time '" +
                                power + "' --commands '" + folder.path("c.csv") +
                                "' & p=$!\n"
                                "while kill -0 $p && ! ls '" +
                                power + "'.*; do sleep 0.02; done >&2\nkill -INT $p; wait $p");
  EXPECT_EQ(outcome.exit_code, 130);
  EXPECT_THAT(outcome.err, HasSubstr("interrupted; nothing was written"));
  EXPECT_EQ(read_file(power), "old\n");
  EXPECT_EQ(folder.entries(), before);
}

TEST_F(Outputs, ShortIntervalsOfPowerAreRefused) {
  for (const char* interval : {"1ps", "9999 ps", "1 ns"}) {
    expect_refused({"--power-over-time", folder.path("p.csv"), "--power-interval", interval},
                   "is too short; give 10 ns or more");
  }
  EXPECT_EQ(run({"--power-over-time", folder.path("p.csv"), "--power-interval", "10 ns"}).exit_code, 0);
}

/// Every read of another row of one bank: tRC is 60 ns and more, 10 million intervals of 10 ns in 1.7
/// million.
TEST_F(Outputs, RowsOfPowerAreCounted) {
  std::string requests;
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t packed = static_cast<std::uint64_t>(i % 16'000) * 8 * 4096 << 1;
    for (int byte = 0; byte < 8; ++byte) {
      requests += static_cast<char>(packed >> (8 * byte) & 0xff);
    }
  }
  trace = folder.file("rows.bin", requests);
  const std::size_t before = folder.entries();
  expect_refused({"--power-over-time", folder.path("p.csv"), "--power-interval", "10 ns"},
                 "--power-interval: 10 ns makes more than 1048575 rows; give a longer interval");
  EXPECT_EQ(folder.entries(), before) << "nothing is left of it";
}

TEST_F(Outputs, NamedPipesAreRefusedAsInputs) {
  const std::string pipe = folder.path("pipe.yaml");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string with_trace = "--trace '" + trace + "'";
  const std::vector<std::string> readers = {"dram run --part lpddr4-3200 --trace PIPE",
                                            "dram run --part PIPE " + with_trace,
                                            "dram run --part lpddr4-3200 --mapping PIPE " + with_trace,
                                            "dram check --part lpddr4-3200 PIPE",
                                            "run PIPE",
                                            "replay PIPE",
                                            "validate PIPE"};
  for (const std::string& arguments : readers) {
    std::string named = arguments;
    named.replace(named.find("PIPE"), 4, "'" + pipe + "'");
    const Outcome outcome = shell("timeout 20 $K " + named);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr("is a named pipe")) << arguments;
  }
}

TEST_F(Outputs, StandardInputIsAnInput) {
  const Outcome from_pipe = shell("cat '" + trace + "' | $K dram run --part lpddr4-3200 --trace /dev/stdin");
  EXPECT_EQ(from_pipe.exit_code, 0) << from_pipe.err;
  EXPECT_THAT(from_pipe.out, HasSubstr("requests        3 (2 reads, 1 writes)"));
  const Outcome from_file = shell("$K dram run --part lpddr4-3200 --trace /dev/stdin <'" + trace + "'");
  EXPECT_EQ(from_file.exit_code, 0) << from_file.err;
}

}  // namespace
}  // namespace kvsim::testing
