// SPDX-License-Identifier: Apache-2.0
// Spreads the bits of a key over a whole word; random numbers that are the same everywhere.
#pragma once

#include <cstdint>

namespace kvsim::trace {

/// SplitMix64's last step (Steele, Lea, Flood 2014).
[[nodiscard]] constexpr std::uint64_t spread(std::uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

/// The SplitMix64 sequence; the standard's distributions differ between libraries.
class SplitMix64 {
 public:
  constexpr explicit SplitMix64(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t next() { return spread(state_ += 0x9e3779b97f4a7c15ULL); }
  /// From 0 to `bound` - 1; the bias is bound / 2^64.
  constexpr std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  /// From 0 to below 1.
  constexpr double unit() { return static_cast<double>(next() >> 11U) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace kvsim::trace
