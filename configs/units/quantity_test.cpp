// SPDX-License-Identifier: Apache-2.0
#include "configs/units/quantity.h"

#include <gtest/gtest.h>

#include "configs/units/index.h"

namespace kvsim {
namespace {

using namespace kvsim::literals;

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Comparable = requires(A a, B b) {
  a < b;
};

// What must not compile.
static_assert(Addable<Bytes, Bytes>);
static_assert(!Addable<Bytes, Picoseconds>);
static_assert(!Addable<Bytes, int>);
static_assert(!Comparable<Watts, Joules>);
static_assert(!std::is_convertible_v<int, Bytes>);
static_assert(!std::is_convertible_v<Bytes, std::int64_t>);
static_assert(!std::is_convertible_v<Channel, Rank>);
static_assert(!Comparable<Bank, Row>);

TEST(Quantity, BytesOverRateIsTime) {
  EXPECT_EQ(64_B / 64_GBps, 1000_ps);
  EXPECT_EQ(1_B / 3_GBps, Picoseconds(333));
  EXPECT_EQ(Bytes(2) / 3_GBps, Picoseconds(667));
}

TEST(Quantity, BytesOverTimeIsRate) {
  EXPECT_DOUBLE_EQ((1_GiB / 1_ms).count(), 1073741824e3);
}

TEST(Quantity, PeriodIsRoundedToThePicosecond) {
  EXPECT_EQ(period(2112_MHz), Picoseconds(473));
  EXPECT_EQ(period(600_MHz), Picoseconds(1667));
}

TEST(Quantity, BinaryAndDecimalUnitsDiffer) {
  EXPECT_EQ((1_GiB).count(), 1073741824);
  EXPECT_EQ((1_KiB).count(), 1024);
}

}  // namespace
}  // namespace kvsim
