// SPDX-License-Identifier: Apache-2.0
// The flash translation layer's book: which logical unit lies where, which blocks are free, what is
// collected. Knows no time. Blocks of all dies are written, collected and erased together, as a superblock.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "configs/spec/storage_spec.h"
#include "models/storage/map_table.h"

namespace kvsim::model {

/// Units that the collector copies.
struct UnitMove {
  Unit from = 0;
  Unit to = 0;
  Unit count = 0;
};

struct EraseCounts {
  std::uint32_t least = 0;
  std::uint32_t most = 0;
  std::uint64_t total = 0;  ///< of superblocks
};

class Ftl {
 public:
  explicit Ftl(const config::StoragePartSpec& part);

  [[nodiscard]] const MapTable& map() const { return map_; }
  [[nodiscard]] Unit units() const { return units_; }
  [[nodiscard]] Unit set_units() const { return set_units_; }
  [[nodiscard]] bool is_slc(Unit physical) const { return blocks_[physical / block_units_].slc; }
  [[nodiscard]] std::int64_t die_of(Unit physical) const {
    return (physical % block_units_ / set_units_) % dies_;
  }

  /// Writes the first of `count` units, as many as go in one piece. None: there is no free block left, and
  /// collect() must make one.
  [[nodiscard]] std::optional<UnitRun> write(Unit logical, Unit count);
  /// The same past the SLC cache, as what was written long ago.
  [[nodiscard]] std::optional<UnitRun> write_native(Unit logical, Unit count);
  void discard(Unit logical, Unit count);

  /// Units that must be collected before the next write, so that blocks do not run out.
  [[nodiscard]] bool is_collection_due() const { return debt_ >= 1; }
  /// True if there is something that an idle device would collect.
  [[nodiscard]] bool has_idle_work() const;
  /// Copies the next few units of the block that has the fewest, and erases it when it is empty. `moves` gets
  /// what was copied, at most a page set. False if no block has anything to win.
  [[nodiscard]] bool collect(std::vector<UnitMove>& moves);
  /// The superblocks erased since the last call.
  [[nodiscard]] std::uint32_t take_erased();

  [[nodiscard]] EraseCounts erase_counts() const;
  [[nodiscard]] std::int64_t free_blocks() const { return free_; }
  [[nodiscard]] std::int64_t slc_blocks() const { return slc_; }
  [[nodiscard]] std::size_t memory() const;

 private:
  enum class State : std::uint8_t { free, open, closed, collected };
  struct LogEntry {
    Unit logical;
    Unit count;
  };
  struct Block {
    State state = State::free;
    bool slc = false;
    std::uint32_t erases = 0;
    Unit written = 0;
    Unit valid = 0;
    std::vector<LogEntry> log;  ///< what was written into it, in order
  };
  using Stream = std::optional<std::uint32_t>;  ///< the block that is written

  [[nodiscard]] Unit room(const Block& block) const {
    return (block.slc ? slc_units_ : block_units_) - block.written;
  }
  bool open(Stream& stream, bool slc, std::int64_t reserve);
  UnitRun append(std::uint32_t block, Unit logical, Unit count);
  std::optional<UnitRun> write_to(Stream& stream, bool slc, UnitRun run);
  void invalidate(Unit logical, Unit count);
  [[nodiscard]] bool is_slc_full() const { return slc_quota_ > 0 && slc_ >= slc_quota_; }
  [[nodiscard]] std::optional<std::uint32_t> best_victim(bool slc) const;
  bool choose_victim();
  void owe(Unit written);
  void erase_victim();

  Unit units_;
  Unit set_units_;
  Unit dies_;
  Unit block_units_;  ///< of a superblock in native cells,
  Unit slc_units_;    ///< and with one bit per cell
  std::int64_t slc_quota_;
  MapTable map_;
  std::vector<Block> blocks_;
  std::int64_t free_;
  std::int64_t slc_ = 0;
  Stream host_, native_, collector_;
  std::optional<std::uint32_t> victim_;
  std::size_t entry_ = 0;  ///< of the victim's log, up to which it has been collected,
  Unit in_entry_ = 0;      ///< units of that entry that have been looked at,
  Unit looked_ = 0;        ///< and of the block
  double debt_ = 0;
  std::uint32_t erased_ = 0;
};

}  // namespace kvsim::model
