// SPDX-License-Identifier: Apache-2.0
#include "sim/metrics/session.h"

#include <gtest/gtest.h>

#include "configs/spec/resolve.h"

namespace kvsim::sim {
namespace {

using namespace kvsim::literals;

config::RunSpec spec_of(const std::vector<std::string>& set = {}) {
  config::Overrides overrides;
  for (const std::string& change : set) {
    overrides.emplace_back(change);
  }
  return config::load_scenario(KVSIM_SCENARIOS "/rk3588_llama8b.yaml", overrides).spec;
}

TEST(Session, BytesAreThoseOfTheTokensThatStay) {
  EXPECT_EQ(session_bytes(spec_of(), 1000), 128_KiB * 1000);
  EXPECT_EQ(session_bytes(spec_of({"engine.kv=q8_0"}), 1000), 68_KiB * 1000);
  EXPECT_EQ(session_bytes(spec_of({"engine.kv=f16+window=256+sinks=4"}), 100), 128_KiB * 100);
  EXPECT_LT(session_bytes(spec_of({"engine.kv=f16+window=256+sinks=4"}), 4000), 128_KiB * 1000);
  EXPECT_EQ(session_bytes(spec_of({"model=deepseek_v2_lite"}), 10), Bytes(576 * 2 * 27) * 10)
      << "latent attention keeps one row of 512 + 64 numbers";
}

/// 256 MiB at 262 MB/s read and 145 MB/s written (models/storage/README.md).
TEST(Session, SavesAndRestoresAtTheSpeedOfThePart) {
  const config::RunSpec spec = spec_of({"device.storage=emmc_foresee_sld64g"});
  EXPECT_NEAR(seconds(*restore_time(spec, 256_MiB)), 1.02, 0.05);
  EXPECT_NEAR(seconds(*save_time(spec, 256_MiB)), 1.85, 0.1);
  EXPECT_FALSE(save_time(spec, 100_GiB));
  EXPECT_FALSE(restore_time(spec, 100_GiB));
}

SessionPoint point(std::int64_t tokens, std::int64_t restore, std::optional<std::int64_t> compute) {
  SessionPoint p{.tokens = tokens, .restore = Picoseconds(restore)};
  if (compute) {
    p.compute = Picoseconds(*compute);
  }
  return p;
}

TEST(Session, BreakEvenLiesWhereTheLinesCross) {
  EXPECT_EQ(break_even({point(100, 30, 10), point(200, 30, 50)}), 150);
  EXPECT_EQ(break_even({point(100, 5, 10), point(200, 30, 50)}), 100) << "at the first already";
  EXPECT_EQ(break_even({point(100, 30, 10), point(200, 60, 50)}), std::nullopt);
  EXPECT_EQ(break_even({point(100, 5, 10), point(200, 60, 50), point(300, 60, 80)}), 234)
      << "not before it stays so";
  EXPECT_EQ(break_even({point(100, 30, 10), point(200, 30, std::nullopt), point(300, 30, 50)}), 200);
}

}  // namespace
}  // namespace kvsim::sim
