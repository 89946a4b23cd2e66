// SPDX-License-Identifier: Apache-2.0
// INT8 and INT4 with a scale, and if asymmetric a minimum, per group of values: F16 each, rounded outwards so
// that no value of the group is clipped and none is off by more than half a scale; or one scale stated
// beforehand.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvsim::trace {

/// How many values there are and how they share scales.
struct IntegerGroups {
  bool four_bits = false;
  bool asymmetric = false;
  std::size_t group = 0;  ///< values of a vector, or tokens of a channel, that share a scale
  std::size_t width = 0;  ///< values of a vector
};

/// One vector: per group its scale, its minimum if asymmetric, its integers. INT4: byte j of a group holds
/// value j in its low and value j + group / 2 in its high half.
void encode_vector(const IntegerGroups& groups, const float* values, std::uint8_t* out);
void decode_vector(const IntegerGroups& groups, const std::uint8_t* in, float* values);

/// `group` vectors, one behind the other: a scale per channel, a minimum per channel if asymmetric, then the
/// vectors' integers. INT4: byte j of a vector holds channel j in its low and channel j + width / 2 in its
/// high half.
void encode_channel_groups(const IntegerGroups& groups, const float* values, std::uint8_t* out);
void decode_channel_groups(const IntegerGroups& groups, const std::uint8_t* in, float* values);

/// Integers of one scale, `limit` over the largest of them; what is beyond is clipped.
struct FixedIntegers {
  bool four_bits = false;
  float limit = 0;
  std::size_t width = 0;  ///< values of a vector
};

/// The integers of one vector, laid out as one symmetric group of encode_vector().
void encode_fixed(const FixedIntegers& fixed, const float* values, std::uint8_t* out);
void decode_fixed(const FixedIntegers& fixed, const std::uint8_t* in, float* values);

}  // namespace kvsim::trace
