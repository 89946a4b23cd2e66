// SPDX-License-Identifier: Apache-2.0
#include "configs/units/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "configs/error/diagnostics.h"

namespace kvsim {
namespace {

constexpr Scale ten(int power) {
  return {1, power};
}
constexpr Scale two(int power) {
  return {std::uint64_t{1} << power, 0};
}

// A binary unit stands behind the decimal one of its size, so that it is preferred for printing.
constexpr std::array kBytes{Unit{"B", {}},        Unit{"KB", ten(3)},   Unit{"KiB", two(10)},
                            Unit{"MB", ten(6)},   Unit{"MiB", two(20)}, Unit{"GB", ten(9)},
                            Unit{"GiB", two(30)}, Unit{"TB", ten(12)},  Unit{"TiB", two(40)},
                            Unit{"PB", ten(15)},  Unit{"PiB", two(50)}, Unit{"EB", ten(18)},
                            Unit{"EiB", two(60)}};
constexpr std::array kTimes{Unit{"ps", {}},       Unit{"ns", ten(3)}, Unit{"us", ten(6)},
                            Unit{"ms", ten(9)},   Unit{"s", ten(12)}, Unit{"min", {60, 12}},
                            Unit{"h", {3600, 12}}};
constexpr std::array kFrequencies{Unit{"Hz", {}}, Unit{"kHz", ten(3)}, Unit{"MHz", ten(6)},
                                  Unit{"GHz", ten(9)}, Unit{"THz", ten(12)}};
constexpr std::array kRates{Unit{"B/s", {}},
                            Unit{"KB/s", ten(3)},
                            Unit{"KiB/s", two(10)},
                            Unit{"MB/s", ten(6)},
                            Unit{"MiB/s", two(20)},
                            Unit{"GB/s", ten(9)},
                            Unit{"GiB/s", two(30)},
                            Unit{"TB/s", ten(12)},
                            Unit{"TiB/s", two(40)},
                            Unit{"Mbit/s", {125, 3}, false},
                            Unit{"Gbit/s", {125, 6}, false}};
constexpr std::array kTemperatures{Unit{"C", {}}};
constexpr std::array kPowers{Unit{"W", {}}, Unit{"mW", ten(-3)}};
constexpr std::array kEnergies{Unit{"J", {}}, Unit{"pJ", ten(-12)}, Unit{"nJ", ten(-9)}, Unit{"uJ", ten(-6)},
                               Unit{"mJ", ten(-3)}};
constexpr std::array kVoltages{Unit{"V", {}}, Unit{"mV", ten(-3)}};
constexpr std::array kThermalResistances{Unit{"K/W", {}}};
constexpr std::array kHeatCapacities{Unit{"J/K", {}}, Unit{"mJ/K", ten(-3)}};
constexpr std::array kCapacitances{Unit{"F", {}}, Unit{"pF", ten(-12)}, Unit{"nF", ten(-9)},
                                   Unit{"uF", ten(-6)}};

// Enough for a picosecond written in seconds.
constexpr int kMaxDecimals = 12;

std::vector<std::string_view> names(const UnitFamily& family) {
  std::vector<std::string_view> result;
  for (const Unit& unit : family.units) {
    result.push_back(unit.name);
  }
  return result;
}

struct NumberInUnit {
  Decimal number;
  Scale scale;
};

Parsed<NumberInUnit> parse_number_in_unit(std::string_view text, const UnitFamily& family) {
  const Parsed<NumberAndRest> split = split_number(text);
  if (!split.value) {
    return refused<NumberInUnit>(
        fmt::format("{} ({} is expected, such as 3 {})", split.reason, family.kind, family.example));
  }
  const auto& [number, digits, rest] = *split.value;
  if (rest.empty()) {
    const bool has_several = family.units.size() > 1;
    return refused<NumberInUnit>(
        fmt::format("has no unit; write it as {} {}{} ({})", digits, family.example,
                    has_several ? fmt::format(", {} {}, ...", digits, family.example2) : "", family.kind));
  }
  if (number.negative && !family.is_signed) {
    return refused<NumberInUnit>(fmt::format("is negative, which {} cannot be", family.kind));
  }
  for (const Unit& unit : family.units) {
    if (unit.name == rest) {
      return accepted(NumberInUnit{number, unit.scale});
    }
  }
  const std::vector<std::string_view> known = names(family);
  const std::optional<std::string> near = did_you_mean(rest, known);
  return refused<NumberInUnit>(fmt::format("has the unknown unit '{}'{} ({} is expected, in {})", rest,
                                           near ? fmt::format("; did you mean '{}'?", *near) : "",
                                           family.kind, fmt::join(known, ", ")));
}

/// Length of a text, and more for numbers that are hard to read because they have many digits before the
/// point.
std::size_t cost(std::string_view text) {
  constexpr std::size_t kReadable = 4;
  const std::size_t digits = std::min(text.find_first_of(". e"), text.size());
  return text.size() + (digits > kReadable ? digits - kReadable : 0);
}

/// Keeps the more readable text; of two equally good ones the later.
void keep_better(std::string& best, std::string candidate) {
  if (best.empty() || cost(candidate) <= cost(best)) {
    best = std::move(candidate);
  }
}

}  // namespace

template <>
const UnitFamily& unit_family<BytesUnit>() {
  static constexpr UnitFamily kFamily{"a size in bytes", kBytes, "B", "MiB"};
  return kFamily;
}
template <>
const UnitFamily& unit_family<PicosecondsUnit>() {
  static constexpr UnitFamily kFamily{"a time", kTimes, "ns", "us", Rounding::nearest};
  return kFamily;
}
template <>
const UnitFamily& unit_family<HertzUnit>() {
  static constexpr UnitFamily kFamily{"a frequency", kFrequencies, "MHz", "GHz", Rounding::nearest};
  return kFamily;
}
template <>
const UnitFamily& unit_family<BytesPerSecondUnit>() {
  static constexpr UnitFamily kFamily{"a rate in bytes per second", kRates, "GB/s", "GiB/s"};
  return kFamily;
}
template <>
const UnitFamily& unit_family<CelsiusUnit>() {
  static constexpr UnitFamily kFamily{"a temperature", kTemperatures, "C", "C", Rounding::exact, true};
  return kFamily;
}
template <>
const UnitFamily& unit_family<WattsUnit>() {
  static constexpr UnitFamily kFamily{"a power", kPowers, "W", "mW"};
  return kFamily;
}
template <>
const UnitFamily& unit_family<JoulesUnit>() {
  static constexpr UnitFamily kFamily{"an energy", kEnergies, "J", "mJ"};
  return kFamily;
}
template <>
const UnitFamily& unit_family<VoltsUnit>() {
  static constexpr UnitFamily kFamily{"a voltage", kVoltages, "V", "mV"};
  return kFamily;
}
template <>
const UnitFamily& unit_family<KelvinPerWattUnit>() {
  static constexpr UnitFamily kFamily{"a thermal resistance", kThermalResistances, "K/W", "K/W"};
  return kFamily;
}
template <>
const UnitFamily& unit_family<JoulesPerKelvinUnit>() {
  static constexpr UnitFamily kFamily{"a heat capacity", kHeatCapacities, "J/K", "mJ/K"};
  return kFamily;
}
template <>
const UnitFamily& unit_family<FaradsUnit>() {
  static constexpr UnitFamily kFamily{"a capacitance", kCapacitances, "pF", "nF"};
  return kFamily;
}

Parsed<std::int64_t> parse_integer_quantity(std::string_view text, const UnitFamily& family) {
  const Parsed<NumberInUnit> parsed = parse_number_in_unit(text, family);
  if (!parsed.value) {
    return refused<std::int64_t>(parsed.reason);
  }
  return to_integer(parsed.value->number, parsed.value->scale, family.rounding, family.units.front().name);
}

Parsed<double> parse_real_quantity(std::string_view text, const UnitFamily& family) {
  const Parsed<NumberInUnit> parsed = parse_number_in_unit(text, family);
  if (!parsed.value) {
    return refused<double>(parsed.reason);
  }
  return to_real(parsed.value->number, parsed.value->scale);
}

std::string integer_quantity_text(std::int64_t value, const UnitFamily& family) {
  std::string best;
  for (const Unit& unit : family.units) {
    const std::string number = exact_quotient(value, unit.scale, kMaxDecimals);
    const bool below_one = number.starts_with("0.") || number.starts_with("-0.");
    const bool is_base = &unit == &family.units.front();
    if (number.empty() || below_one || !unit.printed || (value == 0 && !is_base)) {
      continue;
    }
    keep_better(best, fmt::format("{} {}", number, unit.name));
  }
  return best;
}

std::string real_quantity_text(double value, const UnitFamily& family) {
  std::string best;
  for (const Unit& unit : family.units) {
    const double size = std::pow(10.0, unit.scale.power10) * static_cast<double>(unit.scale.factor);
    const bool is_base = &unit == &family.units.front();
    if (!is_base && std::abs(value) < size) {
      continue;
    }
    std::string text = fmt::format("{} {}", value / size, unit.name);
    const Parsed<double> back = parse_real_quantity(text, family);
    if (is_base || (back.value && *back.value == value)) {
      keep_better(best, std::move(text));
    }
  }
  return best;
}

std::string quantity_pattern(const UnitFamily& family) {
  return fmt::format(R"(^{}(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)? *({})$)",
                     family.is_signed ? "-?" : "", fmt::join(names(family), "|"));
}

namespace {

/// A number without unit.
Parsed<Decimal> parse_bare_number(std::string_view text, std::string_view kind) {
  const Parsed<NumberAndRest> split = split_number(text);
  if (!split.value) {
    return refused<Decimal>(fmt::format("{} ({} is expected)", split.reason, kind));
  }
  if (!split.value->rest.empty()) {
    return refused<Decimal>(
        fmt::format("has '{}' after the number, where {} without unit is expected", split.value->rest, kind));
  }
  return accepted(split.value->number);
}

}  // namespace

Parsed<std::int64_t> Grammar<std::int64_t>::parse(std::string_view text) {
  const Parsed<Decimal> number = parse_bare_number(text, kind());
  if (!number.value) {
    return refused<std::int64_t>(number.reason);
  }
  return to_integer(*number.value, {}, Rounding::exact, "");
}
std::string Grammar<std::int64_t>::to_text(const std::int64_t& value) {
  return fmt::format("{}", value);
}

Parsed<double> Grammar<double>::parse(std::string_view text) {
  const Parsed<Decimal> number = parse_bare_number(text, kind());
  return number.value ? to_real(*number.value, {}) : refused<double>(number.reason);
}
std::string Grammar<double>::to_text(const double& value) {
  return fmt::format("{}", value);
}

Parsed<bool> Grammar<bool>::parse(std::string_view text) {
  if (text == "true") {
    return accepted(true);
  }
  if (text == "false") {
    return accepted(false);
  }
  return refused<bool>("is neither 'true' nor 'false', the only two ways to write it");
}
std::string Grammar<bool>::to_text(const bool& value) {
  return value ? "true" : "false";
}

std::string choice_list(std::span<const std::string_view> choices) {
  return fmt::format("{}", fmt::join(choices, ", "));
}

std::string unknown_choice(std::string_view text, std::span<const std::string_view> choices) {
  const std::optional<std::string> near = did_you_mean(text, choices);
  return fmt::format("is not one of {}{}", choice_list(choices),
                     near ? fmt::format("; did you mean '{}'?", *near) : "");
}

}  // namespace kvsim
