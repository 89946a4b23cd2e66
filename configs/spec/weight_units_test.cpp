// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/weight_units.h"

#include <gtest/gtest.h>

#include "configs/spec/resolve.h"

namespace kvsim::config {
namespace {

using namespace kvsim::literals;

std::vector<TensorInfo> tensors_of(const LlmSpec& model) {
  return tensors(model, load_weight_format("Q4_K_M"));
}

Bytes all_bytes(const std::vector<WeightUnit>& units) {
  Bytes bytes;
  for (const WeightUnit& unit : units) {
    bytes += unit_bytes(unit);
  }
  return bytes;
}

/// The file is the embedding and the units, one behind the other.
TEST(WeightUnits, LayersAndOutputFollowTheEmbedding) {
  const LlmSpec model = load_llm("tinyllama_1_1b");
  const std::vector<TensorInfo> all = tensors_of(model);
  const std::vector<WeightUnit> units = weight_units(model, all);
  ASSERT_EQ(units.size(), static_cast<std::size_t>(model.layers) + 1);
  Bytes end = all.front().bytes;
  for (const WeightUnit& unit : units) {
    ASSERT_EQ(unit.size(), 1U);
    EXPECT_EQ(unit[0].first, end);
    end += unit[0].bytes;
  }
  EXPECT_EQ(end, weight_bytes(all));
}

/// A tied embedding is the output matrix, and lies apart from its norm.
TEST(WeightUnits, ATiedEmbeddingIsOfTheOutput) {
  const LlmSpec model = load_llm("qwen2_5_0_5b");
  ASSERT_TRUE(model.tied_embeddings);
  const std::vector<TensorInfo> all = tensors_of(model);
  const std::vector<WeightUnit> units = weight_units(model, all);
  ASSERT_EQ(units.back().size(), 2U);
  EXPECT_EQ(units.back()[0], (FileRange{.first = 0_B, .bytes = all.front().bytes}));
  EXPECT_EQ(all_bytes(units), weight_bytes(all));
}

TEST(WeightUnits, TheFirstBytesAreTakenOffInOrder) {
  const std::vector<WeightUnit> units = {{{.first = 100_B, .bytes = 50_B}, {.first = 1000_B, .bytes = 50_B}},
                                         {{.first = 2000_B, .bytes = 100_B}}};
  EXPECT_EQ(without_first(units, 0_B), units);
  const std::vector<WeightUnit> some = without_first(units, 70_B);
  EXPECT_EQ(some[0], (WeightUnit{{.first = 1020_B, .bytes = 30_B}}));
  EXPECT_EQ(some[1], units[1]);
  const std::vector<WeightUnit> more = without_first(units, 150_B);
  EXPECT_TRUE(more[0].empty());
  EXPECT_EQ(more[1], (WeightUnit{{.first = 2050_B, .bytes = 50_B}}));
  for (const Bytes bytes : {0_B, 1_B, 99_B, 100_B, 199_B, 200_B, 1000_B}) {
    EXPECT_EQ(all_bytes(without_first(units, bytes)), 200_B - std::min(bytes, 200_B));
  }
}

TEST(WeightUnits, DirectReadsAreWholeBlocks) {
  EXPECT_EQ(in_blocks({.first = 4095_B, .bytes = 2_B}), (FileRange{.first = 0_B, .bytes = 8192_B}));
  EXPECT_EQ(in_blocks({.first = 4096_B, .bytes = 4096_B}), (FileRange{.first = 4096_B, .bytes = 4096_B}));
  EXPECT_EQ(read_bytes({{.first = 1_B, .bytes = 1_B}, {.first = 8192_B, .bytes = 4097_B}}), 12288_B);
}

}  // namespace
}  // namespace kvsim::config
