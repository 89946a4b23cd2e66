// SPDX-License-Identifier: Apache-2.0
// What the READMEs of scenarios/lessons conclude about accuracy still holds, on few documents.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tests/validation/lesson_quality.h"

namespace kvsim::testing {
namespace {

using trace::KvQuality;

/// `count` documents of at least `tokens`, the shortest such.
QualityCase few(std::size_t tokens, std::size_t count) {
  QualityCase on = tiny_case();
  std::erase_if(on.documents, [&](const trace::TokenSequence& d) { return d.tokens.size() < tokens; });
  std::ranges::sort(on.documents, {}, [](const trace::TokenSequence& d) { return d.tokens.size(); });
  on.documents.resize(count);
  return on;
}

double change(const KvQuality& q, const KvQuality& reference) {
  return std::abs(q.perplexity / reference.perplexity - 1);
}

/// F1: "INT8 costs 0.5 % of perplexity": far less, and ranges per channel have less error than per token.
TEST(QualityLessons, F1Int8CostsNextToNothing) {
  const auto found =
      measure_specs(few(400, 4), {"f32", "int8:g32", "int8:channel", "int4:g32", "int4:channel"});
  EXPECT_LT(change(found[1], found[0]), 0.0005);
  EXPECT_LT(change(found[2], found[0]), 0.0005);
  EXPECT_LT(change(found[3], found[0]), 0.005);
  EXPECT_LT(found[2].attention_error.mean, 0.6 * found[1].attention_error.mean);
  EXPECT_LT(found[4].attention_error.mean, 0.6 * found[3].attention_error.mean);
}

/// F2: "the error accumulates": it is as large at the end as at the start.
TEST(QualityLessons, F2TheErrorDoesNotGrowWithPosition) {
  const KvQuality q = measure_specs(few(900, 2), {"int8:g32"}).front();
  const double early = q.error_by_position.at(128).mean;
  const double late = q.error_by_position.at(768).mean;
  EXPECT_NEAR(late / early, 1, 0.1);
}

/// F3: "global-range INT4 collapses": what a range per head costs is a fraction of it.
TEST(QualityLessons, F3OneRangeForAllIsWorse) {
  const auto found = measure_specs(few(400, 4), {"f32", "int4:range=4", "int4:range=8", "int4:head"});
  EXPECT_GT(change(found[1], found[0]), 0.02);
  EXPECT_GT(found[2].attention_error.mean, 1.4 * found[3].attention_error.mean);
}

/// F5 and F4: a window forgets what left it, ranking by attention or entropy does not.
TEST(QualityLessons, F5AWindowForgetsWhatRankingKeeps) {
  const auto found = measure_specs(few(900, 3), {"f32", "f16+window=512", "f16+h2o=512", "f16+entropy=512"});
  EXPECT_GT(recall_between(found[0], 512, 1024), 0.9);
  EXPECT_GT(recall_between(found[1], 0, 384), 0.9);
  EXPECT_LT(recall_between(found[1], 640, 1024), 0.15);
  EXPECT_GT(recall_between(found[2], 512, 1024), 0.9);
  EXPECT_GT(recall_between(found[3], 512, 1024), 0.9);
  EXPECT_GT(change(found[1], found[0]), 0.02);
  EXPECT_LT(change(found[2], found[0]), 0.01);
}

/// F6: no wrong mapping of query heads to KV heads gives the right one's figures.
TEST(QualityLessons, F6EveryWrongHeadMappingShows) {
  QualityCase on = few(200, 2);
  const double right = measure_specs(on, {"f32"}).front().perplexity;
  map_heads(on.weights, {0, 0, 1, 1});
  EXPECT_DOUBLE_EQ(measure_specs(on, {"f32"}).front().perplexity, right);
  for (const std::vector<std::size_t>& wrong :
       {std::vector<std::size_t>{1, 1, 0, 0}, {0, 1, 0, 1}, {1, 0, 1, 0}, {0, 1, 1, 0}, {1, 0, 0, 1}}) {
    QualityCase mapped = few(200, 2);
    map_heads(mapped.weights, wrong);
    EXPECT_GT(measure_specs(mapped, {"f32"}).front().perplexity, 3 * right);
  }
}

/// F8: attention's mass peaks next to the token and has a long tail.
TEST(QualityLessons, F8TheMassPeaksNearAndTailsFar) {
  const KvQuality q = measure_specs(few(900, 2), {"f32"}).front();
  const std::vector<double>& share = q.profile->by_distance;  // 0, 1, 2, 3-4, 5-8, ...
  EXPECT_GT(share[0] + share[1] + share[2], 0.3);
  EXPECT_GT(std::max(share[1], share[2]), share[0]);
  EXPECT_GT(share[8] + share[9] + share[10], 0.1) << "65 to 512 back";
}

}  // namespace
}  // namespace kvsim::testing
