// SPDX-License-Identifier: Apache-2.0
// What the tests of this folder share.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "configs/error/error.h"

namespace kvsim {

/// The message of the UserError that `action` throws; "no error" if it throws none.
template <class Action>
[[nodiscard]] std::string message_of(Action&& action) {
  try {
    std::forward<Action>(action)();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

/// SplitMix64: random numbers that are the same with every standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// 0 to below - 1. The small bias does no harm in tests.
  std::uint64_t below(std::uint64_t below) { return next() % below; }
  /// A number of any magnitude: every bit length is equally likely.
  std::int64_t magnitude() { return static_cast<std::int64_t>(next() >> 1 >> below(63)); }

 private:
  std::uint64_t state_;
};

}  // namespace kvsim
