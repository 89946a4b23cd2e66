// SPDX-License-Identifier: Apache-2.0
// An engine's window over the lines it has in flight, for row trains: memory answers at once, so that the
// rules are plain recurrences.
#pragma once

#include <cstdint>
#include <vector>

#include "models/dram/fifo.h"
#include "models/stream/engine_stream.h"

namespace kvsim::model {

/// Consecutive lines that are asked for together.
struct LineGroup {
  trace::Address address = 0;
  std::int64_t lines = 0;
  trace::Access access = trace::Access::read;
  Owner owner = Owner::other_data;
  std::int64_t asked =
      0;  ///< when, in picoseconds: no line's data could begin before this plus the time of those before
  std::uint64_t store = 0;  ///< of a store: its number
};

/// What memory says to a group that was read.
struct GroupDelivery {
  std::int64_t first = 0;    ///< its first line arrives,
  std::int64_t spacing = 0;  ///< and each further one so much later
  std::int64_t behind_data = 0;
  std::int64_t held = 0;
  Owner held_by = Owner::queue;
};

class TrainStream final : public EngineStream {
 public:
  static constexpr std::int64_t kNotYet = std::numeric_limits<std::int64_t>::max();

  /// A group holds at most `most_lines` lines of one block of `granule`, asked for within `spread` a line.
  struct Groups {
    Bytes granule;
    std::int64_t most_lines = 1;
    Picoseconds spread;
  };
  TrainStream(const StreamWindow& window, const Groups& groups);

  void begin(Picoseconds now) override;
  void push(const Segment& segment) override;
  [[nodiscard]] bool idle() const override { return segments_.empty(); }

  /// When the next line is asked for; kNotYet while that hangs on a store or nothing is queued.
  [[nodiscard]] std::int64_t next() const { return next_; }
  /// Takes the next group. Precondition: next() is known. A read must be delivered before anything else is
  /// asked.
  LineGroup take();
  void deliver(const GroupDelivery& delivery);
  /// Memory has taken the store of this number.
  void taken(std::uint64_t store, std::int64_t time);

 private:
  [[nodiscard]] std::int64_t& used(std::uint64_t line) { return used_[line & mask_]; }
  [[nodiscard]] std::int64_t& arrival(std::uint64_t line) { return arrivals_[line & mask_]; }

  void enter_segment();
  void enter_row();
  void plan();
  void plan_store();
  [[nodiscard]] std::int64_t lines_at_hand() const;
  [[nodiscard]] std::int64_t asked_at(std::uint64_t line);
  void arrive(std::int64_t time);
  void use(std::int64_t arrived, const GroupDelivery& delivery);
  void consume(std::int64_t lines);

  // What does not change.
  std::uint64_t in_flight_, ahead_, stores_in_flight_;
  std::int64_t training_;
  std::int64_t page_mask_,
      block_mask_;  ///< of addresses within a page, and within what a group must not leave
  std::int64_t most_lines_, spread_;
  std::uint64_t mask_;        ///< of the rings by line,
  std::uint64_t store_mask_;  ///< and by store

  Fifo<Segment> segments_;
  // Of the front segment:
  bool write_ = false;
  std::int64_t per_line_ = 0;  ///< work on one line
  std::int64_t lead_in_ = 0;   ///< before the next line, if that is the segment's first
  std::uint64_t demand_ = 0;   ///< lines that loads reach ahead
  std::int64_t row_ = 0;
  std::int64_t row_at_ = 0;   ///< the row's next line,
  std::int64_t row_end_ = 0;  ///< and the end of its last

  std::int64_t page_ = -1;  ///< of the reads
  std::int64_t page_lines_ = 0;

  // Rings by line since begin(), the first of which is 1. What lies before it is there and used.
  std::uint64_t lines_ = 0;
  std::vector<std::int64_t> used_;
  std::vector<std::int64_t> arrivals_;  ///< in order of time

  std::uint64_t stores_ = 0;
  std::uint64_t stores_known_ = 0;  ///< that memory has taken, all up to here
  std::int64_t stores_taken_ = 0;   ///< when the last of these was
  std::vector<std::int64_t> taken_;

  LineGroup group_;  ///< under way
  std::int64_t next_ = kNotYet;
  std::int64_t last_ = 0;  ///< when the last line was asked for
  std::int64_t used_last_ = 0;
};

}  // namespace kvsim::model
