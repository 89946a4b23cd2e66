// SPDX-License-Identifier: Apache-2.0
// Whether every bank is refreshed often enough: once per tREFI on average, at most so many refreshes owed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "models/dram/command.h"

namespace kvsim::model::legality {

class RefreshWatch {
 public:
  struct Shape {
    std::size_t ranks = 1;
    std::size_t banks = 8;  ///< of a rank
  };
  /// `interval` is tREFI in clocks, `postponed` how many refreshes a bank may be owed.
  RefreshWatch(Shape shape, double interval, std::int64_t postponed);

  /// The first bank that had to be refreshed before `clock` and was not. It and the others of its rank are
  /// then granted another interval, so that each is not told with every command.
  [[nodiscard]] std::optional<std::size_t> late_bank(Cycle clock) {
    return clock <= deadline_ ? std::nullopt : find_late(clock);
  }

  /// A refresh of `first_bank` and every so manyth after it, up to the rank's end.
  void refreshed(std::size_t first_bank, std::size_t step, Cycle clock);
  /// In self-refresh the rank refreshes itself, and what it is owed stays (JESD79-4, "self-refresh
  /// operation").
  void asleep(std::size_t rank, Cycle clock);
  void awake(std::size_t rank, Cycle clock);

 private:
  static constexpr Cycle kNever = std::numeric_limits<Cycle>::max();
  /// Refreshes that may be made ahead of time and still count.
  static constexpr Cycle kAhead = 8;

  /// A point in time in clocks and 2^-32 of a clock, as a tREFI is not a whole number of clocks.
  struct Instant {
    Cycle clock = 0;
    std::uint64_t part = 0;
  };

  [[nodiscard]] Instant later(Instant instant, std::int64_t intervals) const;
  [[nodiscard]] std::optional<std::size_t> find_late(Cycle clock);
  void find_deadline();

  Shape shape_;
  std::int64_t postponed_;
  Instant interval_;
  std::vector<Instant> due_;      ///< by bank: when the next refresh is due
  std::vector<bool> asleep_;      ///< by rank
  std::vector<Cycle> asleep_at_;  ///< by rank
  Cycle deadline_ = 0;            ///< of the bank that comes first
};

}  // namespace kvsim::model::legality
