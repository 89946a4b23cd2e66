// SPDX-License-Identifier: Apache-2.0
// `kvsim attention`.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/process.h"

namespace kvsim::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// Of 256 tokens of Llama 3 8B on RK3588: 32 query heads, 8 KV heads of 128, F16.
Outcome attention(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"attention", "--tokens", "256"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return kvsim(arguments);
}

json report(std::vector<std::string> more) {
  more.insert(more.end(), {"--format", "json"});
  const Outcome outcome = attention(more);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return json::parse(outcome.out);
}

constexpr std::int64_t kQuery = 256, kKeyAndValue = 512;  // bytes of a head and token

/// Query tiles of 64 see 64, 128, 192 and 256 tokens.
constexpr std::int64_t kSeen = 64 + 128 + 192 + 256;

TEST(AttentionCli, MovesTheBytesOfTheClosedForm) {
  const json j = report({"--tile", "64x64", "--sram", "1MiB"});
  const std::int64_t read = 32 * 256 * kQuery + 8 * kSeen * kKeyAndValue;
  EXPECT_EQ(j["dram_bytes"]["read"], read);
  EXPECT_EQ(j["dram_bytes"]["written"], 32 * 256 * kQuery);
  EXPECT_EQ(j["planned_bytes"], j["dram_bytes"]);
  EXPECT_EQ(j["tiles_spilled"], 0);
  EXPECT_LE(j["sram"]["most_bytes"].get<std::int64_t>(), 1 << 20);
  EXPECT_GE(j["time_ms"].get<double>(),
            std::max(j["bound_ms"]["macs"].get<double>(), j["bound_ms"]["dram_peak"].get<double>()));
}

TEST(AttentionCli, ResidentKeysAreReadOncePerCoreAndHead) {
  const json j = report({"--tile", "64x64", "--sram", "1MiB", "--cores", "1", "--resident", "128"});
  const std::int64_t later = kSeen - (64 + 3 * 128);  // tokens behind the first 128, by query tile
  EXPECT_EQ(j["dram_bytes"]["read"], 32 * 256 * kQuery + 8 * (128 + later) * kKeyAndValue);
  const json all = report({"--tile", "64x64", "--sram", "1MiB", "--cores", "1", "--resident", "256"});
  EXPECT_EQ(all["dram_bytes"]["read"], 32 * 256 * kQuery + 8 * 256 * kKeyAndValue);
}

TEST(AttentionCli, NaiveHandsScoresOverThroughDram) {
  const json j = report({"--naive"});
  EXPECT_EQ(j["method"], "naive");
  EXPECT_EQ(j["dram_bytes"]["written"], 32 * 256 * kQuery + 2 * 32 * 256 * 256 * 2) << "O, S and P";
}

TEST(AttentionCli, SpillsOrRefusesATileThatDoesNotFit) {
  const Outcome refused = attention({"--tile", "128x64", "--sram", "256KiB"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("128 queries x 64 keys"), HasSubstr("spill")));
  const json j = report({"--tile", "128x64", "--sram", "256KiB", "--oversize", "spill"});
  EXPECT_GT(j["tiles_spilled"], 0);
  EXPECT_GT(j["spill_bytes"], 0);
}

TEST(AttentionCli, TextHasTheSameFigures) {
  const Outcome outcome = attention({"--tile", "64x64", "--sram", "1MiB"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("256 queries of 256 tokens"), HasSubstr("64 queries x 64 keys"),
                                 HasSubstr("4.7 MB read, 2.1 MB written")));
}

TEST(AttentionCli, RefusesBadInput) {
  struct Bad {
    std::vector<std::string> arguments;
    const char* says;
  };
  for (const Bad& bad :
       {Bad{{"--device", "pi5"}, "rk3588"},
        Bad{{"--device", "nowhere"}, "nowhere"},
        Bad{{"--model", "nobody"}, "nobody"},
        Bad{{"--tokens", "0"}, "context"},
        Bad{{"--tokens", "-1"}, "--tokens"},
        Bad{{"--tokens", "99999999999999999999"}, "--tokens"},
        Bad{{"--queries", "257"}, "queries"},
        Bad{{"--sram", "12"}, "--sram"},
        Bad{{"--sram", "1KiB"}, "more than the SRAM"},
        Bad{{"--cores", "4"}, "--cores"},
        Bad{{"--tile", "64"}, "queries x keys"},
        Bad{{"--tile", "0x64"}, "tile queries"},
        Bad{{"--tile", "64x"}, "--tile"},
        Bad{{"--oversize", "cut"}, "refuse or spill"},
        Bad{{"--resident", "257"}, "resident keys"},
        Bad{{"--resident", "64", "--naive"}, "naive"},
        Bad{{"--resident", "256", "--tile", "64x64", "--sram", "256KiB"}, "more than the SRAM"},
        Bad{{"--kv", "q9"}, "q9"},
        Bad{{"--macs", "int4"}, "fp16 or int8"},
        Bad{{"--fidelity", "auto"}, "train or exact"},
        Bad{{"--format", "csv"}, "text or json"},
        Bad{{"--unknown"}, "unknown"}}) {
    std::vector<std::string> arguments = {"attention"};
    if (bad.arguments[0] != "--tokens") {
      arguments.insert(arguments.end(), {"--tokens", "256"});
    }
    arguments.insert(arguments.end(), bad.arguments.begin(), bad.arguments.end());
    const Outcome outcome = kvsim(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << bad.says << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(bad.says));
    EXPECT_EQ(outcome.out, "") << bad.says;
  }
}

}  // namespace
}  // namespace kvsim::testing
