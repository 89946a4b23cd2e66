// SPDX-License-Identifier: Apache-2.0
#include "models/train/train_stream.h"

#include <algorithm>
#include <bit>

#include "configs/error/error.h"

namespace kvsim::model {

using trace::Access;

namespace {

std::int64_t line_down(std::int64_t address) {
  return address & ~(kLineBytes - 1);
}
std::int64_t line_up(std::int64_t address) {
  return line_down(address + kLineBytes - 1);
}

std::uint64_t ring_mask(std::int64_t entries) {
  return std::bit_ceil(static_cast<std::uint64_t>(entries)) - 1;
}

}  // namespace

TrainStream::TrainStream(const StreamWindow& window, const Groups& groups)
    : in_flight_(static_cast<std::uint64_t>(window.in_flight)),
      ahead_(static_cast<std::uint64_t>(window.ahead)),
      stores_in_flight_(static_cast<std::uint64_t>(window.stores)),
      training_(window.training),
      page_mask_(window.page.count() - 1),
      block_mask_(std::min(groups.granule, window.page).count() - 1),
      most_lines_(std::min({groups.most_lines, window.in_flight, window.stores})),
      spread_(groups.spread.count()),
      mask_(ring_mask(window.ahead + most_lines_ + 1)),
      store_mask_(ring_mask(window.stores + most_lines_ + 1)),
      used_(mask_ + 1),
      arrivals_(mask_ + 1),
      taken_(store_mask_ + 1) {
  check(window.in_flight >= 1 && window.ahead >= window.in_flight && window.stores >= 1,
        "a window holds at least one line, and ahead covers what is in flight");
  check(std::has_single_bit(static_cast<std::uint64_t>(groups.granule.count())) &&
            std::has_single_bit(static_cast<std::uint64_t>(window.page.count())),
        "granules and pages are powers of two");
}

void TrainStream::begin(Picoseconds now) {
  check(idle(), "a stream begins idle");
  used_until_ = now;
  engine_time_ = {};
  used_last_ = last_ = now.count();
  std::fill(used_.begin(), used_.end(), last_);
  std::fill(arrivals_.begin(), arrivals_.end(), last_);
  lines_ = 0;
  page_ = -1;
}

void TrainStream::push(const Segment& segment) {
  Segment s = segment;
  if (s.stride == s.row_bytes) {
    s.row_bytes = s.row_bytes * s.rows;
    s.rows = 1;
  }
  const bool was_empty = segments_.empty();
  segments_.push(s);
  if (was_empty) {
    enter_segment();
    plan();
  }
}

// --- walking through segments
// -----------------------------------------------------------------------------------

void TrainStream::enter_segment() {
  const Segment& s = segments_.front();
  write_ = s.access == Access::write;
  per_line_ = s.per_line.count();
  lead_in_ = s.lead_in.count();
  demand_ = std::min(static_cast<std::uint64_t>(s.demand_lines), ahead_);
  row_ = 0;
  row_end_ = 0;
  enter_row();
}

void TrainStream::enter_row() {
  const Segment& s = segments_.front();
  const auto start = static_cast<std::int64_t>(s.address) + row_ * s.stride.count();
  const std::int64_t first = line_down(start);
  row_at_ = row_ == 0 ? first : std::max(first, row_end_);  // a line that two rows share is fetched once
  row_end_ = std::max(row_at_, line_up(start + s.row_bytes.count()));
}

/// Moves on behind the lines of the group.
void TrainStream::consume(std::int64_t lines) {
  lines_ += static_cast<std::uint64_t>(lines);
  row_at_ += lines * kLineBytes;
  lead_in_ = 0;
  while (row_at_ == row_end_ && row_ + 1 < segments_.front().rows) {
    ++row_;
    enter_row();
  }
  used_until_ = Picoseconds(used_last_);
  if (row_at_ == row_end_) {
    finished_.push(used_until_);
    segments_.pop();
    if (!segments_.empty()) {
      enter_segment();
    }
  }
  plan();
}

// --- when lines are asked for
// -----------------------------------------------------------------------------------

/// When the window lets a read go: enough lines before it have arrived and enough have been used.
std::int64_t TrainStream::asked_at(std::uint64_t line) {
  return std::max({last_, arrival(line - in_flight_), used(line - ahead_)});
}

void TrainStream::plan() {
  next_ = kNotYet;
  if (segments_.empty()) {
    return;
  }
  if (write_) {
    plan_store();
    return;
  }
  const std::int64_t page = row_at_ & ~page_mask_;
  if (page != page_) {
    page_ = page;
    page_lines_ = 0;
  }
  next_ = asked_at(lines_ + 1);
  if (page_lines_ < training_) {
    next_ = std::max(next_, used(lines_ + 1 - demand_));
  }
}

/// A store leaves when the work before it is done, unless it is posted, and the store window has room.
void TrainStream::plan_store() {
  const std::uint64_t needed = stores_ + static_cast<std::uint64_t>(lines_at_hand());
  while (stores_known_ + stores_in_flight_ < needed) {
    const std::int64_t taken = taken_[(stores_known_ + 1) & store_mask_];
    if (taken == kNotYet) {
      return;
    }
    stores_taken_ = std::max(stores_taken_, taken);
    ++stores_known_;
  }
  next_ = std::max(last_, stores_taken_);
  if (!segments_.front().posted) {
    next_ = std::max(next_, used_last_ + lead_in_);
  }
}

std::int64_t TrainStream::lines_at_hand() const {
  const std::int64_t end = std::min(row_end_, (row_at_ | block_mask_) + 1);
  return std::min((end - row_at_) / kLineBytes, most_lines_);
}

LineGroup TrainStream::take() {
  group_ = {.address = static_cast<trace::Address>(row_at_),
            .lines = 1,
            .access = write_ ? Access::write : Access::read,
            .owner = segments_.front().owner,
            .asked = next_,
            .store = stores_ + 1};
  last_ = next_;
  if (write_) {
    group_.lines = lines_at_hand();
    for (std::int64_t i = 0; i < group_.lines; ++i) {
      taken_[++stores_ & store_mask_] = kNotYet;
    }
    // What a store waits for is a place behind other stores' data; the core goes on as soon as it has left.
    deliver({.first = last_, .behind_data = kNotYet});
    return group_;
  }
  if (page_lines_ >= training_) {
    const std::int64_t most = lines_at_hand();
    for (; group_.lines < most; ++group_.lines) {
      const std::int64_t asked = asked_at(lines_ + 1 + static_cast<std::uint64_t>(group_.lines));
      if (asked > group_.asked + group_.lines * spread_) {
        break;
      }
      last_ = asked;
    }
  }
  page_lines_ += group_.lines;
  return group_;
}

// --- what comes back
// --------------------------------------------------------------------------------------------

void TrainStream::deliver(const GroupDelivery& delivery) {
  for (std::int64_t i = 0; i < group_.lines; ++i) {
    const std::int64_t arrived = delivery.first + i * delivery.spacing;
    // Both rings are indexed from the next line on; lines_ itself moves when the group is consumed.
    std::uint64_t at = lines_ + 1 + static_cast<std::uint64_t>(i);
    for (; arrival(at - 1) > arrived; --at) {
      arrival(at) = arrival(at - 1);
    }
    arrival(at) = arrived;
    use(arrived, delivery);
    used(lines_ + 1 + static_cast<std::uint64_t>(i)) = used_last_;
  }
  consume(group_.lines);
}

/// Had the line not waited in the memory system, the stall would be shorter by as much; the rest is the way
/// there and back, which no prefetch hid.
void TrainStream::use(std::int64_t arrived, const GroupDelivery& delivery) {
  const std::int64_t free = used_last_ + lead_in_;
  lead_in_ = 0;
  const std::int64_t stall = arrived - free;
  used_last_ = std::max(free, arrived) + per_line_;
  if (stall <= 0) {
    return;
  }
  const std::int64_t in_memory = std::min(stall, delivery.held + delivery.behind_data);
  const std::int64_t held = delivery.behind_data == 0 ? in_memory : std::min(in_memory, delivery.held);
  engine_time_.stalls.add(Owner::latency, Picoseconds(stall - in_memory));
  engine_time_.stalls.add(delivery.held_by, Picoseconds(held));
  engine_time_.behind_data += Picoseconds(in_memory - held);
}

void TrainStream::taken(std::uint64_t store, std::int64_t time) {
  taken_[store & store_mask_] = time;
  if (next_ == kNotYet && !segments_.empty()) {
    plan();
  }
}

}  // namespace kvsim::model
