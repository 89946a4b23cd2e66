// SPDX-License-Identifier: Apache-2.0
#include "traces/number/integer_groups.h"

#include <array>
#include <vector>

#include "traces/number/bytes.h"

namespace kvsim::trace {
namespace {

constexpr std::size_t kHalf = sizeof(Half);

/// The integers of a symmetric group reach from -kLargest to kLargest, of an asymmetric one from 0 to
/// kLargest; INT4 stores the former with 8 added.
template <bool FourBits, bool Asymmetric>
struct Code {
  static constexpr int kLargest = Asymmetric ? (FourBits ? 15 : 255) : (FourBits ? 7 : 127);
  static constexpr int kOffset = FourBits && !Asymmetric ? 8 : 0;
  static constexpr float kLimit = Asymmetric ? kLargestHalf : kLargest * kLargestHalf;
};

struct Scale {
  float scale = 0;
  float minimum = 0;
};

float half_above(float value) {  // value >= 0
  Half half = to_half(value);
  half.bits += to_float(half) < value ? 1 : 0;
  return to_float(half);
}

float half_below(float value) {
  Half half = to_half(value);
  if (to_float(half) > value) {
    const bool positive = (half.bits & 0x8000U) == 0 && half.bits != 0;
    half.bits = static_cast<std::uint16_t>(positive ? half.bits - 1 : (half.bits | 0x8000U) + 1);
  }
  return to_float(half);
}

template <class C, bool Asymmetric>
Scale scale_of(const float* values, std::size_t count, std::size_t stride) {
  float low = representable(values[0], C::kLimit);
  float high = low;
  for (std::size_t i = 1; i < count; ++i) {
    const float value = representable(values[i * stride], C::kLimit);
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if constexpr (Asymmetric) {
    const float minimum = half_below(low);
    return {.scale = half_above((high - minimum) / C::kLargest), .minimum = minimum};
  } else {
    return {.scale = half_above(std::max(std::abs(low), std::abs(high)) / C::kLargest), .minimum = 0};
  }
}

template <class C, bool Asymmetric>
std::uint8_t code_of(float value, const Scale& scale) {
  if (scale.scale == 0) {
    return static_cast<std::uint8_t>(C::kOffset);
  }
  const float steps = std::round((representable(value, C::kLimit) - scale.minimum) / scale.scale);
  constexpr float kLowest = Asymmetric ? 0 : -C::kLargest;
  const int code = static_cast<int>(std::clamp(steps, kLowest, static_cast<float>(C::kLargest)));
  return static_cast<std::uint8_t>(code + C::kOffset);
}

/// One number of `in`: INT8's sign matters only if symmetric.
template <bool Asymmetric>
float integer_of(std::uint8_t in) {
  if constexpr (Asymmetric) {
    return static_cast<float>(in);
  } else {
    return static_cast<float>(static_cast<std::int8_t>(in));
  }
}

/// The integers of one group; their bytes.
template <bool FourBits, bool Asymmetric>
std::size_t encode_integers(const float* values, std::size_t count, const Scale& scale, std::uint8_t* out) {
  using C = Code<FourBits, Asymmetric>;
  const std::size_t bytes = FourBits ? count / 2 : count;
  for (std::size_t j = 0; j < bytes; ++j) {
    out[j] = code_of<C, Asymmetric>(values[j], scale);
    if constexpr (FourBits) {
      const unsigned high = code_of<C, Asymmetric>(values[j + bytes], scale);
      out[j] = static_cast<std::uint8_t>(out[j] | high << 4U);
    }
  }
  return bytes;
}

template <bool FourBits, bool Asymmetric>
std::size_t decode_integers(const std::uint8_t* __restrict in, std::size_t count, Scale scale,
                            float* __restrict values) {
  using C = Code<FourBits, Asymmetric>;
  const std::size_t bytes = FourBits ? count / 2 : count;
  for (std::size_t j = 0; j < bytes; ++j) {
    if constexpr (FourBits) {
      values[j] = static_cast<float>((in[j] & 15) - C::kOffset) * scale.scale + scale.minimum;
      values[j + bytes] = static_cast<float>((in[j] >> 4) - C::kOffset) * scale.scale + scale.minimum;
    } else {
      values[j] = integer_of<Asymmetric>(in[j]) * scale.scale + scale.minimum;
    }
  }
  return bytes;
}

template <bool FourBits, bool Asymmetric>
void encode_groups(const IntegerGroups& groups, const float* values, std::uint8_t* out) {
  using C = Code<FourBits, Asymmetric>;
  for (std::size_t start = 0; start < groups.width; start += groups.group) {
    const float* from = values + start;
    const auto scale = scale_of<C, Asymmetric>(from, groups.group, 1);
    put_half(out, scale.scale);
    out += kHalf;
    if constexpr (Asymmetric) {
      put_half(out, scale.minimum);
      out += kHalf;
    }
    out += encode_integers<FourBits, Asymmetric>(from, groups.group, scale, out);
  }
}

template <bool FourBits, bool Asymmetric>
void decode_groups(const IntegerGroups& groups, const std::uint8_t* in, float* values) {
  for (std::size_t start = 0; start < groups.width; start += groups.group) {
    Scale scale{.scale = get_half(in), .minimum = 0};
    in += kHalf;
    if constexpr (Asymmetric) {
      scale.minimum = get_half(in);
      in += kHalf;
    }
    in += decode_integers<FourBits, Asymmetric>(in, groups.group, scale, values + start);
  }
}

template <bool FourBits, bool Asymmetric>
void encode_channels_as(const IntegerGroups& groups, const float* values, std::uint8_t* out) {
  using C = Code<FourBits, Asymmetric>;
  const std::size_t row = FourBits ? groups.width / 2 : groups.width;
  std::uint8_t* const integers = out + groups.width * kHalf * (Asymmetric ? 2 : 1);
  for (std::size_t channel = 0; channel < groups.width; ++channel) {
    const auto scale = scale_of<C, Asymmetric>(values + channel, groups.group, groups.width);
    put_half(out + channel * kHalf, scale.scale);
    if constexpr (Asymmetric) {
      put_half(out + (groups.width + channel) * kHalf, scale.minimum);
    }
    const bool high = FourBits && channel >= row;
    for (std::size_t token = 0; token < groups.group; ++token) {
      std::uint8_t& byte = integers[token * row + (high ? channel - row : channel)];
      const std::uint8_t code = code_of<C, Asymmetric>(values[token * groups.width + channel], scale);
      byte = high ? static_cast<std::uint8_t>(byte | unsigned{code} << 4U) : code;
    }
  }
}

template <bool FourBits, bool Asymmetric>
void decode_row(const std::uint8_t* __restrict in, const float* __restrict scales,
                const float* __restrict minima, float* __restrict values, std::size_t row) {
  using C = Code<FourBits, Asymmetric>;
  for (std::size_t j = 0; j < row; ++j) {
    if constexpr (FourBits) {
      values[j] = static_cast<float>((in[j] & 15) - C::kOffset) * scales[j] + minima[j];
      values[j + row] = static_cast<float>((in[j] >> 4) - C::kOffset) * scales[j + row] + minima[j + row];
    } else {
      values[j] = integer_of<Asymmetric>(in[j]) * scales[j] + minima[j];
    }
  }
}

template <bool FourBits, bool Asymmetric>
void decode_channels_as(const IntegerGroups& groups, const std::uint8_t* in, float* values) {
  std::vector<float> scales(groups.width);
  std::vector<float> minima(groups.width);
  for (std::size_t channel = 0; channel < groups.width; ++channel) {
    scales[channel] = get_half(in + channel * kHalf);
    if constexpr (Asymmetric) {
      minima[channel] = get_half(in + (groups.width + channel) * kHalf);
    }
  }
  const std::size_t row = FourBits ? groups.width / 2 : groups.width;
  in += groups.width * kHalf * (Asymmetric ? 2 : 1);
  for (std::size_t token = 0; token < groups.group; ++token) {
    decode_row<FourBits, Asymmetric>(in + token * row, scales.data(), minima.data(),
                                     values + token * groups.width, row);
  }
}

template <bool FourBits>
Scale fixed_scale(const FixedIntegers& fixed) {
  return {.scale = fixed.limit / Code<FourBits, false>::kLargest, .minimum = 0};
}

}  // namespace

void encode_vector(const IntegerGroups& groups, const float* values, std::uint8_t* out) {
  constexpr std::array kWays{encode_groups<false, false>, encode_groups<false, true>,
                             encode_groups<true, false>, encode_groups<true, true>};
  kWays[(groups.four_bits ? 2 : 0) + (groups.asymmetric ? 1 : 0)](groups, values, out);
}

void decode_vector(const IntegerGroups& groups, const std::uint8_t* in, float* values) {
  constexpr std::array kWays{decode_groups<false, false>, decode_groups<false, true>,
                             decode_groups<true, false>, decode_groups<true, true>};
  kWays[(groups.four_bits ? 2 : 0) + (groups.asymmetric ? 1 : 0)](groups, in, values);
}

void encode_channel_groups(const IntegerGroups& groups, const float* values, std::uint8_t* out) {
  constexpr std::array kWays{encode_channels_as<false, false>, encode_channels_as<false, true>,
                             encode_channels_as<true, false>, encode_channels_as<true, true>};
  kWays[(groups.four_bits ? 2 : 0) + (groups.asymmetric ? 1 : 0)](groups, values, out);
}

void decode_channel_groups(const IntegerGroups& groups, const std::uint8_t* in, float* values) {
  constexpr std::array kWays{decode_channels_as<false, false>, decode_channels_as<false, true>,
                             decode_channels_as<true, false>, decode_channels_as<true, true>};
  kWays[(groups.four_bits ? 2 : 0) + (groups.asymmetric ? 1 : 0)](groups, in, values);
}

void encode_fixed(const FixedIntegers& fixed, const float* values, std::uint8_t* out) {
  if (fixed.four_bits) {
    encode_integers<true, false>(values, fixed.width, fixed_scale<true>(fixed), out);
  } else {
    encode_integers<false, false>(values, fixed.width, fixed_scale<false>(fixed), out);
  }
}

void decode_fixed(const FixedIntegers& fixed, const std::uint8_t* in, float* values) {
  if (fixed.four_bits) {
    decode_integers<true, false>(in, fixed.width, fixed_scale<true>(fixed), values);
  } else {
    decode_integers<false, false>(in, fixed.width, fixed_scale<false>(fixed), values);
  }
}

}  // namespace kvsim::trace
