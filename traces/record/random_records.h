// SPDX-License-Identifier: Apache-2.0
// For tests: reproducible random numbers and random well-formed records, extreme values included.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "traces/record/record.h"
#include "traces/record/spread.h"

namespace kvsim::trace {

class Rng : public SplitMix64 {
 public:
  using SplitMix64::SplitMix64;

  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
  }
  /// Of any magnitude: as many numbers of 3 bits as of 63.
  std::uint64_t magnitude() { return next() >> below(64); }
  /// Uniform in [-1, 1).
  float real() {
    return static_cast<float>(static_cast<std::int64_t>(next() >> 40U) - (1LL << 23)) / (1 << 23);
  }
};

/// An address that leaves room for `span` bytes; often the last such one.
inline Address random_address(Rng& rng, std::uint64_t span) {
  const Address last = std::numeric_limits<Address>::max() - (span - 1);
  return rng.below(4) == 0 ? last : std::min(rng.magnitude(), last);
}

inline Bytes random_size(Rng& rng) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 62;
  const auto any = static_cast<std::int64_t>(rng.magnitude() >> 1U);
  return Bytes(rng.below(8) == 0 ? kLargest : std::clamp<std::int64_t>(any, 1, kLargest));
}

inline Extent random_extent(Rng& rng) {
  Extent e;
  e.access = static_cast<Access>(rng.below(2));
  e.kind = static_cast<Kind>(rng.below(kKinds));
  e.stream = Stream(static_cast<std::uint32_t>(rng.below(kMaxStreams)));
  do {
    e.row_bytes = random_size(rng);
    e.stride = std::max(e.row_bytes, random_size(rng));
    e.rows = rng.below(2) == 0
                 ? 1
                 : static_cast<std::uint32_t>(std::max<std::uint64_t>(rng.magnitude() >> 32U, 1));
    e.address = 0;
  } while (!well_formed(e));
  const auto span = static_cast<std::uint64_t>(e.stride.count()) * (e.rows - 1U) +
                    static_cast<std::uint64_t>(e.row_bytes.count());
  e.address = random_address(rng, span);
  return e;
}

inline Alloc random_alloc(Rng& rng) {
  Alloc a;
  a.bytes = random_size(rng);
  a.address = random_address(rng, static_cast<std::uint64_t>(a.bytes.count()));
  a.kind = static_cast<Kind>(rng.below(kKinds));
  a.backing = static_cast<Backing>(rng.below(3));
  std::string name(rng.below(a.name.size()), ' ');
  std::generate(name.begin(), name.end(), [&] { return static_cast<char>(rng.between(' ', '~')); });
  a.name = alloc_name(name);
  return a;
}

inline Mark random_mark(Rng& rng) {
  const auto any32 = [&] { return static_cast<std::uint32_t>(rng.magnitude() >> 32U); };
  return {.what = static_cast<Mark::What>(rng.below(3)),
          .phase = static_cast<Phase>(rng.below(4)),
          .op = static_cast<Operator>(rng.below(kOperators)),
          .layer = Layer(any32()),
          .tokens = any32(),
          .depth = any32(),
          .request = any32()};
}

inline Record random_record(Rng& rng) {
  switch (rng.below(8)) {
    case 0:
      return random_alloc(rng);
    case 1: {
      const Bytes bytes = random_size(rng);
      return Free{.address = random_address(rng, static_cast<std::uint64_t>(bytes.count())), .bytes = bytes};
    }
    case 2:
      return random_mark(rng);
    case 3:
      return Compute{.operations = rng.magnitude(),
                     .stream = Stream(static_cast<std::uint32_t>(rng.below(kMaxStreams)))};
    default:
      return random_extent(rng);
  }
}

}  // namespace kvsim::trace
