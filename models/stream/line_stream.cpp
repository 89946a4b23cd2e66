// SPDX-License-Identifier: Apache-2.0
#include "models/stream/line_stream.h"

#include <algorithm>
#include <bit>

#include "configs/error/error.h"

namespace kvsim::model {

using trace::Access;

namespace {

std::size_t ring_size(std::int64_t entries) {
  return std::bit_ceil(static_cast<std::size_t>(entries + 2));
}

}  // namespace

LineStream::LineStream(const StreamWindow& window)
    : window_(window),
      regulator_(window.regulation),
      promise_(window.promise),
      line_ring_(ring_size(2 * (window.ahead + window.stores))),
      arrivals_(ring_size(window.in_flight)),
      stores_taken_(ring_size(window.stores)) {
  check(window.in_flight >= 1 && window.ahead >= window.in_flight && window.stores >= 1,
        "a window holds at least one line, and ahead covers what is in flight");
  check(std::has_single_bit(static_cast<std::uint64_t>(window.page.count())), "pages are powers of two");
}

void LineStream::begin(Picoseconds now) {
  check(idle(), "a stream begins idle");
  used_until_ = last_issue_ = now;
  engine_time_ = {};
  lines_at_begin_ = lines_;
  page_ = -1;
}

void LineStream::push(const Segment& segment) {
  if (walk_.push(segment)) {
    lead_in_ = segment.lead_in;
    plan_issue();
  }
}

/// Moves on behind the line that was asked for.
void LineStream::consume() {
  lead_in_ = {};
  if (walk_.advance(1)) {
    line(lines_).ends_segment = true;
    lead_in_ = walk_.empty() ? lead_in_ : walk_.segment().lead_in;
  }
}

// --- when the next line may go
// ----------------------------------------------------------------------------------

void LineStream::plan_issue() {
  issue_ = kNever;
  if (walk_.empty()) {
    return;
  }
  if (walk_.segment().access == Access::write) {
    plan_store();
  } else {
    plan_read();
  }
  if (issue_ != kNever) {
    issue_ = regulator_.earliest(issue_);
  }
}

void LineStream::plan_read() {
  const std::int64_t page = walk_.at() & ~(window_.page.count() - 1);
  if (page != page_) {
    page_ = page;
    page_lines_ = 0;
  }
  Picoseconds time = last_issue_;
  const std::int64_t awaited = lines_ - stores_ + 1 - window_.in_flight;
  if (awaited > arrived_) {
    return;
  }
  if (awaited > 0) {
    time = std::max(time, arrival(awaited));
  }
  // Without the prefetcher the core reaches only as far as its loads.
  const std::int64_t reach =
      page_lines_ < window_.training ? std::min(window_.ahead, walk_.segment().demand_lines) : window_.ahead;
  const std::int64_t waited = lines_ + 1 - reach;
  if (waited > used_) {
    return;
  }
  issue_ = waited > lines_at_begin_ ? std::max(time, line(waited).used) : time;
}

/// A store leaves when the work before it is done and the store window has room.
void LineStream::plan_store() {
  Picoseconds time = last_issue_;
  if (walk_.segment().posted) {
    if (lines_ - used_ >= static_cast<std::int64_t>(line_ring_.size() / 2)) {
      return;
    }
  } else {
    if (used_ != lines_) {
      return;
    }
    time = std::max(time, used_until_ + lead_in_);
  }
  const std::int64_t waited = stores_ + 1 - window_.stores;
  if (waited > 0) {
    if (store(waited) == kNever) {
      return;
    }
    time = std::max(time, store(waited));
  }
  issue_ = time;
}

LineRequest LineStream::issue() {
  check(issue_ != kNever, "a line is ready to issue");
  const Segment& segment = walk_.segment();
  LineRequest request{
      .address = static_cast<trace::Address>(walk_.at()), .access = segment.access, .owner = segment.owner};
  last_issue_ = issue_;
  regulator_.pass(issue_);
  if (promise_.acts()) {
    promised_ = promise_.earliest(issue_) <= issue_;
    if (promised_) {
      promise_.pass(issue_);
    }
  }
  Line& l = line(++lines_);
  l = {.delivery = {.arrival = kNever}, .per_line = segment.per_line, .lead_in = lead_in_};
  consume();
  if (request.access == Access::write) {
    store(++stores_) = kNever;
    request.slot = slot_of(stores_, stores_taken_.size());
    // The core goes on as soon as the store has left; what a store waits for is a place behind other stores'
    // data.
    l.delivery = {.arrival = issue_, .behind_data = kNever / 2};
    use_arrived();
  } else {
    request.slot = slot_of(lines_, line_ring_.size());
    ++page_lines_;
  }
  plan_issue();
  return request;
}

// --- what comes back
// --------------------------------------------------------------------------------------------

void LineStream::arrived(std::uint32_t slot, const Delivery& delivery) {
  line_ring_[slot].delivery = delivery;
  arrival(++arrived_) = delivery.arrival;
  use_arrived();
  if (issue_ == kNever) {
    plan_issue();
  }
}

void LineStream::taken(std::uint32_t slot, Picoseconds time) {
  stores_taken_[slot] = time;
  if (issue_ == kNever) {
    plan_issue();
  }
}

void LineStream::use_arrived() {
  while (used_ < lines_ && line(used_ + 1).delivery.arrival != kNever) {
    use(line(++used_));
  }
}

void LineStream::use(Line& line) {
  const Picoseconds free = used_until_ + line.lead_in;
  if (line.delivery.arrival > free) {
    account_stall(line.delivery, line.delivery.arrival - free);
  }
  used_until_ = line.used = std::max(free, line.delivery.arrival) + line.per_line;
  if (line.ends_segment) {
    finished_.push(used_until_);
  }
}

/// Had the line not waited in the memory system, the stall would be shorter by as much; the rest is the way
/// there and back, which no prefetch hid.
void LineStream::account_stall(const Delivery& delivery, Picoseconds stall) {
  const Picoseconds waited = delivery.held + delivery.behind_data;
  const Picoseconds in_memory = std::min(stall, waited);
  engine_time_.stalls.add(Owner::latency, stall - in_memory);
  Picoseconds held;
  if (delivery.held > Picoseconds()) {
    held = Picoseconds(static_cast<std::int64_t>(in_memory.as_double() * ratio(delivery.held, waited)));
    engine_time_.stalls.add(delivery.held_by, held);
  }
  engine_time_.behind_data += in_memory - held;
}

}  // namespace kvsim::model
