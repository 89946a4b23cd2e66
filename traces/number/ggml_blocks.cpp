// SPDX-License-Identifier: Apache-2.0
#include "traces/number/ggml_blocks.h"

#include <cmath>
#include <cstring>

#include "traces/number/bytes.h"

namespace kvsim::trace {
namespace {

constexpr std::size_t kPairs = kGgmlBlock / 2;

using Block = std::array<float, kGgmlBlock>;
using Codes = std::array<std::uint8_t, kGgmlBlock>;

Block load(const float* values, float limit) {
  Block block;
  for (std::size_t j = 0; j < kGgmlBlock; ++j) {
    block[j] = representable(values[j], limit);
  }
  return block;
}

/// The value of largest magnitude, with its sign; the first of several.
float extreme(const Block& block) {
  float largest = 0;
  for (const float value : block) {
    if (std::abs(value) > std::abs(largest)) {
      largest = value;
    }
  }
  return largest;
}

void put_nibbles(const Codes& codes, std::uint8_t* out) {
  for (std::size_t j = 0; j < kPairs; ++j) {
    out[j] = static_cast<std::uint8_t>((codes[j] & 15U) | (codes[j + kPairs] & 15U) << 4U);
  }
}

void put_fifth_bits(const Codes& codes, std::uint8_t* out) {
  std::uint32_t bits = 0;
  for (std::size_t j = 0; j < kGgmlBlock; ++j) {
    bits |= (codes[j] >> 4U & 1U) << j;
  }
  std::memcpy(out, &bits, sizeof bits);
}

/// The fifth bits of a block, each where it belongs in its code. Masks rather than shifts: SSE2 has no shifts
/// by different amounts.
std::array<std::int32_t, kGgmlBlock> fifth_bits(const std::uint8_t* in) {
  static constexpr auto kMasks = [] {
    std::array<std::uint32_t, kGgmlBlock> masks{};
    for (std::size_t j = 0; j < kGgmlBlock; ++j) {
      masks[j] = 1U << j;
    }
    return masks;
  }();
  std::uint32_t bits = 0;
  std::memcpy(&bits, in, sizeof bits);
  std::array<std::int32_t, kGgmlBlock> fifths;
  for (std::size_t j = 0; j < kGgmlBlock; ++j) {
    fifths[j] = (bits & kMasks[j]) != 0 ? 16 : 0;
  }
  return fifths;
}

/// Symmetric codes around `Zero`: the extreme value, whatever its sign, gets code 0.
template <int Zero>
Codes symmetric_codes(const Block& block, float scale) {
  const float factor = inverse(scale);
  Codes codes;
  for (std::size_t j = 0; j < kGgmlBlock; ++j) {
    const int code = static_cast<int>(block[j] * factor + (Zero + 0.5F));
    codes[j] = static_cast<std::uint8_t>(std::min(code, 2 * Zero - 1));
  }
  return codes;
}

struct Affine {
  Codes codes;
  float scale;
  float minimum;
};

template <int Largest>
Affine affine_codes(const float* values) {
  const Block block = load(values, kLargestHalf);
  const float low = *std::min_element(block.begin(), block.end());
  const float high = *std::max_element(block.begin(), block.end());
  const float scale = (high - low) / Largest;
  const float factor = inverse(scale);
  Affine affine{.codes = {}, .scale = scale, .minimum = low};
  for (std::size_t j = 0; j < kGgmlBlock; ++j) {
    const int code = static_cast<int>((block[j] - low) * factor + 0.5F);
    affine.codes[j] = static_cast<std::uint8_t>(std::min(code, Largest));
  }
  return affine;
}

std::uint8_t nearest_iq4(float value) {
  if (value <= static_cast<float>(kIq4Values.front())) {
    return 0;
  }
  std::size_t upper = 1;
  while (upper + 1 < kIq4Values.size() && value >= static_cast<float>(kIq4Values[upper])) {
    ++upper;
  }
  const float below = value - static_cast<float>(kIq4Values[upper - 1]);
  const float above = static_cast<float>(kIq4Values[upper]) - value;
  return static_cast<std::uint8_t>(below < above ? upper - 1 : upper);
}

}  // namespace

void Q8_0::encode(const float* values, std::uint8_t* out) {
  const Block block = load(values, 127 * kLargestHalf);
  const float scale = std::abs(extreme(block)) / 127;
  const float factor = inverse(scale);
  put_half(out, scale);
  for (std::size_t j = 0; j < kGgmlBlock; ++j) {
    // Away from zero in ties, as the reference; ggml's SIMD quantisers take the even one.
    out[2 + j] = static_cast<std::uint8_t>(static_cast<std::int8_t>(std::round(block[j] * factor)));
  }
}

void Q8_0::decode(const std::uint8_t* __restrict in, float* __restrict values) {
  const float scale = get_half(in);
  for (std::size_t j = 0; j < kGgmlBlock; ++j) {
    values[j] = static_cast<float>(static_cast<std::int8_t>(in[2 + j])) * scale;
  }
}

void Q4_0::encode(const float* values, std::uint8_t* out) {
  const Block block = load(values, 8 * kLargestHalf);
  const float scale = extreme(block) / -8;
  put_half(out, scale);
  put_nibbles(symmetric_codes<8>(block, scale), out + 2);
}

void Q4_0::decode(const std::uint8_t* __restrict in, float* __restrict values) {
  const float scale = get_half(in);
  for (std::size_t j = 0; j < kPairs; ++j) {
    values[j] = static_cast<float>((in[2 + j] & 15) - 8) * scale;
    values[j + kPairs] = static_cast<float>((in[2 + j] >> 4) - 8) * scale;
  }
}

void Q4_1::encode(const float* values, std::uint8_t* out) {
  const Affine affine = affine_codes<15>(values);
  put_half(out, affine.scale);
  put_half(out + 2, affine.minimum);
  put_nibbles(affine.codes, out + 4);
}

void Q4_1::decode(const std::uint8_t* __restrict in, float* __restrict values) {
  const float scale = get_half(in);
  const float minimum = get_half(in + 2);
  for (std::size_t j = 0; j < kPairs; ++j) {
    values[j] = static_cast<float>(in[4 + j] & 15) * scale + minimum;
    values[j + kPairs] = static_cast<float>(in[4 + j] >> 4) * scale + minimum;
  }
}

void Q5_0::encode(const float* values, std::uint8_t* out) {
  const Block block = load(values, 16 * kLargestHalf);
  const float scale = extreme(block) / -16;
  const Codes codes = symmetric_codes<16>(block, scale);
  put_half(out, scale);
  put_fifth_bits(codes, out + 2);
  put_nibbles(codes, out + 6);
}

void Q5_0::decode(const std::uint8_t* __restrict in, float* __restrict values) {
  const float scale = get_half(in);
  const auto fifths = fifth_bits(in + 2);
  for (std::size_t j = 0; j < kPairs; ++j) {
    const int low = (in[6 + j] & 15) | fifths[j];
    const int high = in[6 + j] >> 4 | fifths[j + kPairs];
    values[j] = static_cast<float>(low - 16) * scale;
    values[j + kPairs] = static_cast<float>(high - 16) * scale;
  }
}

void Q5_1::encode(const float* values, std::uint8_t* out) {
  const Affine affine = affine_codes<31>(values);
  put_half(out, affine.scale);
  put_half(out + 2, affine.minimum);
  put_fifth_bits(affine.codes, out + 4);
  put_nibbles(affine.codes, out + 8);
}

void Q5_1::decode(const std::uint8_t* __restrict in, float* __restrict values) {
  const float scale = get_half(in);
  const float minimum = get_half(in + 2);
  const auto fifths = fifth_bits(in + 4);
  for (std::size_t j = 0; j < kPairs; ++j) {
    const int low = (in[8 + j] & 15) | fifths[j];
    const int high = in[8 + j] >> 4 | fifths[j + kPairs];
    values[j] = static_cast<float>(low) * scale + minimum;
    values[j + kPairs] = static_cast<float>(high) * scale + minimum;
  }
}

void Iq4Nl::encode(const float* values, std::uint8_t* out) {
  constexpr float kSmallest = 1e-15F;  // GROUP_MAX_EPS: below this a block counts as zero
  // Squares of weights and values must stay finite; the scale, at most largest / 113, fits an F16 before
  // that.
  const Block block = load(values, 113 * kLargestHalf);
  const float largest = extreme(block);
  Codes codes{};
  float scale = 0;
  if (std::abs(largest) >= kSmallest) {
    const float factor = 1.0F / (largest / static_cast<float>(kIq4Values[0]));
    float product = 0;  // the scale that makes the error, weighted by the squares of the values, smallest
    float square = 0;
    for (std::size_t j = 0; j < kGgmlBlock; ++j) {
      codes[j] = nearest_iq4(factor * block[j]);
      const auto code = static_cast<float>(kIq4Values[codes[j]]);
      const float weight = block[j] * block[j];
      product += weight * code * block[j];
      square += weight * code * code;
    }
    scale = product / square;
  }
  put_half(out, scale);
  put_nibbles(codes, out + 2);
}

void Iq4Nl::decode(const std::uint8_t* __restrict in, float* __restrict values) {
  const float scale = get_half(in);
  for (std::size_t j = 0; j < kPairs; ++j) {
    values[j] = static_cast<float>(kIq4Values[in[2 + j] & 15U]) * scale;
    values[j + kPairs] = static_cast<float>(kIq4Values[in[2 + j] >> 4U]) * scale;
  }
}

}  // namespace kvsim::trace
