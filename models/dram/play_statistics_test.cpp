// SPDX-License-Identifier: Apache-2.0
#include "models/dram/play_statistics.h"

#include <cmath>

#include <gtest/gtest.h>

#include "configs/error/test_support.h"

namespace kvsim::model {
namespace {

TEST(Histogram, QuantilesAreWithinAThirtySecond) {
  Histogram histogram;
  for (std::int64_t value = 1; value <= 100'000; ++value) {
    histogram.add(value);
  }
  for (const double share : {0.001, 0.1, 0.5, 0.95, 0.999}) {
    const double exact = share * 100'000;
    EXPECT_GE(static_cast<double>(histogram.quantile(share)), exact);
    EXPECT_LE(static_cast<double>(histogram.quantile(share)), exact * (1 + 1.0 / 32) + 1);
  }
  EXPECT_EQ(histogram.quantile(1), 100'000);
  EXPECT_EQ(histogram.max(), 100'000);
}

TEST(Histogram, SmallValuesAreExact) {
  for (std::int64_t value = 0; value < 64; ++value) {
    Histogram histogram;
    histogram.add(value);
    histogram.add(1000);
    EXPECT_EQ(histogram.quantile(0.5), value);
  }
}

TEST(Histogram, OctavesCountEverything) {
  Random random(3);
  Histogram histogram;
  for (int i = 0; i < 10'000; ++i) {
    histogram.add(static_cast<std::int64_t>(random.below(std::uint64_t{1} << random.below(40))));
  }
  std::int64_t count = 0;
  for (const Histogram::Bucket& bucket : histogram.octaves()) {
    EXPECT_LT(bucket.from, bucket.to);
    count += bucket.count;
  }
  EXPECT_EQ(count, 10'000);
}

TEST(Histogram, OfNothing) {
  const Histogram histogram;
  EXPECT_EQ(histogram.quantile(0.5), 0);
  EXPECT_TRUE(histogram.octaves().empty());
}

}  // namespace
}  // namespace kvsim::model
