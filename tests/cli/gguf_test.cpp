// SPDX-License-Identifier: Apache-2.0
// A GGUF file as the model: run, validate, explain, record and replay.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace kvsim::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kTiny = std::string(KVSIM_SOURCE_DIR) + "/tests/data/tiny/tiny-q8_0.gguf";

TEST(GgufCli, RunsAndReplaysWithoutTheFile) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(kTiny, folder.path("tiny.gguf"));
  const std::string scenario =
      folder.file("tiny.yaml", "device: rk3588\nmodel: tiny.gguf\nworkload: {prompt: 32, generate: 2}\n");
  EXPECT_THAT(kvsim({"validate", scenario}).out, HasSubstr("ok (tiny recall on rk3588)"));
  EXPECT_THAT(kvsim({"run", scenario}).out, AllOf(StartsWith("FITS"), HasSubstr("tiny recall Q8_0")));
  const Outcome json = kvsim({"run", scenario, "--format", "json"});
  EXPECT_THAT(json.out, AllOf(HasSubstr("tiny.gguf\""), HasSubstr("a1bd97023c70843c"))) << "path and hash";
  const std::string trace = folder.path("tiny.kvt");
  const Outcome run = kvsim({"run", scenario, "--format", "csv", "--record", trace});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  std::filesystem::remove(folder.path("tiny.gguf"));
  const Outcome replay = kvsim({"replay", trace, "--format", "csv"});
  EXPECT_EQ(replay.exit_code, 0) << replay.err;
  EXPECT_EQ(replay.out, run.out);
}

TEST(GgufCli, TellsWhatIsInAFileAndWhatIsWrongWithIt) {
  EXPECT_THAT(kvsim({"explain", kTiny}).out,
              AllOf(HasSubstr("GGUF version 3"), HasSubstr("kv_heads         2")));
  const TemporaryFolder folder;
  const Outcome damaged = kvsim({"explain", folder.file("bad.gguf", "GGUF")});
  EXPECT_EQ(damaged.exit_code, 2);
  EXPECT_EQ(damaged.out, "");
  EXPECT_THAT(damaged.err, HasSubstr("bad.gguf: byte 4: the file ends within the version"));
}

}  // namespace
}  // namespace kvsim::testing
