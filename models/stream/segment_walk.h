// SPDX-License-Identifier: Apache-2.0
// Walks through an engine's segments line by line.
#pragma once

#include <algorithm>
#include <cstdint>

#include "models/dram/fifo.h"
#include "models/stream/engine_stream.h"

namespace kvsim::model {

class SegmentWalk {
 public:
  [[nodiscard]] bool empty() const { return segments_.empty(); }
  /// The segment under way. Precondition: !empty().
  [[nodiscard]] const Segment& segment() const { return segments_.front(); }
  /// Address of the next line, and of the end of what can be taken from here without a jump.
  [[nodiscard]] std::int64_t at() const { return at_; }
  [[nodiscard]] std::int64_t row_end() const { return row_end_; }

  /// True if the segment is the one under way now.
  bool push(const Segment& segment) {
    const bool first = segments_.empty();
    Segment s = segment;
    if (s.stride == s.row_bytes) {
      s.row_bytes = s.row_bytes * s.rows;
      s.rows = 1;
    }
    segments_.push(s);
    if (first) {
      enter_segment();
    }
    return first;
  }
  /// Moves on by some lines of the row. True if they were the segment's last.
  bool advance(std::int64_t lines) {
    at_ += lines * kLineBytes;
    return at_ == row_end_ && leave_row();
  }

 private:
  [[nodiscard]] static std::int64_t line_down(std::int64_t address) { return address & ~(kLineBytes - 1); }

  bool leave_row() {
    while (at_ == row_end_ && row_ + 1 < segments_.front().rows) {
      ++row_;
      enter_row();
    }
    if (at_ != row_end_) {
      return false;
    }
    segments_.pop();
    if (!segments_.empty()) {
      enter_segment();
    }
    return true;
  }
  void enter_segment() {
    row_ = 0;
    row_end_ = 0;
    enter_row();
  }
  void enter_row() {
    const Segment& s = segments_.front();
    const auto start = static_cast<std::int64_t>(s.address) + row_ * s.stride.count();
    const std::int64_t first = line_down(start);
    at_ = row_ == 0 ? first : std::max(first, row_end_);  // a line that two rows share is fetched once
    row_end_ = std::max(at_, line_down(start + s.row_bytes.count() + kLineBytes - 1));
  }

  Fifo<Segment> segments_;
  std::int64_t row_ = 0;      ///< of the front segment,
  std::int64_t at_ = 0;       ///< its next line,
  std::int64_t row_end_ = 0;  ///< and the end of its last
};

}  // namespace kvsim::model
