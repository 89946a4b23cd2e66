// SPDX-License-Identifier: Apache-2.0
// Text grammar of values: everything a user writes is parsed here, and printed so that it parses back to an
// equal value.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "configs/units/decimal.h"
#include "configs/units/parsed.h"
#include "configs/units/quantity.h"

namespace kvsim {

/// How values of type T are written. A specialisation has
///   static std::string kind();                       what a value is, in words: "a size in bytes"
///   static std::string pattern();                    regular expression for editors; empty if not needed
///   static Parsed<T> parse(std::string_view);
///   static std::string to_text(const T&);
template <class T>
struct Grammar;

template <class T>
concept HasGrammar = requires(const T& value) {
  { Grammar<T>::parse(std::string_view()) } -> std::same_as<Parsed<T>>;
  { Grammar<T>::to_text(value) } -> std::same_as<std::string>;
};

template <HasGrammar T>
[[nodiscard]] Parsed<T> parse(std::string_view text) {
  return Grammar<T>::parse(text);
}

template <HasGrammar T>
[[nodiscard]] std::string to_text(const T& value) {
  return Grammar<T>::to_text(value);
}

struct Unit {
  std::string_view name;
  Scale scale;
  bool printed = true;  ///< false: understood, but never written by to_text
};

/// The units of one dimension; the first is the base unit. to_text picks the unit with the most readable
/// text, of two equally good ones the one that stands later here.
struct UnitFamily {
  std::string_view kind;
  std::span<const Unit> units;
  std::string_view example;  ///< two units to suggest when one is missing
  std::string_view example2;
  Rounding rounding = Rounding::exact;
  bool is_signed = false;
};

template <class UnitTag>
const UnitFamily& unit_family();
template <>
const UnitFamily& unit_family<BytesUnit>();
template <>
const UnitFamily& unit_family<PicosecondsUnit>();
template <>
const UnitFamily& unit_family<HertzUnit>();
template <>
const UnitFamily& unit_family<BytesPerSecondUnit>();
template <>
const UnitFamily& unit_family<CelsiusUnit>();
template <>
const UnitFamily& unit_family<WattsUnit>();
template <>
const UnitFamily& unit_family<JoulesUnit>();
template <>
const UnitFamily& unit_family<VoltsUnit>();
template <>
const UnitFamily& unit_family<KelvinPerWattUnit>();
template <>
const UnitFamily& unit_family<JoulesPerKelvinUnit>();
template <>
const UnitFamily& unit_family<FaradsUnit>();

[[nodiscard]] Parsed<std::int64_t> parse_integer_quantity(std::string_view text, const UnitFamily& family);
[[nodiscard]] Parsed<double> parse_real_quantity(std::string_view text, const UnitFamily& family);
[[nodiscard]] std::string integer_quantity_text(std::int64_t value, const UnitFamily& family);
[[nodiscard]] std::string real_quantity_text(double value, const UnitFamily& family);
[[nodiscard]] std::string quantity_pattern(const UnitFamily& family);

template <class UnitTag, class Rep>
struct Grammar<Quantity<UnitTag, Rep>> {
  using Value = Quantity<UnitTag, Rep>;

  static std::string kind() { return std::string(unit_family<UnitTag>().kind); }
  static std::string pattern() { return quantity_pattern(unit_family<UnitTag>()); }

  static Parsed<Value> parse(std::string_view text) {
    Parsed<Rep> number;
    if constexpr (std::integral<Rep>) {
      number = parse_integer_quantity(text, unit_family<UnitTag>());
    } else {
      number = parse_real_quantity(text, unit_family<UnitTag>());
    }
    return number.value ? accepted(Value(*number.value)) : refused<Value>(std::move(number.reason));
  }

  static std::string to_text(const Value& value) {
    if constexpr (std::integral<Rep>) {
      return integer_quantity_text(value.count(), unit_family<UnitTag>());
    } else {
      return real_quantity_text(value.count(), unit_family<UnitTag>());
    }
  }
};

template <>
struct Grammar<std::int64_t> {
  static std::string kind() { return "a whole number"; }
  static std::string pattern() { return {}; }
  static Parsed<std::int64_t> parse(std::string_view text);
  static std::string to_text(const std::int64_t& value);
};

template <>
struct Grammar<double> {
  static std::string kind() { return "a number"; }
  static std::string pattern() { return {}; }
  static Parsed<double> parse(std::string_view text);
  static std::string to_text(const double& value);
};

template <>
struct Grammar<bool> {
  static std::string kind() { return "true or false"; }
  static std::string pattern() { return {}; }
  static Parsed<bool> parse(std::string_view text);
  static std::string to_text(const bool& value);
};

template <>
struct Grammar<std::string> {
  static std::string kind() { return "a text"; }
  static std::string pattern() { return {}; }
  static Parsed<std::string> parse(std::string_view text) { return accepted(std::string(text)); }
  static std::string to_text(const std::string& value) { return value; }
};

/// Specialised for each enumeration that users write: `static constexpr std::array kAll{EnumName{E::a, "a"},
/// ...}`. It may have `static std::string_view hint(std::string_view)`: what to add about a text that is no
/// name.
template <class E>
struct EnumNames;

template <class E>
struct EnumName {
  E value;
  std::string_view name;
};

template <class E>
EnumName(E, std::string_view) -> EnumName<E>;

[[nodiscard]] std::string unknown_choice(std::string_view text, std::span<const std::string_view> choices);
[[nodiscard]] std::string choice_list(std::span<const std::string_view> choices);

template <class E>
requires requires {
  EnumNames<E>::kAll;
}
struct Grammar<E> {
  static std::array<std::string_view, EnumNames<E>::kAll.size()> names() {
    std::array<std::string_view, EnumNames<E>::kAll.size()> names;
    for (std::size_t i = 0; i < names.size(); ++i) {
      names[i] = EnumNames<E>::kAll[i].name;
    }
    return names;
  }
  static std::string kind() { return "one of " + choice_list(names()); }
  static std::string pattern() { return {}; }

  static Parsed<E> parse(std::string_view text) {
    for (const auto& [value, name] : EnumNames<E>::kAll) {
      if (name == text) {
        return accepted(value);
      }
    }
    std::string reason = unknown_choice(text, names());
    if constexpr (requires { EnumNames<E>::hint(text); }) {
      reason += EnumNames<E>::hint(text);
    }
    return refused<E>(std::move(reason));
  }

  static std::string to_text(const E& value) {
    for (const auto& [known, name] : EnumNames<E>::kAll) {
      if (known == value) {
        return std::string(name);
      }
    }
    return {};
  }
};

}  // namespace kvsim
