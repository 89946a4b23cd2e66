// SPDX-License-Identifier: Apache-2.0
#include "sim/compare/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvsim::sim {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;

VariantFigures variant(const std::string& name, double tokens_per_second, std::int64_t peak,
                       std::vector<TokenPart> parts = {}) {
  VariantFigures v;
  v.name = name;
  v.fits = true;
  v.ttft_ms = 1000;
  v.tokens_per_second = tokens_per_second;
  v.itl_p95_ms = 1000 / tokens_per_second;
  v.peak = Bytes(peak);
  v.parts = std::move(parts);
  return v;
}

VariantFigures misfit(const std::string& name) {
  VariantFigures v;
  v.name = name;
  v.message = "too large";
  v.peak = Bytes(1);
  return v;
}

TEST(Comparison, ReadsWhatARunSays) {
  const ordered_json run = ordered_json::parse(R"({
    "verdict": {"fits": true, "message": "ok"},
    "latency": {"ttft_ms": 12.5, "itl_ms": {"p50": 99, "p95": 101, "max": 120}},
    "throughput": {"decode": [{"depth": 0, "tokens_per_s": 11}], "decode_mean_tokens_per_s": 10},
    "breakdown": [{"part": "weights", "share": 0.75}, {"part": "refresh", "share": 0.25}],
    "dram": {"energy": {"mj_per_token": 3}}, "memory": {"peak_bytes": 4096},
    "fidelity": {"relative_ci": 0.01}})");
  const VariantFigures v = figures_of("a", run);
  EXPECT_TRUE(v.fits);
  EXPECT_EQ(v.ttft_ms, 12.5);
  EXPECT_EQ(v.itl_p95_ms, 101);
  EXPECT_EQ(v.peak, Bytes(4096));
  EXPECT_EQ(v.mj_per_token, 3);
  EXPECT_TRUE(v.storage.is_null());
  ASSERT_EQ(v.parts.size(), 2U);
  EXPECT_DOUBLE_EQ(v.parts[0].milliseconds, 75) << "three quarters of 100 ms";
  EXPECT_EQ(v.throughput.at("decode").at(0).at("tokens_per_s"), 11);
}

TEST(Comparison, ARunThatDoesNotFitHasNoSpeed) {
  const VariantFigures v = figures_of("a", ordered_json::parse(R"({
    "verdict": {"fits": false, "message": "out of memory"}, "latency": null, "throughput": null,
    "breakdown": null, "dram": null, "memory": {"peak_bytes": 4096}, "fidelity": null})"));
  EXPECT_FALSE(v.fits);
  EXPECT_FALSE(v.tokens_per_second);
  EXPECT_TRUE(v.parts.empty());
}

TEST(Comparison, MarksWhatNoOtherBeats) {
  std::vector<VariantFigures> variants = {variant("fast, large", 10, 200), variant("slow, small", 5, 100),
                                          variant("slow, large", 5, 200), misfit("misfit")};
  mark_pareto(variants);
  EXPECT_TRUE(variants[0].pareto);
  EXPECT_TRUE(variants[1].pareto);
  EXPECT_FALSE(variants[2].pareto);
  EXPECT_FALSE(variants[3].pareto) << "smallest of all, but it does not run";
}

TEST(Comparison, EqualsBeatNeither) {
  std::vector<VariantFigures> variants = {variant("a", 10, 200), variant("b", 10, 200)};
  mark_pareto(variants);
  EXPECT_TRUE(variants[0].pareto);
  EXPECT_TRUE(variants[1].pareto);
}

/// Energy and accuracy decide only where all that fit have them.
TEST(Comparison, CountsOnlyWhatAllHave) {
  std::vector<VariantFigures> variants = {variant("a", 10, 200), variant("b", 9, 200)};
  variants[1].quality = VariantQuality{.perplexity_change_percent = -1, .recall = {}};
  mark_pareto(variants);
  EXPECT_FALSE(variants[1].pareto);
  variants[0].quality = VariantQuality{.perplexity_change_percent = 2, .recall = {}};
  mark_pareto(variants);
  EXPECT_TRUE(variants[1].pareto);
}

TEST(Comparison, NamesWinnerMarginAndMechanism) {
  const std::vector<TokenPart> slow = {{"weights", 150}, {"kv_read", 30}, {"refresh", 20}};
  const std::vector<TokenPart> fast = {{"weights", 60}, {"kv_read", 25}, {"refresh", 15}};
  const VariantFigures a = variant("a", 5, 1, slow);
  const VariantFigures b = variant("b", 10, 1, fast);
  const Answer found = answer({a, b});
  EXPECT_EQ(found.winner, "b");
  EXPECT_EQ(found.against, "a");
  EXPECT_NEAR(*found.margin_percent, 100, 1e-9);
  EXPECT_EQ(found.mechanism, "weights");
  EXPECT_NEAR(*found.mechanism_ms, 90, 1e-9);
  EXPECT_THAT(found.sentence, HasSubstr("b is fastest: 10.00 tokens/s, 100.0 % more than a (5.00 tokens/s)"));
  EXPECT_THAT(found.sentence, HasSubstr("Of the 100.00 ms a token, reading weights is 90.00 ms."));
}

/// The answer comes from the figures: with two variants' inputs swapped it swaps.
TEST(Comparison, SwappedInputsSwapTheAnswer) {
  VariantFigures a = variant("a", 5, 1, {{"weights", 200}});
  VariantFigures b = variant("b", 10, 1, {{"weights", 100}});
  EXPECT_EQ(answer({a, b}).winner, "b");
  std::swap(a.name, b.name);
  const Answer swapped = answer({b, a});
  EXPECT_EQ(swapped.winner, "a");
  EXPECT_EQ(swapped.against, "b");
}

TEST(Comparison, TheFirstIsHeldAgainstTheRunnerUp) {
  const Answer found = answer({variant("a", 10, 1), variant("b", 5, 1), variant("c", 8, 1)});
  EXPECT_EQ(found.winner, "a");
  EXPECT_EQ(found.against, "c");
}

TEST(Comparison, WithinTheIntervalsTwoAreLevel) {
  VariantFigures a = variant("a", 10, 1);
  VariantFigures b = variant("b", 10.05, 1);
  a.relative_ci = b.relative_ci = 0.004;
  EXPECT_THAT(answer({a, b}).sentence, HasSubstr("level"));
  a.relative_ci = b.relative_ci = 0.001;
  EXPECT_THAT(answer({a, b}).sentence, HasSubstr("b is fastest"));
}

TEST(Comparison, SaysWhenOneOrNoneFits) {
  EXPECT_EQ(answer({misfit("a"), misfit("b")}).sentence, "None fits.");
  const Answer one = answer({misfit("a"), variant("b", 2, 1)});
  EXPECT_EQ(one.winner, "b");
  EXPECT_TRUE(one.against.empty());
  EXPECT_THAT(one.sentence, HasSubstr("Only b fits: 2.00 tokens/s"));
  const Answer three = answer({misfit("a"), variant("b", 2, 1), variant("c", 4, 1)});
  EXPECT_EQ(three.winner, "c");
  EXPECT_EQ(three.against, "b") << "the first does not fit";
}

}  // namespace
}  // namespace kvsim::sim
