// SPDX-License-Identifier: Apache-2.0
#include "configs/units/decimal.h"

#include <charconv>
#include <limits>
#include <system_error>

#include <fmt/format.h>

namespace kvsim {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t kMaxInteger = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kMaxDigits = 19;  // the most that always fit 64 bits unsigned
constexpr int kMaxExponent = 9999;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view take_digits(std::string_view& text) {
  std::size_t n = 0;
  while (n < text.size() && is_digit(text[n])) {
    ++n;
  }
  const std::string_view digits = text.substr(0, n);
  text.remove_prefix(n);
  return digits;
}

/// The parts of a number in text, before they are joined.
struct Digits {
  std::string_view whole;
  std::string_view fraction;
  int exponent = 0;
};

/// Takes "e3", "E-5" if a digit follows; else the letter begins a unit. False: the exponent is absurd.
bool take_exponent(std::string_view& text, int& exponent) {
  if (text.empty() || (text[0] != 'e' && text[0] != 'E')) {
    return true;
  }
  std::string_view rest = text.substr(1);
  const bool negative = !rest.empty() && rest[0] == '-';
  if (negative || (!rest.empty() && rest[0] == '+')) {
    rest.remove_prefix(1);
  }
  const std::string_view digits = take_digits(rest);
  if (digits.empty()) {
    return true;
  }
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  if (error != std::errc() || exponent > kMaxExponent) {
    return false;
  }
  if (negative) {
    exponent = -exponent;
  }
  text = rest;
  return true;
}

/// Why the start of a number cannot be what the user means; empty if nothing is wrong.
std::string bad_start(std::string_view text) {
  if (text.empty()) {
    return "is empty; write a number";
  }
  if (text[0] == '+') {
    return "starts with '+'; write the number without it";
  }
  if (text[0] == '.') {
    return "starts with a point; write a digit before it, as in 0.5";
  }
  if (!is_digit(text[0])) {
    return "is not a number";
  }
  if (text[0] != '0' || text.size() < 2) {
    return {};
  }
  if (text[1] == 'x' || text[1] == 'X') {
    return "is hexadecimal; write a plain decimal number";
  }
  if (is_digit(text[1])) {
    return "has a leading zero; write the number without it";
  }
  return {};
}

Parsed<Decimal> join(const Digits& parts) {
  std::string digits = std::string(parts.whole) + std::string(parts.fraction);
  int exponent = parts.exponent - static_cast<int>(parts.fraction.size());
  digits.erase(0, digits.find_first_not_of('0'));
  while (!digits.empty() && digits.back() == '0') {
    digits.pop_back();
    ++exponent;
  }
  if (digits.empty()) {
    return accepted(Decimal{});
  }
  if (digits.size() > kMaxDigits) {
    return refused<Decimal>(fmt::format("has too many digits; at most {} can be held", kMaxDigits));
  }
  Decimal number{.exponent = exponent};
  std::from_chars(digits.data(), digits.data() + digits.size(), number.digits);
  return accepted(number);
}

/// Divides by powers of ten and remembers what was cut off.
struct Division {
  Wide value = 0;
  unsigned last = 0;    ///< the last digit cut off
  bool sticky = false;  ///< a digit before it was not zero

  void by_ten() {
    sticky = sticky || last != 0;
    last = static_cast<unsigned>(value % 10);
    value /= 10;
  }
  [[nodiscard]] bool whole() const { return last == 0 && !sticky; }
};

}  // namespace

Parsed<NumberAndRest> split_number(std::string_view text) {
  std::string_view rest = text;
  const bool negative = !rest.empty() && rest[0] == '-';
  if (negative) {
    rest.remove_prefix(1);
  }
  if (std::string reason = bad_start(rest); !reason.empty()) {
    return refused<NumberAndRest>(reason);
  }
  Digits parts{.whole = take_digits(rest), .fraction = {}};
  if (!rest.empty() && rest[0] == '.') {
    rest.remove_prefix(1);
    parts.fraction = take_digits(rest);
    if (parts.fraction.empty()) {
      return refused<NumberAndRest>("has no digit after the point");
    }
  }
  if (!take_exponent(rest, parts.exponent)) {
    return refused<NumberAndRest>("has an absurd exponent");
  }
  if (!rest.empty() && (rest[0] == ',' || rest[0] == '_' || rest[0] == '\'')) {
    return refused<NumberAndRest>(fmt::format(
        "has '{}' within the number; write it without separators, with '.' before decimals", rest[0]));
  }
  Parsed<Decimal> number = join(parts);
  if (!number.value) {
    return refused<NumberAndRest>(number.reason);
  }
  number.value->negative = negative && number.value->digits != 0;
  const std::string_view digits = text.substr(0, text.size() - rest.size());
  while (!rest.empty() && rest[0] == ' ') {
    rest.remove_prefix(1);
  }
  return accepted(NumberAndRest{*number.value, digits, rest});
}

Parsed<std::int64_t> to_integer(const Decimal& number, Scale scale, Rounding rounding,
                                std::string_view unit) {
  const std::string_view blank = unit.empty() ? "" : " ";
  const auto too_large = [&] {
    return refused<std::int64_t>(
        fmt::format("is too large; at most {}{}{} can be held", kMaxInteger, blank, unit));
  };
  Division division{.value = Wide{number.digits} * scale.factor};
  int exponent = number.exponent + scale.power10;
  for (; exponent > 0 && division.value != 0; --exponent) {
    if (division.value > kMaxInteger) {
      return too_large();
    }
    division.value *= 10;
  }
  for (; exponent < 0 && (division.value != 0 || division.last != 0); ++exponent) {
    division.by_ten();
  }
  if (!division.whole()) {
    if (rounding == Rounding::exact) {
      return refused<std::int64_t>(unit.empty()
                                       ? std::string("is not a whole number")
                                       : fmt::format("does not come out as a whole number of {}", unit));
    }
    if (division.last >= 5) {
      ++division.value;
    }
    if (division.value == 0) {
      return refused<std::int64_t>(fmt::format("is less than half of 1{}{}, the smallest step", blank, unit));
    }
  }
  if (division.value > kMaxInteger) {
    return too_large();
  }
  const auto magnitude = static_cast<std::int64_t>(division.value);
  return accepted(number.negative ? -magnitude : magnitude);
}

Parsed<double> to_real(const Decimal& number, Scale scale) {
  if (number.digits == 0) {
    return accepted(0.0);
  }
  const std::string text =
      fmt::format("{}{}e{}", number.negative ? "-" : "", number.digits, number.exponent + scale.power10);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  value *= static_cast<double>(scale.factor);
  if (error != std::errc() || value == 0 || value > std::numeric_limits<double>::max() ||
      value < std::numeric_limits<double>::lowest()) {
    return refused<double>("is outside the range of floating-point numbers");
  }
  return accepted(value);
}

std::string exact_quotient(std::int64_t value, Scale scale, int max_decimals) {
  Wide divisor = scale.factor;
  for (int i = 0; i < scale.power10; ++i) {
    divisor *= 10;
  }
  const bool negative = value < 0;
  const Wide magnitude = negative ? Wide{0} - static_cast<Wide>(value) : static_cast<Wide>(value);
  Wide rest = magnitude % divisor;
  std::string text =
      fmt::format("{}{}", negative ? "-" : "", static_cast<std::uint64_t>(magnitude / divisor));
  for (int i = 0; i < max_decimals && rest != 0; ++i) {
    if (i == 0) {
      text += '.';
    }
    rest *= 10;
    text += static_cast<char>('0' + static_cast<int>(rest / divisor));
    rest %= divisor;
  }
  return rest == 0 ? text : std::string();
}

}  // namespace kvsim
