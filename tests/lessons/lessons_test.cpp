// SPDX-License-Identifier: Apache-2.0
// What the READMEs of scenarios/lessons conclude still holds: the same questions at few points and with one
// layer.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "configs/spec/resolve.h"
#include "tests/validation/board.h"
#include "tests/validation/lesson_run.h"

namespace kvsim::testing {
namespace {

const std::vector<std::string> kCut = {"model.layers=1", "model.vocabulary=4096"};

LessonFigures at(int depth, const std::string& layout, Map map = Map::rk3588, int streams = 4) {
  return measure({.scenario = "c2_bank_conflicts/attention_alone.yaml",
                  .depth = depth,
                  .layout = layout,
                  .map = map,
                  .streams = streams,
                  .changes = kCut});
}

/// A10: "without a KV cache, 10 tokens cost 55 K/V computations, N tokens cost N(N+1)/2; with it N".
TEST(Lessons, A10WithoutACacheTheCostIsSquare) {
  const auto figures = [](int tokens, bool cached) {
    return measure_cache({.tokens = tokens, .cached = cached, .changes = kCut});
  };
  for (const int tokens : {10, 20}) {
    EXPECT_EQ(figures(tokens, false).computed, tokens * (tokens + 1) / 2);
    EXPECT_EQ(figures(tokens, true).computed, tokens);
  }
  EXPECT_GT(figures(40, false).last, 1.5 * figures(40, true).last);
}

/// C2: "conflicts rise from 12 to 67 % past 1024 tokens and bandwidth falls to 9.3 of 25.6 GB/s": neither
/// does.
TEST(Lessons, C2ConflictsAndBandwidthDoNotDependOnDepth) {
  for (const char* layout : {"token_major", "head_major", "paged"}) {
    const Traffic shallow = at(512, layout).attention;
    const Traffic deep = at(4096, layout).attention;
    EXPECT_LT(deep.conflict, 0.12) << layout;
    EXPECT_NEAR(deep.conflict, shallow.conflict, 0.02) << layout;
    EXPECT_NEAR(deep.gigabytes_per_second / shallow.gigabytes_per_second, 1.03, 0.07) << layout;
  }
}

/// ... the layout decides, since a prefetcher follows a head's run and not its rows far apart.
TEST(Lessons, C2TheLayoutDecidesTheBandwidthOfAttention) {
  const double by_token = at(2048, "token_major").attention.gigabytes_per_second;
  EXPECT_GT(at(2048, "head_major").attention.gigabytes_per_second, 2.5 * by_token);
  EXPECT_GT(at(2048, "paged").attention.gigabytes_per_second, 2.5 * by_token);
}

/// C3: "bandwidth is 1/(1 + 0.0015 n)", 0.14 at 4096 against 0.57 at 512: attention's does not fall.
TEST(Lessons, C3NoSuchFactor) {
  for (const char* layout : {"token_major", "head_major"}) {
    const double factor =
        at(4096, layout).attention.gigabytes_per_second / at(512, layout).attention.gigabytes_per_second;
    EXPECT_GT(factor, 0.9) << layout;
    EXPECT_LT(factor, 1.2) << layout;
  }
}

/// C4: without bank interleaving sequential reads lose bandwidth as soon as several streams share banks.
TEST(Lessons, C4SeveralStreamsNeedInterleavedBanks) {
  const Traffic without = at(2048, "head_major", Map::bank_row_column).attention;
  const Traffic with = at(2048, "head_major", Map::row_bank_column).attention;
  EXPECT_GT(without.conflict, 2 * with.conflict);
  EXPECT_LT(without.gigabytes_per_second, 0.75 * with.gigabytes_per_second);
  const Traffic hashed = at(2048, "head_major", Map::hashed).attention;
  EXPECT_NEAR(hashed.gigabytes_per_second / with.gigabytes_per_second, 1, 0.05) << "a hash adds nothing here";
  const double alone = at(2048, "head_major", Map::bank_row_column, 1).attention.gigabytes_per_second;
  EXPECT_NEAR(alone / at(2048, "head_major", Map::row_bank_column, 1).attention.gigabytes_per_second, 1, 0.05)
      << "one stream does not notice";
}

/// Lines read for each of K's and V's vectors; 4097 tokens are too many for the last-level cache.
double lines_per_vector(int head_dim, const std::string& layout, int alignment) {
  LessonPoint point{.scenario = "c6_unaligned_rows/heads_of_88.yaml", .depth = 4096, .layout = layout};
  point.changes = {"model.layers=1", "model.head_dim=" + std::to_string(head_dim),
                   "engine.kv_row_alignment=" + std::to_string(alignment) + " B"};
  return measure(point).attention.lines / (2.0 * 8 * 4097);
}

/// C6: rows of 176 B straddle lines and padding saves the straddled ones, but only where heads lie apart;
/// rows of 160 B touch no more lines unpadded.
TEST(Lessons, C6PaddingPaysWhereRowsStraddleAndLieApart) {
  EXPECT_NEAR(lines_per_vector(88, "token_major", 64), 3, 0.1);
  EXPECT_NEAR(lines_per_vector(88, "token_major", 1), 3.5, 0.1);
  EXPECT_NEAR(lines_per_vector(80, "token_major", 1), lines_per_vector(80, "token_major", 64), 0.1);
  EXPECT_NEAR(lines_per_vector(88, "head_major", 1), 2.75, 0.1);
}

/// Raspberry Pi 5: two readers get more than one, four less than two; the measured fall is deeper.
TEST(Lessons, RaspberryPi5ReadersSaturateAndFall) {
  const config::DeviceSpec device = config::load_device("raspberry_pi_5_no_numa");
  const auto read = [&](int readers) { return load_bandwidth(device, {.readers = readers}).all.count(); };
  const double two = read(2);
  EXPECT_GT(two, 1.2 * read(1));
  EXPECT_LT(read(4), two);
}

/// A8 and C5: DRAM sees four times the score matrix if attention is naive, and none of it in tiles, whose
/// traffic falls with the SRAM.
TEST(Lessons, A8AndC5TilesKeepTheScoresOutOfDram) {
  const double matrices = 32.0 * 512 * 512 * 2;
  const TileFigures naive = measure_tiles({.tokens = 512, .sram = "256KiB", .naive = true});
  const TileFigures small = measure_tiles({.tokens = 512, .sram = "256KiB"});
  const TileFigures large = measure_tiles({.tokens = 512, .sram = "2MiB"});
  const double q = 512.0 * 32 * 256;
  EXPECT_DOUBLE_EQ(naive.written, 2 * matrices + q);
  EXPECT_GT(naive.read, 2 * matrices + q);
  EXPECT_DOUBLE_EQ(small.written, q);
  EXPECT_LT(large.read, small.read);
  EXPECT_GE(large.read, q + 2 * 512.0 * 8 * 256);
  EXPECT_LT(small.milliseconds, naive.milliseconds);
  EXPECT_LE(small.most, 256 << 10);
}

/// C7: what is kept in SRAM is not read again, which helps a prompt's many query tiles and not a single
/// query; where SRAM is small, a larger tile is the better use of it.
TEST(Lessons, C7ResidentKeysSaveTrafficOnlyWhereTheyAreUsedAgain) {
  const auto traffic = [](const std::string& sram, std::vector<std::string> options, int tokens = 512) {
    const TileFigures f = measure_tiles({.tokens = tokens, .sram = sram, .options = std::move(options)});
    return f.read + f.written;
  };
  const double without = traffic("2MiB", {"--tile", "64x64"});
  const double with = traffic("2MiB", {"--tile", "64x64", "--resident", "256"});
  EXPECT_LT(with, 0.8 * without);
  EXPECT_GT(with, 2 * 512.0 * 32 * 256 + 2 * 512.0 * 8 * 256) << "Q, O, K and V at least once";
  const std::vector<std::string> decode = {"--tile", "1x64", "--queries", "1"};
  std::vector<std::string> resident = decode;
  resident.insert(resident.end(), {"--resident", "256"});
  EXPECT_DOUBLE_EQ(traffic("2MiB", decode), traffic("2MiB", resident));
  EXPECT_LT(traffic("384KiB", {}, 2048), traffic("384KiB", {"--tile", "32x32", "--resident", "256"}, 2048));
}

}  // namespace
}  // namespace kvsim::testing
