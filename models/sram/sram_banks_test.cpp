// SPDX-License-Identifier: Apache-2.0
// Do bank conflicts cost what a hand counts?
#include "models/sram/sram_banks.h"

#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "configs/error/error.h"

namespace kvsim::model {
namespace {

using namespace literals;
using trace::Access;

config::SramSpec sram(std::int64_t banks = 8, std::int64_t ports = 1, Bytes word = 4_B,
                      Bytes interleave = 4_B) {
  return {.size = 64_KiB, .banks = banks, .ports = ports, .word = word, .interleave = interleave};
}

struct Result {
  SramCycle cycles = 0;
  SramCounters counters;
};

Result play(const config::SramSpec& spec, const std::vector<SramRun>& runs) {
  SramBanks banks(spec);
  for (const SramRun& run : runs) {
    banks.begin(run);
  }
  Result result;
  while (!banks.idle()) {
    banks.run_to(banks.earliest_end());
    for (; !banks.ended().empty(); banks.ended().pop()) {
      result.cycles = banks.ended().front().at;
    }
  }
  result.counters = banks.counters();
  return result;
}

struct Pattern {
  const char* name;
  config::SramSpec spec;
  SramRun run;
  SramCycle cycles;
  std::int64_t conflict_cycles;
  std::int64_t broadcasts = 0;
};

/// 8 banks of 4 B words unless said; 10 vectors of 8 lanes. Cycles of a vector = words in its fullest bank /
/// ports.
const std::vector<Pattern> kPatterns = {
    {"stride 1: every bank once", sram(), {0, 10, 32, 8, 4}, 10, 0},
    {"stride 1 from an odd word", sram(), {12, 10, 32, 8, 4}, 10, 0},
    {"stride 2: banks 0 2 4 6, twice each", sram(), {0, 10, 32, 8, 8}, 20, 10},
    {"stride 3: odd, every bank once", sram(), {0, 10, 32, 8, 12}, 10, 0},
    {"stride 4: banks 0 4, four times each", sram(), {0, 10, 32, 8, 16}, 40, 30},
    {"stride 6: banks 0 6 4 2, twice each", sram(), {0, 10, 32, 8, 24}, 20, 10},
    {"stride 8 = banks: one bank", sram(), {0, 10, 4, 8, 32}, 80, 70},
    {"stride 9: padded by a word", sram(), {0, 10, 4, 8, 36}, 10, 0},
    {"stride 16: one bank", sram(), {0, 10, 4, 8, 64}, 80, 70},
    {"stride -1", sram(), {1000, 10, 32, 8, -4}, 10, 0},
    {"broadcast: one word for all lanes", sram(), {0, 10, 4, 8, 0}, 10, 0, 70},
    {"half words: two lanes a word", sram(), {0, 10, 16, 8, 2}, 10, 0, 40},
    {"all write one word", sram(), {0, 10, 4, 8, 0, Access::write}, 80, 70},
    {"stride = banks, two ports", sram(8, 2), {0, 10, 4, 8, 32}, 40, 30},
    {"stride 2, two ports", sram(8, 2), {0, 10, 32, 8, 8}, 10, 0},
    {"one bank", sram(1), {0, 10, 32, 8, 4}, 80, 70},
    {"12 banks, stride 8: banks 0 8 4, three and two times", sram(12), {0, 10, 4, 8, 32}, 30, 20},
    {"not interleaved: 8 words of one bank", sram(8, 1, 4_B, 8_KiB), {0, 10, 32, 8, 4}, 80, 70},
    {"not interleaved: one word of each bank", sram(8, 1, 4_B, 8_KiB), {0, 10, 4, 8, 8192}, 10, 0},
    {"pairs of words to a bank: banks 0 0 1 1 2 2 3 3", sram(8, 1, 4_B, 8_B), {0, 10, 32, 8, 4}, 20, 10},
    {"one lane never conflicts", sram(), {0, 10, 32, 1, 0}, 10, 0}};

TEST(SramBanks, PatternsCostWhatAHandCounts) {
  for (const Pattern& p : kPatterns) {
    const Result r = play(p.spec, {p.run});
    EXPECT_EQ(r.cycles, p.cycles) << p.name;
    EXPECT_EQ(r.counters.conflict_cycles, p.conflict_cycles) << p.name;
    EXPECT_EQ(r.counters.conflicts, p.conflict_cycles == 0 ? 0 : 10) << p.name;
    EXPECT_EQ(r.counters.broadcasts, p.broadcasts) << p.name;
    EXPECT_EQ(r.counters.words, p.run.vectors * p.run.lanes) << p.name;
  }
}

TEST(SramBanks, TwoRunsShareBanksAndPorts) {
  const SramRun all = {0, 10, 32, 8, 4};
  EXPECT_EQ(play(sram(), {all, all}).cycles, 20);
  EXPECT_EQ(play(sram(8, 2), {all, all}).cycles, 10);
  const SramRun low = {0, 10, 0, 4, 4};
  const SramRun high = {16, 10, 0, 4, 4};
  EXPECT_EQ(play(sram(), {low, high}).cycles, 10) << "banks 0 to 3 and 4 to 7";
  // One bank, two runs of one word each: they take turns and both wait every other cycle.
  const Result turns = play(sram(), {{0, 10, 0, 1, 0}, {0, 10, 0, 1, 0}});
  EXPECT_EQ(turns.cycles, 20);
  EXPECT_NEAR(static_cast<double>(turns.counters.conflict_cycles), 20, 2);
}

/// Random strides: no vector takes less than its fullest bank asks for, nor more if it is alone.
TEST(SramBanks, AloneAVectorTakesAsLongAsItsFullestBank) {
  std::mt19937_64 engine(7);
  const auto upto = [&](std::int64_t most) {
    return static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(most));
  };
  for (int i = 0; i < 2000; ++i) {
    const config::SramSpec spec = sram(1 + upto(16), 1 + upto(2), 4_B, Bytes(4 << upto(3)));
    const SramRun run = {upto(4096),   1 + upto(5), upto(512),
                         1 + upto(16), upto(200),   upto(2) == 0 ? Access::read : Access::write};
    SramCycle expected = 0;
    for (std::int64_t v = 0; v < run.vectors; ++v) {
      std::map<std::int64_t, std::vector<std::int64_t>> words;
      std::int64_t most = 0;
      for (std::int64_t l = 0; l < run.lanes; ++l) {
        const std::int64_t word = (run.address + v * run.vector_stride + l * run.lane_stride) / 4;
        auto& bank = words[word * 4 / spec.interleave.count() % spec.banks];
        if (run.access == Access::write || std::find(bank.begin(), bank.end(), word) == bank.end()) {
          bank.push_back(word);
        }
        most = std::max(most, static_cast<std::int64_t>(bank.size()));
      }
      expected += (most + spec.ports - 1) / spec.ports;
    }
    EXPECT_EQ(play(spec, {run}).cycles, expected);
  }
}

TEST(SramBanks, NothingLiesOutside) {
  SramBanks banks(sram());
  EXPECT_THROW(banks.begin({(64 << 10) - 4, 2, 4, 1, 0}), InternalError);
  EXPECT_THROW(banks.begin({0, 1, 0, 8, -4}), InternalError);
  EXPECT_EQ(banks.begin({(64 << 10) - 4, 1, 0, 1, 0}), 0);
}

}  // namespace
}  // namespace kvsim::model
