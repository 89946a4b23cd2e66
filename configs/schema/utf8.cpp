// SPDX-License-Identifier: Apache-2.0
#include "configs/schema/utf8.h"

namespace kvsim::config {
namespace {

/// Length of the sequence that a byte begins (RFC 3629), 0 if it can begin none.
std::size_t sequence_length(unsigned char lead) {
  if (lead < 0x80) {
    return 1;
  }
  if (lead >= 0xC2 && lead < 0xE0) {
    return 2;
  }
  if (lead >= 0xE0 && lead < 0xF0) {
    return 3;
  }
  if (lead >= 0xF0 && lead < 0xF5) {
    return 4;
  }
  return 0;
}

/// Overlong forms, surrogates and what lies beyond U+10FFFF show in the second byte.
bool second_byte_fits(unsigned char lead, unsigned char second) {
  switch (lead) {
    case 0xE0:
      return second >= 0xA0;
    case 0xED:
      return second < 0xA0;
    case 0xF0:
      return second >= 0x90;
    case 0xF4:
      return second < 0x90;
    default:
      return true;
  }
}

bool is_control(unsigned char c) {
  return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F;
}

}  // namespace

std::optional<std::size_t> find_non_text(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = sequence_length(byte(i));
    if (length == 0 || i + length > text.size() || is_control(byte(i))) {
      return i;
    }
    for (std::size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xC0) != 0x80) {
        return i;
      }
    }
    if (length > 1 && !second_byte_fits(byte(i), byte(i + 1))) {
      return i;
    }
    i += length;
  }
  return std::nullopt;
}

}  // namespace kvsim::config
