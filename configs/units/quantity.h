// SPDX-License-Identifier: Apache-2.0
// Physical quantities as types: a byte count cannot be added to a time, and nothing converts by itself.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>

namespace kvsim {

/// A number with a unit. `Unit` is a tag type and `Rep` the number that holds the value in the base unit.
/// Integers carry what is counted or must add up exactly (bytes, picoseconds, hertz); doubles what is
/// measured.
template <class Unit, class Rep>
class Quantity {
 public:
  using rep = Rep;

  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep value) : value_(value) {}

  /// The value in the base unit (bytes, picoseconds, hertz, ...).
  [[nodiscard]] constexpr Rep count() const { return value_; }
  [[nodiscard]] constexpr double as_double() const { return static_cast<double>(value_); }

  constexpr auto operator<=>(const Quantity&) const = default;

  constexpr Quantity& operator+=(Quantity other) { return value_ += other.value_, *this; }
  constexpr Quantity& operator-=(Quantity other) { return value_ -= other.value_, *this; }

  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value_ + b.value_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value_ - b.value_); }
  friend constexpr Quantity operator-(Quantity a) { return Quantity(-a.value_); }
  friend constexpr Quantity operator*(Quantity a, Rep factor) { return Quantity(a.value_ * factor); }
  friend constexpr Quantity operator*(Rep factor, Quantity a) { return Quantity(a.value_ * factor); }
  friend constexpr Quantity operator/(Quantity a, Rep divisor) { return Quantity(a.value_ / divisor); }
  /// How many times `b` goes into `a`, as a ratio without unit.
  [[nodiscard]] friend constexpr double ratio(Quantity a, Quantity b) {
    return a.as_double() / b.as_double();
  }

 private:
  Rep value_{};
};

using Bytes = Quantity<struct BytesUnit, std::int64_t>;
using Picoseconds = Quantity<struct PicosecondsUnit, std::int64_t>;
using Hertz = Quantity<struct HertzUnit, std::int64_t>;
using BytesPerSecond = Quantity<struct BytesPerSecondUnit, double>;
using Celsius = Quantity<struct CelsiusUnit, double>;
using Watts = Quantity<struct WattsUnit, double>;
using Joules = Quantity<struct JoulesUnit, double>;
using Volts = Quantity<struct VoltsUnit, double>;
using KelvinPerWatt = Quantity<struct KelvinPerWattUnit, double>;
using JoulesPerKelvin = Quantity<struct JoulesPerKelvinUnit, double>;
using Farads = Quantity<struct FaradsUnit, double>;

inline constexpr double kPicosecondsPerSecond = 1e12;

/// Time to move `bytes` at `rate`, rounded to the nearest picosecond.
[[nodiscard]] constexpr Picoseconds operator/(Bytes bytes, BytesPerSecond rate) {
  return Picoseconds(
      static_cast<std::int64_t>(bytes.as_double() / rate.count() * kPicosecondsPerSecond + 0.5));
}
/// Average rate of `bytes` over `time`.
[[nodiscard]] constexpr BytesPerSecond operator/(Bytes bytes, Picoseconds time) {
  return BytesPerSecond(bytes.as_double() / time.as_double() * kPicosecondsPerSecond);
}

[[nodiscard]] constexpr double seconds(Picoseconds time) {
  return time.as_double() / kPicosecondsPerSecond;
}
[[nodiscard]] constexpr double milliseconds(Picoseconds time) {
  return time.as_double() / 1e9;
}
[[nodiscard]] constexpr double nanoseconds(Picoseconds time) {
  return time.as_double() / 1e3;
}

/// One period of a clock, rounded to the nearest picosecond. Precondition: `clock` > 0.
[[nodiscard]] constexpr Picoseconds period(Hertz clock) {
  return Picoseconds(static_cast<std::int64_t>(kPicosecondsPerSecond / clock.as_double() + 0.5));
}

namespace literals {
constexpr Bytes operator""_B(unsigned long long v) {
  return Bytes(static_cast<std::int64_t>(v));
}
constexpr Bytes operator""_KiB(unsigned long long v) {
  return Bytes(static_cast<std::int64_t>(v << 10));
}
constexpr Bytes operator""_MiB(unsigned long long v) {
  return Bytes(static_cast<std::int64_t>(v << 20));
}
constexpr Bytes operator""_GiB(unsigned long long v) {
  return Bytes(static_cast<std::int64_t>(v << 30));
}
constexpr Picoseconds operator""_ps(unsigned long long v) {
  return Picoseconds(static_cast<std::int64_t>(v));
}
constexpr Picoseconds operator""_ns(unsigned long long v) {
  return Picoseconds(static_cast<std::int64_t>(v * 1'000));
}
constexpr Picoseconds operator""_us(unsigned long long v) {
  return Picoseconds(static_cast<std::int64_t>(v * 1'000'000));
}
constexpr Picoseconds operator""_ms(unsigned long long v) {
  return Picoseconds(static_cast<std::int64_t>(v * 1'000'000'000));
}
constexpr Hertz operator""_MHz(unsigned long long v) {
  return Hertz(static_cast<std::int64_t>(v * 1'000'000));
}
constexpr Hertz operator""_GHz(unsigned long long v) {
  return Hertz(static_cast<std::int64_t>(v * 1'000'000'000));
}
constexpr BytesPerSecond operator""_GBps(unsigned long long v) {
  return BytesPerSecond(static_cast<double>(v) * 1e9);
}
}  // namespace literals
}  // namespace kvsim
