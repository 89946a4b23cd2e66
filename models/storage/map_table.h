// SPDX-License-Identifier: Apache-2.0
// Where each logical unit lies. Stretches that lie in one piece cost a few bytes, only scattered ones a
// table.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace kvsim::model {

using Unit = std::uint32_t;
inline constexpr Unit kNowhere = 0xffff'ffff;
/// Entries of a mapping page: 4 KiB of 4 B each.
inline constexpr Unit kMapPageUnits = 1024;

/// Units that are next to each other, logically and physically. `physical` is kNowhere if they are unwritten.
struct UnitRun {
  Unit logical = 0;
  Unit physical = 0;
  Unit count = 0;

  bool operator==(const UnitRun&) const = default;
};

class MapTable {
 public:
  explicit MapTable(Unit units);

  [[nodiscard]] Unit find(Unit logical) const {
    const Page& page = pages_[logical / kMapPageUnits];
    const Unit at = logical % kMapPageUnits;
    if (page.table) {
      return page.table[at];
    }
    return at < page.filled ? page.base + at : kNowhere;
  }
  /// The longest run that begins at `logical`, of at most `count`.
  [[nodiscard]] UnitRun run(Unit logical, Unit count) const;
  /// `run.physical` may be kNowhere: the units are forgotten.
  void set(UnitRun run);
  /// Bytes that it takes in the simulator.
  [[nodiscard]] std::size_t memory() const;

 private:
  struct Page {
    Unit base = 0;
    Unit filled = 0;  ///< of the first units, which lie from `base` on
    std::unique_ptr<Unit[]> table;
  };
  void set_in_page(Page& page, Unit at, Unit physical, Unit count);
  void scatter(Page& page);

  std::vector<Page> pages_;
  std::size_t tables_ = 0;
};

}  // namespace kvsim::model
