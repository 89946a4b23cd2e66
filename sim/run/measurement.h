// SPDX-License-Identifier: Apache-2.0
// What is measured of an operator or a step, as numbers that can be averaged, scaled and interpolated.
#pragma once

#include <array>
#include <cstddef>

#include "configs/units/quantity.h"
#include "models/accounting/time_account.h"
#include "models/memory_path/memory_path.h"

namespace kvsim::sim {

/// Time in picoseconds, its owners, and what DRAM did. Sums of whole picoseconds are exact in a double up to
/// two hours.
class Measurement {
 public:
  Measurement() = default;
  Measurement(const model::TimeAccount& path, const model::MemoryCounters& memory,
              const model::DramActivity& activity);

  [[nodiscard]] double picoseconds() const { return values_[kTime]; }
  [[nodiscard]] double part(model::Owner owner) const {
    return values_[kParts + static_cast<std::size_t>(owner)];
  }
  [[nodiscard]] double bytes_read() const { return values_[kMemory]; }
  [[nodiscard]] double bytes_written() const { return values_[kMemory + 1]; }
  [[nodiscard]] double row_hits() const { return values_[kMemory + 2]; }
  [[nodiscard]] double row_misses() const { return values_[kMemory + 3]; }
  [[nodiscard]] double row_conflicts() const { return values_[kMemory + 4]; }

  /// To whole commands and picoseconds.
  [[nodiscard]] model::DramActivity activity() const;

  [[nodiscard]] double largest_part() const;

  /// Value by value.
  [[nodiscard]] Measurement times(const Measurement& other) const;
  Measurement& operator+=(const Measurement& other);
  [[nodiscard]] friend Measurement operator+(Measurement a, const Measurement& b) { return a += b; }
  [[nodiscard]] friend Measurement operator*(const Measurement& m, double factor) {
    Measurement scaled = m;
    for (double& value : scaled.values_) {
      value *= factor;
    }
    return scaled;
  }
  /// `a` at 0, `b` at 1, and on the line through both elsewhere.
  [[nodiscard]] static Measurement on_line(const Measurement& a, const Measurement& b, double at);

 private:
  static constexpr std::size_t kTime = 0;
  static constexpr std::size_t kParts = 1;
  static constexpr std::size_t kMemory = kParts + model::kOwners;

  static constexpr std::size_t kActivity = kMemory + 5;
  static constexpr std::size_t kBackground = kActivity + 5;

  std::array<double, kBackground + model::kBackgrounds> values_{};
};

}  // namespace kvsim::sim
