// SPDX-License-Identifier: Apache-2.0
// GGML's blocks of 32 values, bit by bit as its reference quantisers make them (ggml-quants.c,
// quantize_row_*_ref).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace kvsim::trace {

inline constexpr std::size_t kGgmlBlock = 32;

/// Values of IQ4_NL's 16 codes (ggml-common.h, kvalues_iq4nl).
inline constexpr std::array<std::int8_t, 16> kIq4Values{-127, -104, -83, -65, -49, -35, -22, -10,
                                                        1,    13,   25,  38,  53,  69,  89,  113};

/// `kBytes` of a block, and both ways for one block of 32 values. In all 4-bit and 5-bit formats byte j holds
/// value j in its low and value j + 16 in its high half.
struct Q8_0 {  // F16 scale, 32 integers
  static constexpr std::size_t kBytes = 34;
  static void encode(const float* values, std::uint8_t* out);
  static void decode(const std::uint8_t* in, float* values);
};
struct Q4_0 {  // F16 scale, 16 bytes
  static constexpr std::size_t kBytes = 18;
  static void encode(const float* values, std::uint8_t* out);
  static void decode(const std::uint8_t* in, float* values);
};
struct Q4_1 {  // F16 scale, F16 minimum, 16 bytes
  static constexpr std::size_t kBytes = 20;
  static void encode(const float* values, std::uint8_t* out);
  static void decode(const std::uint8_t* in, float* values);
};
struct Q5_0 {  // F16 scale, 32 fifth bits, 16 bytes
  static constexpr std::size_t kBytes = 22;
  static void encode(const float* values, std::uint8_t* out);
  static void decode(const std::uint8_t* in, float* values);
};
struct Q5_1 {  // F16 scale, F16 minimum, 32 fifth bits, 16 bytes
  static constexpr std::size_t kBytes = 24;
  static void encode(const float* values, std::uint8_t* out);
  static void decode(const std::uint8_t* in, float* values);
};
struct Iq4Nl {  // F16 scale, 16 bytes of codes into kIq4Values
  static constexpr std::size_t kBytes = 18;
  static void encode(const float* values, std::uint8_t* out);
  static void decode(const std::uint8_t* in, float* values);
};

}  // namespace kvsim::trace
