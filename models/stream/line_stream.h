// SPDX-License-Identifier: Apache-2.0
// The cache lines one engine keeps in flight: which it may ask for next, and when it has used them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "configs/units/quantity.h"
#include "models/accounting/time_account.h"
#include "models/stream/engine_stream.h"
#include "models/stream/segment_walk.h"
#include "traces/record/record.h"

namespace kvsim::model {

/// What an engine asks of memory.
struct LineRequest {
  trace::Address address = 0;
  trace::Access access = trace::Access::read;
  Owner owner = Owner::other_data;
  std::uint32_t slot = 0;  ///< the stream's name for it, among its reads or its stores
};

/// What comes back for a line that was read.
struct Delivery {
  Picoseconds arrival{};
  Picoseconds behind_data{};  ///< it waited for others' data beats,
  Picoseconds held{};         ///< and for something else:
  Owner held_by = Owner::queue;
};

/// A line may be asked for while fewer than `in_flight` are on their way and fewer than `ahead` wait to be
/// used; lines are used in order, each after it arrived and the one before was used.
class LineStream final : public EngineStream {
 public:
  explicit LineStream(const StreamWindow& window);

  void begin(Picoseconds now) override;
  void push(const Segment& segment) override;
  [[nodiscard]] bool idle() const override { return walk_.empty() && used_ == lines_; }

  /// Of the line that was asked for last.
  [[nodiscard]] std::uint8_t priority() const { return promised_ ? window_.priority : 0; }
  /// When the next line is asked for: kNever while that hangs on a line in flight or nothing is queued.
  [[nodiscard]] Picoseconds next_issue() const { return issue_; }
  LineRequest issue();
  /// The read in `slot` arrives.
  void arrived(std::uint32_t slot, const Delivery& delivery);
  /// Memory has taken the store in `slot` at `time`.
  void taken(std::uint32_t slot, Picoseconds time);

 private:
  /// What is known of a line that was asked for.
  struct Line {
    Delivery delivery;
    Picoseconds used{};
    Picoseconds per_line{};
    Picoseconds lead_in{};
    bool ends_segment = false;
  };

  // Lines and stores are numbered from 1, and each ring holds the latest.
  [[nodiscard]] Line& line(std::int64_t number) { return line_ring_[slot_of(number, line_ring_.size())]; }
  [[nodiscard]] Picoseconds& arrival(std::int64_t number) {
    return arrivals_[slot_of(number, arrivals_.size())];
  }
  [[nodiscard]] Picoseconds& store(std::int64_t number) {
    return stores_taken_[slot_of(number, stores_taken_.size())];
  }
  [[nodiscard]] static std::uint32_t slot_of(std::int64_t number, std::size_t ring_size) {
    return static_cast<std::uint32_t>(static_cast<std::size_t>(number) & (ring_size - 1));
  }

  void consume();

  void plan_issue();
  void plan_read();
  void plan_store();
  void use_arrived();
  void use(Line& line);
  void account_stall(const Delivery& delivery, Picoseconds stall);

  StreamWindow window_;
  Regulator regulator_;
  Regulator promise_;
  bool promised_ = true;

  SegmentWalk walk_;
  Picoseconds lead_in_;          ///< before the next line, if that is the segment's first
  std::int64_t page_ = -1;       ///< of the reads
  std::int64_t page_lines_ = 0;  ///< lines read since the page began

  std::vector<Line> line_ring_;
  std::int64_t lines_ = 0;  ///< asked for
  std::int64_t used_ = 0;
  std::int64_t lines_at_begin_ = 0;

  std::vector<Picoseconds> arrivals_;  ///< of reads, as arrived() tells: not always in the order of issue
  std::int64_t arrived_ = 0;           ///< reads

  std::vector<Picoseconds> stores_taken_;
  std::int64_t stores_ = 0;  ///< that have left

  Picoseconds issue_ = kNever;  ///< of the next line,
  Picoseconds last_issue_;      ///< and of the one before
};

}  // namespace kvsim::model
