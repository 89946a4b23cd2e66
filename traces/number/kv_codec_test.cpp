// SPDX-License-Identifier: Apache-2.0
#include "traces/number/kv_codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "configs/error/error.h"
#include "traces/number/half.h"
#include "traces/record/random_records.h"

namespace kvsim::trace {
namespace {

using config::KvFormat;
using config::KvRange;
using config::parse_kv_format;
using Floats = std::vector<float>;
using Coded = std::vector<std::byte>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Coded encoded(const KvFormat& format, const Floats& values) {
  Coded bytes(static_cast<std::size_t>(
      config::kv_vector_bytes(format, static_cast<std::int64_t>(values.size())).count()));
  encode(format, values, bytes);
  return bytes;
}
Coded encoded(const char* format, const Floats& values) {
  return encoded(parse_kv_format(format), values);
}

Floats decoded(const KvFormat& format, const Coded& bytes, std::size_t values) {
  Floats result(values);
  decode(format, bytes, result);
  return result;
}

Floats through(const KvFormat& format, const Floats& values) {
  return decoded(format, encoded(format, values), values.size());
}
Floats through(const char* format, const Floats& values) {
  return through(parse_kv_format(format), values);
}

float half_at(const Coded& bytes, std::size_t index) {
  Half half;
  std::memcpy(&half.bits, bytes.data() + index, sizeof half.bits);
  return to_float(half);
}

Floats random_values(Rng& rng, std::size_t count, int exponent, float offset = 0) {
  Floats values(count);
  for (float& value : values) {
    value = std::ldexp(rng.real() + offset, exponent);
  }
  return values;
}

std::vector<int> bytes_of(const Coded& coded) {
  std::vector<int> bytes;
  std::ranges::transform(coded, std::back_inserter(bytes),
                         [](std::byte b) { return std::to_integer<int>(b); });
  return bytes;
}

TEST(KvCodec, FloatsAreStoredInOrder) {
  EXPECT_EQ(bytes_of(encoded("f32", {1, -2})), (std::vector<int>{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}));
  EXPECT_EQ(bytes_of(encoded("f16", {1, -2})), (std::vector<int>{0, 0x3c, 0, 0xc0}));
  EXPECT_EQ(bytes_of(encoded("bf16", {1, -2})), (std::vector<int>{0x80, 0x3f, 0, 0xc0}));
  EXPECT_EQ(bytes_of(encoded("fp8_e4m3", {1, -2})), (std::vector<int>{0x38, 0xc0}));
  EXPECT_EQ(bytes_of(encoded("fp8_e5m2", {1, -2})), (std::vector<int>{0x3c, 0xc0}));
}

TEST(KvCodec, IntegersByHand) {
  EXPECT_EQ(bytes_of(encoded("int8:g4", {127, -127, 63.4F, -0.6F})),
            (std::vector<int>{0, 0x3c, 0x7f, 0x81, 0x3f, 0xff}));
  EXPECT_EQ(bytes_of(encoded("int4:g4", {7, -7, 3.4F, 0})),
            (std::vector<int>{0, 0x3c, 15 | 11 << 4, 1 | 8 << 4}));
  EXPECT_EQ(bytes_of(encoded("int4:g4:asym", {10, 25, 12, 13})),  // scale 1, minimum 10 = 0x4900
            (std::vector<int>{0, 0x3c, 0, 0x49, 0 | 2 << 4, 15 | 3 << 4}));
  EXPECT_EQ(bytes_of(encoded("int8:g2:asym", {-1, 254})), (std::vector<int>{0, 0x3c, 0, 0xbc, 0, 255}));
  EXPECT_EQ(bytes_of(encoded("int8:g2", {0, 0})), (std::vector<int>{0, 0, 0, 0}));
  EXPECT_EQ(bytes_of(encoded("int8:g2", {127, 1})), bytes_of(encoded("int8:head", {127, 1})));
  EXPECT_EQ(through("int8:g2", {127, 1, 12.7F, 0})[3], 0) << "each group has its scale";
}

/// One scale for all: small values vanish, large ones are clipped.
TEST(KvCodec, FixedRangeByHand) {
  EXPECT_EQ(bytes_of(encoded("int4:range=7", {7, -7, 1, 20})), (std::vector<int>{15 | 9 << 4, 1 | 15 << 4}));
  EXPECT_EQ(through("int4:range=7", {0.4F, -0.6F, 100, -100}), (Floats{0, -1, 7, -7}));
  EXPECT_EQ(through("int8:range=127", {0.4F, -0.6F, 100, -1000}), (Floats{0, -1, 100, -127}));
}

TEST(KvCodec, ChannelsByHand) {
  const KvFormat format = parse_kv_format("int4:g2:channel");
  const Floats values{7, 70, /* next token */ -3, 50};  // scales 1 and 10, which is 0x4900
  Coded bytes(static_cast<std::size_t>(config::kv_group_bytes(format, 2).count()));
  encode_channels(format, values, bytes);
  EXPECT_EQ(bytes_of(bytes), (std::vector<int>{0, 0x3c, 0, 0x49, 15 | 15 << 4, 5 | 13 << 4}));
  Floats back(4);
  decode_channels(format, bytes, back);
  EXPECT_EQ(back, values);
}

/// No value of a group is off by more than half its scale, whatever its magnitude.
TEST(KvCodec, IntegersAreWithinHalfAScale) {
  Rng rng(11);
  for (int round = 0; round < 20'000; ++round) {
    const std::size_t group = std::size_t{8} << rng.below(5);
    const bool asymmetric = rng.below(2) != 0;
    const KvFormat format{.number = rng.below(2) != 0 ? config::KvNumber::int4 : config::KvNumber::int8,
                          .group = static_cast<std::int64_t>(group),
                          .range = KvRange::token,
                          .asymmetric = asymmetric};
    const Floats values = random_values(rng, 2 * group, static_cast<int>(rng.between(-26, 14)),
                                        rng.below(2) != 0 ? 3 * rng.real() : 0);
    const Coded bytes = encoded(format, values);
    const Floats back = decoded(format, bytes, values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double scale = static_cast<double>(half_at(bytes, i / group * (bytes.size() / 2)));
      const double error = std::abs(static_cast<double>(back[i]) - static_cast<double>(values[i]));
      const double arithmetic = 1e-6 * std::abs(static_cast<double>(values[i]));  // FP32, in the decoder too
      ASSERT_LE(error, scale * 0.50001 + arithmetic) << config::name(format) << " " << values[i];
    }
    if (!asymmetric) {
      const auto largest = std::abs(
          *std::ranges::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(group), {},
                                    [](float v) { return std::abs(v); }));
      const float levels = format.number == config::KvNumber::int4 ? 7 : 127;
      ASSERT_LE(half_at(bytes, 0), largest / levels * 1.001F + 0x1p-24F)
          << "no scale is wider than it must be";
    }
  }
}

struct Bound {
  const char* format;
  double of_largest;  ///< largest error, as a share of the block's largest magnitude
  double of_range;    ///< plus as a share of the block's range
};

/// GGML's own bounds: half a step, a whole one on the side where the codes end a step early; and the scale's
/// rounding.
TEST(KvCodec, BlocksAreWithinTheirStep) {
  Rng rng(12);
  for (const Bound& bound :
       {Bound{"q8_0", 0.5 / 127, 0}, Bound{"q5_0", 1.0 / 16, 0}, Bound{"q4_0", 1.0 / 8, 0},
        Bound{"q5_1", 0, 0.5 / 31}, Bound{"q4_1", 0, 0.5 / 15}, Bound{"iq4_nl", 0.2, 0}}) {
    for (int round = 0; round < 5'000; ++round) {
      const Floats values = random_values(rng, 32, static_cast<int>(rng.between(-20, 14)), rng.real());
      const Floats back = through(bound.format, values);
      const auto [low, high] = std::ranges::minmax(values);
      const double largest =
          std::max(std::abs(static_cast<double>(low)), std::abs(static_cast<double>(high)));
      const double range = static_cast<double>(high) - static_cast<double>(low);
      const double limit = bound.of_largest * largest + bound.of_range * range + 0x1p-10 * (largest + range) +
                           128 * 0x1p-25;  // scales below F16's normal numbers
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_LE(std::abs(static_cast<double>(back[i]) - static_cast<double>(values[i])), limit)
            << bound.format;
      }
    }
  }
}

TEST(KvCodec, ChannelsAreVectorsTurned) {
  Rng rng(13);
  for (const char* number : {"int8", "int4", "int8:asym", "int4:asym"}) {
    KvFormat channels = parse_kv_format(number);
    KvFormat vectors = channels;
    const std::size_t tokens = 16;
    const std::size_t width = 24;
    channels.group = vectors.group = tokens;
    channels.range = KvRange::channel;
    const Floats values = random_values(rng, tokens * width, 2, 0.3F);
    Coded bytes(static_cast<std::size_t>(config::kv_group_bytes(channels, width).count()));
    encode_channels(channels, values, bytes);
    Floats back(values.size());
    decode_channels(channels, bytes, back);
    for (std::size_t channel = 0; channel < width; ++channel) {
      Floats turned(tokens);
      for (std::size_t token = 0; token < tokens; ++token) {
        turned[token] = values[token * width + channel];
      }
      const Floats expected = through(vectors, turned);
      for (std::size_t token = 0; token < tokens; ++token) {
        ASSERT_EQ(back[token * width + channel], expected[token]) << number;
      }
    }
  }
}

TEST(KvCodec, WhatWasDecodedIsStoredExactly) {
  Rng rng(14);
  for (const char* format : {"f32", "f16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8", "int4", "int8:head"}) {
    for (int round = 0; round < 200; ++round) {
      const Floats once = through(format, random_values(rng, 64, static_cast<int>(rng.between(-5, 5))));
      ASSERT_EQ(through(format, once), once) << format;
    }
  }
}

constexpr std::array kIntegerFormats{"int8", "int4", "int8:asym", "int4:asym", "int4:head", "q8_0",
                                     "q5_1", "q5_0", "q4_1",      "q4_0",      "iq4_nl"};

TEST(KvCodec, NanCountsAsZeroInIntegers) {
  for (const char* format : kIntegerFormats) {
    Floats values(32, 0.5F);
    values[3] = -0.5F;
    Floats zero = values;
    values[5] = kNan;
    zero[5] = 0;
    EXPECT_EQ(encoded(format, values), encoded(format, zero)) << format;
  }
}

TEST(KvCodec, IntegersSaturate) {
  for (const char* format : kIntegerFormats) {
    Floats values(32, 1.0F);
    values[0] = kInfinity;
    values[1] = -kInfinity;
    values[2] = std::numeric_limits<float>::max();
    for (const float value : through(format, values)) {
      EXPECT_TRUE(std::isfinite(value)) << format;
    }
    EXPECT_GE(through(format, values)[0], 57000.0F) << format;
    EXPECT_LE(through(format, values)[1], -57000.0F) << format;
    EXPECT_EQ(through(format, values)[0], through(format, values)[2]) << format;
  }
}

TEST(KvCodec, FloatsKeepInfinityAndNan) {
  for (const char* format : {"f32", "f16", "bf16", "fp8_e5m2"}) {
    const Floats back = through(format, {kInfinity, -kInfinity, kNan, 1});
    EXPECT_EQ(back[0], kInfinity) << format;
    EXPECT_EQ(back[1], -kInfinity) << format;
    EXPECT_TRUE(std::isnan(back[2])) << format;
  }
  const Floats back = through("fp8_e4m3", {kInfinity, -kInfinity, kNan, 1});
  EXPECT_EQ(back[0], 448.0F);
  EXPECT_EQ(back[1], -448.0F);
  EXPECT_TRUE(std::isnan(back[2]));
}

TEST(KvCodec, TinyValuesDoNoHarm) {
  for (const char* format : kIntegerFormats) {
    for (const float tiny : {std::numeric_limits<float>::denorm_min(), 1e-38F, 1e-20F, 1e-7F, 0.0F}) {
      Floats values(32, tiny);
      values[7] = -tiny;
      for (const float value : through(format, values)) {
        EXPECT_LE(std::abs(value), 2 * tiny + 0x1p-24F * 127) << format;
      }
    }
  }
}

TEST(KvCodec, AnyBytesCanBeDecoded) {
  Rng rng(15);
  for (const char* format : {"f32", "f16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8", "int4", "int4:asym",
                             "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"}) {
    Coded bytes(static_cast<std::size_t>(config::kv_vector_bytes(parse_kv_format(format), 64).count()));
    for (std::byte& byte : bytes) {
      byte = static_cast<std::byte>(rng.below(256));
    }
    const Floats first = decoded(parse_kv_format(format), bytes, 64);
    const Floats second = decoded(parse_kv_format(format), bytes, 64);
    EXPECT_EQ(std::memcmp(first.data(), second.data(), 64 * sizeof(float)), 0);
  }
}

TEST(KvCodec, SizesMustFit) {
  Floats values(40);
  Coded bytes(45);
  EXPECT_THROW(encode(parse_kv_format("q8_0"), values, bytes), UserError) << "40 values are no whole blocks";
  EXPECT_THROW(encode(parse_kv_format("f16"), values, bytes), InternalError);
  EXPECT_THROW(decode(parse_kv_format("f16"), bytes, values), InternalError);
  EXPECT_THROW(encode(parse_kv_format("int8:channel"), values, bytes), InternalError);
  EXPECT_THROW(encode_channels(parse_kv_format("int8:g32:channel"), values, bytes), InternalError);
  EXPECT_THROW(decode_channels(parse_kv_format("f16"), bytes, values), InternalError);
}

}  // namespace
}  // namespace kvsim::trace
