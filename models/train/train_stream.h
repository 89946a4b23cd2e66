// SPDX-License-Identifier: Apache-2.0
// An engine's window over the lines it has in flight, for row trains: memory answers at once, so that the
// rules are plain recurrences.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "models/stream/engine_stream.h"
#include "models/stream/segment_walk.h"

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
  [[nodiscard]] bool idle() const override { return walk_.empty(); }

  /// When the next line is asked for; kNotYet while that hangs on a store or nothing is queued.
  [[nodiscard]] std::int64_t next() const { return next_; }
  /// Takes the next group. Precondition: next() is known. A read must be delivered before anything else is
  /// asked.
  const LineGroup& take() {
    if (regulator_.acts()) {
      regulator_.pass(Picoseconds(next_));
    }
    return write_ ? take_stores() : take_reads();
  }
  void deliver(const GroupDelivery& delivery);
  /// Memory has taken the store of this number.
  void taken(std::uint64_t store, std::int64_t time);

 private:
  /// When the window lets the read `further` lines behind the next one go: enough lines before it have
  /// arrived and enough have been used.
  [[nodiscard]] std::int64_t asked_at(std::int64_t further) const {
    const std::int64_t line = lines_ + 1 + further;
    return std::max(last_, std::max(arrival_[line - in_flight_], used_[line - ahead_]));
  }
  [[nodiscard]] std::int64_t lines_at_hand() const {
    const std::int64_t end = std::min(walk_.row_end(), (walk_.at() | block_mask_) + 1);
    return std::min((end - walk_.at()) / kLineBytes, most_lines_);
  }

  const LineGroup& take_reads();
  const LineGroup& take_stores();
  void use(std::int64_t arrived, const GroupDelivery& delivery);
  void stall(std::int64_t time, const GroupDelivery& delivery);
  void enter_segment();
  void plan();
  void plan_store();
  void make_room();

  // What does not change.
  std::int64_t in_flight_, ahead_;
  std::uint64_t stores_in_flight_;
  std::int64_t training_;
  std::int64_t page_mask_,
      block_mask_;  ///< of addresses within a page, and within what a group must not leave
  std::int64_t most_lines_, spread_;
  Regulator regulator_;
  std::uint64_t store_mask_;  ///< of the ring by store

  SegmentWalk walk_;
  // Of the segment under way:
  bool write_ = false;
  std::int64_t per_line_ = 0;  ///< work on one line
  std::int64_t lead_in_ = 0;   ///< before the next line, if that is the segment's first
  std::int64_t demand_ = 0;    ///< lines that loads reach ahead

  std::int64_t page_ = -1;  ///< of the reads
  std::int64_t page_lines_ = 0;

  // By line: what the window can still ask for, and room to go on. What lies before begin() is there and
  // used.
  std::int64_t lines_ = 0;             ///< the last one
  std::vector<std::int64_t> used_;     ///< when,
  std::vector<std::int64_t> arrival_;  ///< and arrivals in order of time

  std::uint64_t stores_ = 0;
  std::uint64_t stores_known_ = 0;  ///< that memory has taken, all up to here
  std::int64_t stores_taken_ = 0;   ///< when the last of these was
  std::vector<std::int64_t> taken_;

  LineGroup group_;         ///< under way,
  LineGroup stores_group_;  ///< and the last that was written
  std::int64_t next_ = kNotYet;
  std::int64_t last_ = 0;  ///< when the last line was asked for
  std::int64_t used_last_ = 0;
};

// Every group goes through these, which therefore are part of the loop that calls them.

[[gnu::always_inline]] inline const LineGroup& TrainStream::take_reads() {
  const auto address = static_cast<trace::Address>(walk_.at());
  std::int64_t lines = 1;
  last_ = next_;
  if (page_lines_ >= training_) {
    const std::int64_t most = lines_at_hand();
    for (; lines < most; ++lines) {
      const std::int64_t asked = asked_at(lines);
      if (asked > next_ + lines * spread_) {
        break;
      }
      last_ = asked;
    }
  }
  page_lines_ += lines;
  group_.address = address;
  group_.lines = lines;
  group_.asked = next_;
  return group_;
}

inline void TrainStream::use(std::int64_t arrived, const GroupDelivery& delivery) {
  const std::int64_t free = used_last_ + lead_in_;
  lead_in_ = 0;
  used_last_ = std::max(free, arrived) + per_line_;
  if (arrived > free) {
    stall(arrived - free, delivery);
  }
}

/// Had the line not waited in the memory system, the stall would be shorter by as much; the rest is the way
/// there and back, which no prefetch hid.
inline void TrainStream::stall(std::int64_t time, const GroupDelivery& delivery) {
  const std::int64_t in_memory = std::min(time, delivery.held + delivery.behind_data);
  const std::int64_t held = delivery.behind_data == 0 ? in_memory : std::min(in_memory, delivery.held);
  engine_time_.stalls.add(Owner::latency, Picoseconds(time - in_memory));
  engine_time_.stalls.add(delivery.held_by, Picoseconds(held));
  engine_time_.behind_data += Picoseconds(in_memory - held);
}

[[gnu::always_inline]] inline void TrainStream::deliver(const GroupDelivery& delivery) {
  if (lines_ + group_.lines >= static_cast<std::int64_t>(used_.size())) {
    make_room();
  }
  std::int64_t arrived = delivery.first;
  for (std::int64_t i = group_.lines; i > 0; --i, arrived += delivery.spacing) {
    std::int64_t* at = &arrival_[++lines_];
    for (; at[-1] > arrived; --at) {
      *at = at[-1];
    }
    *at = arrived;
    use(arrived, delivery);
    used_[lines_] = used_last_;
  }
  used_until_ = Picoseconds(used_last_);
  if (walk_.advance(group_.lines)) {
    finished_.push(used_until_);
    enter_segment();
  }
  plan();
}

inline void TrainStream::plan() {
  if (write_ || walk_.empty()) {
    plan_store();
    return;
  }
  const std::int64_t page = walk_.at() & ~page_mask_;
  if (page != page_) {
    page_ = page;
    page_lines_ = 0;
  }
  next_ = asked_at(0);
  if (page_lines_ < training_) {
    next_ = std::max(next_, used_[lines_ + 1 - demand_]);
  }
  if (regulator_.acts()) {
    next_ = regulator_.earliest(Picoseconds(next_)).count();
  }
}

}  // namespace kvsim::model
