// SPDX-License-Identifier: Apache-2.0
// Plain decimal numbers as the user writes them, held exactly until their unit is known.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "configs/units/parsed.h"

namespace kvsim {

/// digits x 10^exponent, negated if `negative`.
struct Decimal {
  bool negative = false;
  std::uint64_t digits = 0;
  int exponent = 0;
};

/// What a number is multiplied by to come into the base unit: factor x 10^power10.
struct Scale {
  std::uint64_t factor = 1;
  int power10 = 0;
};

enum class Rounding {
  exact,    ///< a value that is not whole is refused
  nearest,  ///< rounded to the nearest whole number, but never to zero
};

struct NumberAndRest {
  Decimal number;
  std::string_view digits;  ///< the number as written
  std::string_view rest;    ///< what follows it, without the blanks between
};

/// Splits "1.5e3 GiB". Refuses what looks like a number but is read differently by different tools (010,
/// 0x10, 1,000), and nan and inf.
[[nodiscard]] Parsed<NumberAndRest> split_number(std::string_view text);

/// number x scale as a 64-bit integer; `unit` names the base unit in the reason of a refusal.
[[nodiscard]] Parsed<std::int64_t> to_integer(const Decimal& number, Scale scale, Rounding rounding,
                                              std::string_view unit);

/// number x scale, correctly rounded where the factor is a power of two.
[[nodiscard]] Parsed<double> to_real(const Decimal& number, Scale scale);

/// value / (factor x 10^power10) written out in decimal, if at most `max_decimals` decimals hold it exactly.
[[nodiscard]] std::string exact_quotient(std::int64_t value, Scale scale, int max_decimals);

}  // namespace kvsim
