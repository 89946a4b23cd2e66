// SPDX-License-Identifier: Apache-2.0
#include "traces/number/ggml_blocks.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/spec/expand.h"
#include "traces/record/random_records.h"

namespace kvsim::trace {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Values = std::array<float, kGgmlBlock>;

template <class Block>
Bytes encoded(const Values& values) {
  Bytes bytes(Block::kBytes);
  Block::encode(values.data(), bytes.data());
  return bytes;
}

template <class Block>
Values decoded(const Bytes& bytes) {
  Values values;
  Block::decode(bytes.data(), values.data());
  return values;
}

Bytes after(Bytes head, const Bytes& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

/// 0x00, 0x11, ... 0xff: value j has code j % 16.
Bytes counting() {
  Bytes bytes;
  for (std::uint8_t j = 0; j < 16; ++j) {
    bytes.push_back(static_cast<std::uint8_t>(j * 0x11));
  }
  return bytes;
}

TEST(GgmlBlocks, Q8_0ByHand) {
  Values values{127, -64, 0.5F, -0.5F, 2.4F};
  Bytes integers(32);
  integers[0] = 0x7f;
  integers[1] = 0xc0;
  integers[2] = 0x01;  // ties away from zero
  integers[3] = 0xff;
  integers[4] = 0x02;
  const Bytes expected = after({0x00, 0x3c}, integers);  // scale 1
  EXPECT_EQ(encoded<Q8_0>(values), expected);
  values[2] = 1;
  values[3] = -1;
  values[4] = 2;
  EXPECT_EQ(decoded<Q8_0>(expected), values);
}

TEST(GgmlBlocks, Q4_0ByHand) {
  Values values{-8, 7};
  values[16] = 3.4F;
  Bytes nibbles(16, 0x88);
  nibbles[0] = 0xb0;
  nibbles[1] = 0x8f;
  EXPECT_EQ(encoded<Q4_0>(values), after({0x00, 0x3c}, nibbles));
  values[16] = 3;
  EXPECT_EQ(decoded<Q4_0>(after({0x00, 0x3c}, nibbles)), values);
  // The extreme value is positive: the scale is negative, and what is opposite of it is cut to 7.
  nibbles.assign(16, 0x88);
  nibbles[0] = 0x80;
  nibbles[1] = 0x8f;
  EXPECT_EQ(encoded<Q4_0>({8, -7.9F}), after({0x00, 0xbc}, nibbles));
}

TEST(GgmlBlocks, Q4_1ByHand) {
  Values values;
  for (std::size_t j = 0; j < values.size(); ++j) {
    values[j] = static_cast<float>(1 + j % 16);
  }
  const Bytes expected = after({0x00, 0x3c, 0x00, 0x3c}, counting());  // scale 1, minimum 1
  EXPECT_EQ(encoded<Q4_1>(values), expected);
  EXPECT_EQ(decoded<Q4_1>(expected), values);
}

TEST(GgmlBlocks, Q5_0ByHand) {
  Values values{-16, 15};
  values[17] = -1;
  Bytes nibbles(16);
  nibbles[1] = 0xff;
  // Codes 0, 31, 15 at 17, and 16 elsewhere: all fifth bits but those of 0 and 17.
  const Bytes expected = after({0x00, 0x3c, 0xfe, 0xff, 0xfd, 0xff}, nibbles);
  EXPECT_EQ(encoded<Q5_0>(values), expected);
  EXPECT_EQ(decoded<Q5_0>(expected), values);
}

TEST(GgmlBlocks, Q5_1ByHand) {
  Values values;
  for (std::size_t j = 0; j < values.size(); ++j) {
    values[j] = static_cast<float>(j);
  }
  const Bytes expected = after({0x00, 0x3c, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff}, counting());
  EXPECT_EQ(encoded<Q5_1>(values), expected);
  EXPECT_EQ(decoded<Q5_1>(expected), values);
}

TEST(GgmlBlocks, Iq4NlByHand) {
  Values values;
  for (std::size_t j = 0; j < values.size(); ++j) {
    values[j] = static_cast<float>(kIq4Values[j % 16]);
  }
  const Bytes expected = after({0x00, 0x3c}, counting());
  EXPECT_EQ(encoded<Iq4Nl>(values), expected);
  EXPECT_EQ(decoded<Iq4Nl>(expected), values);
}

/// 4096 blocks of all magnitudes, every fifth full of ties: what comes out, as hashes.
struct Hashes {
  std::string bytes;
  std::string values;
};
template <class Block>
Hashes hashes() {
  Rng rng(7);
  std::string bytes;
  std::string values;
  for (int block = 0; block < 4096; ++block) {
    Values in;
    for (float& value : in) {
      value = block % 5 == 0 ? std::ldexp(static_cast<float>(rng.between(-16, 16)), block % 24 - 12)
                             : std::ldexp(rng.real(), block % 24 - 12);
    }
    const Bytes out = encoded<Block>(in);
    const Values back = decoded<Block>(out);
    bytes.append(reinterpret_cast<const char*>(out.data()), out.size());
    values.append(reinterpret_cast<const char*>(back.data()), sizeof back);
  }
  return {config::content_hash(bytes), config::content_hash(values)};
}

// What quantize_row_*_ref and dequantize_row_* of ggml's own library (libggml-base, npm package
// @node-llama-cpp/linux-x64 3.22.1) make of the same blocks.
TEST(GgmlBlocks, AreGgmlsBitByBit) {
  const auto expect = [](const Hashes& got, const char* bytes, const char* values) {
    EXPECT_EQ(got.bytes, bytes);
    EXPECT_EQ(got.values, values);
  };
  expect(hashes<Q8_0>(), "34b238cc225083c7", "30d27ab375fde1f0");
  expect(hashes<Q5_1>(), "e3705970ed18ff05", "532cac2d71bdd68a");
  expect(hashes<Q5_0>(), "ace44e198c3cda16", "b20424b981d13187");
  expect(hashes<Q4_1>(), "3836df8016ea7234", "d6c793e24ffa1503");
  expect(hashes<Q4_0>(), "f9675491510f43bd", "e645aa2feb5a5be0");
  expect(hashes<Iq4Nl>(), "7ab55e50644543bf", "acd316acf54fcbba");
}

}  // namespace
}  // namespace kvsim::trace
