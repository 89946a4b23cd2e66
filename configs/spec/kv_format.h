// SPDX-License-Identifier: Apache-2.0
// How a KV cache stores its numbers, as users write it, and how many bytes that takes, scales counted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "configs/units/quantity.h"

namespace kvsim::config {

/// q8_0 to iq4_nl are GGML's blocks of 32 values (ggml-common.h).
enum class KvNumber { f32, f16, bf16, fp8_e4m3, fp8_e5m2, int8, int4, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl };

/// What shares one scale in int8 and int4: `group` values along a token's head vector; the head's whole
/// vector; one channel over `group` tokens (as KIVI does with keys, arXiv 2402.02750); all, by a scale stated
/// beforehand and not stored.
enum class KvRange { token, head, channel, fixed };

struct KvFormat {
  KvNumber number = KvNumber::f16;
  /// int8 and int4: values that share a scale. 0 where the number has no choice of it, and with KvRange::head
  /// if the head's size is to be taken, whatever it is.
  std::int64_t group = 0;
  KvRange range = KvRange::token;
  bool asymmetric = false;  ///< int8 and int4: a minimum beside each scale
  double limit = 0;         ///< KvRange::fixed: the largest magnitude kept; what is beyond is clipped to it

  bool operator==(const KvFormat&) const = default;
};

/// Group of "int8" and "int4" written without one: GGML's block, which divides every common head size.
inline constexpr std::int64_t kDefaultKvGroup = 32;

/// "f16", "q4_0", "int8", "int8:g64", "int4:g32:channel", "int4:head", "int4:g32:asym", "int4:range=8";
/// capitals do not matter. Throws UserError that lists what is allowed; a format made for weights is refused
/// with the reason.
[[nodiscard]] KvFormat parse_kv_format(std::string_view text);

/// What parses back to an equal format: "int4:g32:channel:asym".
[[nodiscard]] std::string name(const KvFormat& format);

/// All that parse_kv_format understands, in one line.
[[nodiscard]] std::string kv_format_choices();

/// Values that one call of the codec takes, the unit that can be decoded by itself: a head's vector, or that
/// of `group` tokens for KvRange::channel.
[[nodiscard]] std::int64_t values_per_unit(const KvFormat& format, std::int64_t head_dim);

/// Values that share one stored scale; 1 where there is none.
[[nodiscard]] std::int64_t scale_group(const KvFormat& format, std::int64_t head_dim);

/// Bytes of one head's vector of one token, scales included. For KvRange::channel the mean over a group's
/// tokens, if that is a whole number. Throws UserError if head_dim cannot be stored so; tells what would
/// divide.
[[nodiscard]] Bytes kv_vector_bytes(const KvFormat& format, std::int64_t head_dim);

/// KvRange::channel: bytes of one head's vectors of `group` tokens.
[[nodiscard]] Bytes kv_group_bytes(const KvFormat& format, std::int64_t head_dim);

}  // namespace kvsim::config
