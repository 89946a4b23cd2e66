// SPDX-License-Identifier: Apache-2.0
// Numbers into a KV cache's bytes and back, in any of its formats. The same values give the same bytes on
// every machine. See README.md for the layouts and for what becomes of NaN, infinity and values out of range.
#pragma once

#include <cstddef>
#include <span>

#include "configs/spec/kv_format.h"

namespace kvsim::trace {

/// One head's vector of one token. Precondition: `format` is not scaled per channel, and the bytes are
/// kv_vector_bytes(format, values.size()); that throws UserError if the size does not fit the format.
void encode(const config::KvFormat& format, std::span<const float> values, std::span<std::byte> out);
void decode(const config::KvFormat& format, std::span<const std::byte> in, std::span<float> values);

/// `format.group` tokens of one head, [token][head_dim]. Precondition: `format` is scaled per channel, and
/// the bytes are kv_group_bytes(format, head_dim).
void encode_channels(const config::KvFormat& format, std::span<const float> values, std::span<std::byte> out);
void decode_channels(const config::KvFormat& format, std::span<const std::byte> in, std::span<float> values);

}  // namespace kvsim::trace
