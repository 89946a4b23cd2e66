// SPDX-License-Identifier: Apache-2.0
// Sizes that follow from the user's numbers: a product that does not fit is the user's mistake, not an
// overflow.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "configs/error/error.h"
#include "configs/units/quantity.h"

namespace kvsim::trace {

[[noreturn]] inline void fail_too_large(const char* what) {
  throw UserError(std::string(what) +
                  " would be 2^63 bytes or more; choose a smaller model, context or ubatch");
}

/// The product of `factors`; `what` names it in the error.
[[nodiscard]] inline Bytes checked_product(const char* what, std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) {
      fail_too_large(what);
    }
  }
  return Bytes(product);
}

[[nodiscard]] inline Bytes checked_sum(const char* what, Bytes a, Bytes b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a.count(), b.count(), &sum)) {
    fail_too_large(what);
  }
  return Bytes(sum);
}

/// `value` rounded up to a multiple of `step`.
[[nodiscard]] inline Bytes checked_round_up(const char* what, Bytes value, Bytes step) {
  check(step > Bytes(0), "sizes are rounded to a positive step");
  return Bytes(checked_sum(what, value, step - Bytes(1)).count() / step.count() * step.count());
}

/// A number of operations, rounded up.
[[nodiscard]] inline std::uint64_t checked_operations(double operations) {
  if (!(operations < 0x1p63)) {
    throw UserError(
        "an operator would take 2^63 operations or more; choose a smaller model, context or ubatch");
  }
  return static_cast<std::uint64_t>(std::ceil(operations));
}

}  // namespace kvsim::trace
