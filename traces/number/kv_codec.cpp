// SPDX-License-Identifier: Apache-2.0
#include "traces/number/kv_codec.h"

#include <cstring>

#include "configs/error/error.h"
#include "traces/number/ggml_blocks.h"
#include "traces/number/half.h"
#include "traces/number/integer_groups.h"
#include "traces/number/small_float.h"

namespace kvsim::trace {
namespace {

using config::KvFormat;
using config::KvNumber;
using config::KvRange;

// Floats of which each stands for itself: `Bits` is what is stored.
struct F32 {
  using Bits = float;
  static float to(float value) { return value; }
  static float from(float bits) { return bits; }
};
struct F16 {
  using Bits = std::uint16_t;
  static std::uint16_t to(float value) { return to_half(value).bits; }
  static float from(std::uint16_t bits) { return to_float(Half{bits}); }
};
struct Bf16 {
  using Bits = std::uint16_t;
  static std::uint16_t to(float value) { return to_bf16(value); }
  static float from(std::uint16_t bits) { return from_bf16(bits); }
};
struct E4m3 {
  using Bits = std::uint8_t;
  static std::uint8_t to(float value) { return to_fp8_e4m3(value); }
  static float from(std::uint8_t bits) { return from_fp8_e4m3(bits); }
};
struct E5m2 {
  using Bits = std::uint8_t;
  static std::uint8_t to(float value) { return to_fp8_e5m2(value); }
  static float from(std::uint8_t bits) { return from_fp8_e5m2(bits); }
};

template <class Number>
void encode_floats(const float* __restrict values, std::uint8_t* __restrict out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const typename Number::Bits bits = Number::to(values[i]);
    std::memcpy(out + i * sizeof bits, &bits, sizeof bits);
  }
}

template <class Number>
void decode_floats(const std::uint8_t* __restrict in, float* __restrict values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    typename Number::Bits bits;
    std::memcpy(&bits, in + i * sizeof bits, sizeof bits);
    values[i] = Number::from(bits);
  }
}

template <class Block>
void encode_blocks(const float* values, std::uint8_t* out, std::size_t count) {
  for (std::size_t i = 0; i < count / kGgmlBlock; ++i) {
    Block::encode(values + i * kGgmlBlock, out + i * Block::kBytes);
  }
}

template <class Block>
void decode_blocks(const std::uint8_t* in, float* values, std::size_t count) {
  for (std::size_t i = 0; i < count / kGgmlBlock; ++i) {
    Block::decode(in + i * Block::kBytes, values + i * kGgmlBlock);
  }
}

struct Codec {
  void (*encode)(const float* values, std::uint8_t* out, std::size_t count);
  void (*decode)(const std::uint8_t* in, float* values, std::size_t count);
};

/// Null functions for int8 and int4, which need more than the number of values.
Codec codec_of(KvNumber number) {
  switch (number) {
    case KvNumber::f32:
      return {encode_floats<F32>, decode_floats<F32>};
    case KvNumber::f16:
      return {encode_floats<F16>, decode_floats<F16>};
    case KvNumber::bf16:
      return {encode_floats<Bf16>, decode_floats<Bf16>};
    case KvNumber::fp8_e4m3:
      return {encode_floats<E4m3>, decode_floats<E4m3>};
    case KvNumber::fp8_e5m2:
      return {encode_floats<E5m2>, decode_floats<E5m2>};
    case KvNumber::q8_0:
      return {encode_blocks<Q8_0>, decode_blocks<Q8_0>};
    case KvNumber::q5_1:
      return {encode_blocks<Q5_1>, decode_blocks<Q5_1>};
    case KvNumber::q5_0:
      return {encode_blocks<Q5_0>, decode_blocks<Q5_0>};
    case KvNumber::q4_1:
      return {encode_blocks<Q4_1>, decode_blocks<Q4_1>};
    case KvNumber::q4_0:
      return {encode_blocks<Q4_0>, decode_blocks<Q4_0>};
    case KvNumber::iq4_nl:
      return {encode_blocks<Iq4Nl>, decode_blocks<Iq4Nl>};
    case KvNumber::int8:
    case KvNumber::int4:
      break;
  }
  return {};
}

void check_vector(const KvFormat& format, std::size_t values, std::size_t bytes) {
  check(format.range != KvRange::channel, "channels are coded in groups of tokens");
  const auto head_dim = static_cast<std::int64_t>(values);
  check(static_cast<std::int64_t>(bytes) == config::kv_vector_bytes(format, head_dim).count(),
        "the bytes are those of the vector");
}

IntegerGroups groups_of(const KvFormat& format, std::size_t width) {
  return {.four_bits = format.number == KvNumber::int4,
          .asymmetric = format.asymmetric,
          .group = static_cast<std::size_t>(config::scale_group(format, static_cast<std::int64_t>(width))),
          .width = width};
}

IntegerGroups channel_groups(const KvFormat& format, std::size_t values, std::size_t bytes) {
  check(format.range == KvRange::channel && format.group > 0 &&
            values % static_cast<std::size_t>(format.group) == 0,
        "channels are coded in whole groups of tokens");
  const std::size_t width = values / static_cast<std::size_t>(format.group);
  check(static_cast<std::int64_t>(bytes) ==
            config::kv_group_bytes(format, static_cast<std::int64_t>(width)).count(),
        "the bytes are those of the group");
  return groups_of(format, width);
}

FixedIntegers fixed_integers(const KvFormat& format, std::size_t width) {
  return {.four_bits = format.number == KvNumber::int4,
          .limit = static_cast<float>(format.limit),
          .width = width};
}

std::uint8_t* raw(std::span<std::byte> bytes) {
  return reinterpret_cast<std::uint8_t*>(bytes.data());
}
const std::uint8_t* raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

}  // namespace

void encode(const KvFormat& format, std::span<const float> values, std::span<std::byte> out) {
  check_vector(format, values.size(), out.size());
  if (const Codec codec = codec_of(format.number); codec.encode != nullptr) {
    codec.encode(values.data(), raw(out), values.size());
  } else if (format.range == KvRange::fixed) {
    encode_fixed(fixed_integers(format, values.size()), values.data(), raw(out));
  } else {
    encode_vector(groups_of(format, values.size()), values.data(), raw(out));
  }
}

void decode(const KvFormat& format, std::span<const std::byte> in, std::span<float> values) {
  check_vector(format, values.size(), in.size());
  if (const Codec codec = codec_of(format.number); codec.decode != nullptr) {
    codec.decode(raw(in), values.data(), values.size());
  } else if (format.range == KvRange::fixed) {
    decode_fixed(fixed_integers(format, values.size()), raw(in), values.data());
  } else {
    decode_vector(groups_of(format, values.size()), raw(in), values.data());
  }
}

void encode_channels(const KvFormat& format, std::span<const float> values, std::span<std::byte> out) {
  encode_channel_groups(channel_groups(format, values.size(), out.size()), values.data(), raw(out));
}

void decode_channels(const KvFormat& format, std::span<const std::byte> in, std::span<float> values) {
  decode_channel_groups(channel_groups(format, values.size(), in.size()), raw(in), values.data());
}

}  // namespace kvsim::trace
