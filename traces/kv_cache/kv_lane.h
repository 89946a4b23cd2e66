// SPDX-License-Identifier: Apache-2.0
// Which token is in which cell: the book-keeping of one lane, the cells of one head in one layer (or of all,
// where all keep the same tokens).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "configs/units/index.h"

namespace kvsim::trace {

/// Cells in the cache's own format, and those in F16 for tokens that are kept precise.
enum class KvPoolKind : std::uint8_t { main, wide };
inline constexpr std::array kKvPools{KvPoolKind::wide, KvPoolKind::main};

struct KvCell {
  KvPoolKind pool = KvPoolKind::main;
  std::uint32_t index = 0;

  auto operator<=>(const KvCell&) const = default;
};

/// Cells of a pool side by side.
struct CellRun {
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  bool operator==(const CellRun&) const = default;
};

struct Resident {
  Token token{};
  float score = 0;  ///< what attention has said of it so far; the policy knows what it means
};

class KvLane {
 public:
  /// Takes the lowest free cell.
  KvCell place(KvPoolKind pool, Token token, float score = 0);
  void release(KvCell cell);
  void clear();

  /// Tokens in both pools.
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] std::uint32_t size(KvPoolKind pool) const {
    return end(pool) - static_cast<std::uint32_t>(cells(pool).free.size());
  }
  /// Cells of a pool that are or were in use: those to look at.
  [[nodiscard]] std::uint32_t end(KvPoolKind pool) const {
    return static_cast<std::uint32_t>(cells(pool).residents.size());
  }
  [[nodiscard]] const std::optional<Resident>& at(KvCell cell) const {
    return cells(cell.pool).residents[cell.index];
  }
  /// The cells in use, in order: found once after each change, as all heads and layers of a step ask for
  /// them.
  [[nodiscard]] const std::vector<CellRun>& runs(KvPoolKind pool) const;
  void credit(KvCell cell, float score) { cells(cell.pool).residents[cell.index]->score += score; }
  /// Every token's cell has its number, and none is missing: what was first in has never been out.
  [[nodiscard]] bool in_order() const { return in_order_; }
  /// Forgets the tokens from `tokens` on. Precondition: in_order().
  void truncate(std::uint32_t tokens);

 private:
  struct Cells {
    std::vector<std::optional<Resident>> residents;
    std::vector<std::uint32_t> free;  // a heap, the lowest on top
    mutable std::optional<std::vector<CellRun>> runs;
  };
  [[nodiscard]] const Cells& cells(KvPoolKind pool) const { return cells_[static_cast<std::size_t>(pool)]; }
  [[nodiscard]] Cells& cells(KvPoolKind pool) { return cells_[static_cast<std::size_t>(pool)]; }

  std::array<Cells, 2> cells_;
  std::uint32_t size_ = 0;
  bool in_order_ = true;
};

}  // namespace kvsim::trace
