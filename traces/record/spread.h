// SPDX-License-Identifier: Apache-2.0
// Spreads the bits of a key over a whole word.
#pragma once

#include <cstdint>

namespace kvsim::trace {

/// SplitMix64's last step (Steele, Lea, Flood 2014).
[[nodiscard]] constexpr std::uint64_t spread(std::uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

}  // namespace kvsim::trace
