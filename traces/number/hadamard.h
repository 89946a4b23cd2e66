// SPDX-License-Identifier: Apache-2.0
// The orthonormal Walsh-Hadamard transform: spreads what a few channels hold over all of them, so that a
// scale for a block of numbers fits each of them better. Its own inverse, and it leaves products of vectors
// as they are.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

#include "configs/error/error.h"

namespace kvsim::trace {

/// Transforms each run of `size` numbers. Preconditions: `size` is a power of two and divides their count.
inline void hadamard(std::span<float> numbers, std::size_t size) {
  check(size > 0 && (size & (size - 1)) == 0 && numbers.size() % size == 0,
        "a transform's size is a power of two");
  const float scale = 1.0F / std::sqrt(static_cast<float>(size));
  for (std::size_t begin = 0; begin < numbers.size(); begin += size) {
    const std::span<float> run = numbers.subspan(begin, size);
    for (std::size_t half = 1; half < size; half *= 2) {
      for (std::size_t i = 0; i < size; ++i) {
        if ((i & half) == 0) {
          const float a = run[i], b = run[i + half];
          run[i] = a + b;
          run[i + half] = a - b;
        }
      }
    }
    for (float& x : run) {
      x *= scale;
    }
  }
}

}  // namespace kvsim::trace
