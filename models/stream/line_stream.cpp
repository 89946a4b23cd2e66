// SPDX-License-Identifier: Apache-2.0
#include "models/stream/line_stream.h"

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

std::size_t ring_size(std::int64_t pieces) {
  return std::bit_ceil(static_cast<std::size_t>(pieces + 2));
}

}  // namespace

LineStream::LineStream(const StreamWindow& window, const Pieces& pieces)
    : window_(window),
      granule_(pieces.granule.count()),
      max_lines_(pieces.max_lines),
      spread_(pieces.spread),
      slots_(ring_size(2 * (window.ahead + window.stores))),
      arrivals_(ring_size(window.in_flight)),
      stores_(ring_size(window.stores)) {
  check(window.in_flight >= 1 && window.ahead >= window.in_flight && window.stores >= 1,
        "a window holds at least one line, and ahead covers what is in flight");
  check(max_lines_ >= 1 && max_lines_ <= window.in_flight && max_lines_ <= window.stores,
        "a piece fits the window");
}

void LineStream::begin(Picoseconds now) {
  check(idle(), "a stream begins idle");
  used_until_ = last_issue_ = now;
  engine_time_ = {};
  ahead_at_ = demand_at_ = issued_;
  lines_at_begin_ = lines_;
  page_ = -1;
}

void LineStream::push(const Segment& segment) {
  const bool was_empty = segments_.empty();
  Segment s = segment;
  if (s.stride == s.row_bytes) {
    s.row_bytes = s.row_bytes * s.rows;
    s.rows = 1;
  }
  segments_.push(s);
  if (was_empty) {
    enter_row();
    plan_issue();
  }
}

// --- cutting segments into pieces
// -------------------------------------------------------------------------------

void LineStream::enter_row() {
  const Segment& s = segments_.front();
  const auto start = static_cast<std::int64_t>(s.address) + row_ * s.stride.count();
  const std::int64_t first = line_down(start);
  row_at_ = row_ == 0 ? first : std::max(first, row_end_);  // a line that two rows share is fetched once
  row_end_ = std::max(row_at_, line_up(start + s.row_bytes.count()));
}

/// Lines that the next piece may hold: all in one row, granule and page.
std::int64_t LineStream::cut_lines() {
  const std::int64_t page_bytes = window_.page.count();
  const std::int64_t page = row_at_ / page_bytes;
  if (segments_.front().access == Access::read) {  // the prefetcher does not see stores and write-backs
    if (page != page_) {
      page_ = page;
      page_lines_ = 0;
    }
    if (page_lines_ < window_.training) {
      return 1;  // what is not overlapped is not lumped together
    }
  }
  const std::int64_t end = std::min({row_end_, (row_at_ / granule_ + 1) * granule_, (page + 1) * page_bytes});
  return std::min((end - row_at_) / kLineBytes, max_lines_);
}

/// Moves on behind the lines of a piece that was issued.
void LineStream::consume_lines(std::int64_t lines) {
  const Segment& s = segments_.front();
  lines_ += lines;
  page_lines_ += s.access == Access::read ? lines : 0;
  row_at_ += lines * kLineBytes;
  while (row_at_ == row_end_ && row_ + 1 < s.rows) {
    ++row_;
    enter_row();
  }
}

// --- when the next piece may go
// ---------------------------------------------------------------------------------

/// Puts `time` off until `lines` lines have arrived. False while that time is not known.
bool LineStream::hold_for_arrivals(std::int64_t lines, Picoseconds& time) {
  if (lines > lines_arrived_) {
    return false;
  }
  if (arrived_ > arrivals_.size()) {
    arrival_at_ = std::max(arrival_at_, arrived_ - arrivals_.size());
  }
  while (arrival_at_ < arrived_ && arrival(arrival_at_).line_end < lines) {
    ++arrival_at_;
  }
  if (arrival_at_ < arrived_ && lines > lines_at_begin_) {
    const Slot& waited = slots_[arrival(arrival_at_).slot];
    // The lines of a piece arrive evenly spaced.
    const std::int64_t behind = std::min(arrival(arrival_at_).line_end - lines, waited.lines - 1);
    const Picoseconds early =
        behind == 0 ? Picoseconds() : (waited.arrived - waited.first_arrived) * behind / (waited.lines - 1);
    time = std::max(time, waited.arrived - early);
  }
  return true;
}

/// Puts `time` off until `line` has been used. False while that time is not known.
bool LineStream::hold_for_use(std::uint64_t& pointer, std::int64_t line, Picoseconds& time) {
  if (line <= lines_at_begin_) {
    return true;
  }
  if (issued_ > slots_.size()) {
    pointer = std::max(pointer, issued_ - slots_.size());  // older slots have been taken over
  }
  while (slot(pointer).line_end < line) {
    ++pointer;
  }
  const Slot& waited = slot(pointer);
  if (waited.used == kNever) {
    return false;
  }
  // The lines of a piece are used one after the other: only those up to `line` count.
  const std::int64_t behind = waited.line_end - line;
  time = std::max(
      time, behind == 0 ? waited.used : waited.first_used + waited.per_line * (waited.lines - 1 - behind));
  return true;
}

/// Puts `time` off for what `line` of the next piece needs: room in the window, and without the prefetcher
/// the core's reach.
bool LineStream::hold_read(std::int64_t line, Picoseconds& time) {
  return hold_for_arrivals(line - window_.in_flight, time) &&
         hold_for_use(ahead_at_, line - window_.ahead, time) &&
         (page_lines_ >= window_.training ||
          hold_for_use(demand_at_, line - segments_.front().demand_lines, time));
}

void LineStream::plan_issue() {
  issue_ = kNever;
  if (segments_.empty()) {
    return;
  }
  piece_lines_ = cut_lines();
  if (segments_.front().access == Access::write) {
    plan_store();
  } else {
    plan_read();
  }
}

/// The piece ends before a line whose time is not known yet, or is too far from the first's.
void LineStream::plan_read() {
  Picoseconds time = last_issue_;
  if (!hold_read(lines_ + 1, time)) {
    return;
  }
  first_ = issue_ = time;
  for (std::int64_t line = 2; line <= piece_lines_; ++line) {
    if (!hold_read(lines_ + line, time) || time - first_ > spread_) {
      piece_lines_ = line - 1;
      return;
    }
    issue_ = time;
  }
}

/// A store leaves when the work before it is done and the store window has room.
void LineStream::plan_store() {
  Picoseconds time = last_issue_;
  if (segments_.front().posted) {
    if (issued_ - used_ >= slots_.size() / 2) {
      return;
    }
  } else {
    if (used_ != issued_) {
      return;
    }
    const bool leads =
        row_ == 0 && row_at_ == line_down(static_cast<std::int64_t>(segments_.front().address));
    const Picoseconds lead_in = leads ? segments_.front().lead_in : Picoseconds();
    time = std::max(time, used_until_ + lead_in);
  }
  const std::int64_t line = store_lines_ + piece_lines_ - window_.stores;
  while (stores_at_ < stores_issued_ && store(stores_at_).line_end <= line) {
    const StoreSlot& waited = store(stores_at_);
    if (waited.taken == kNever) {
      return;
    }
    time = std::max(time, waited.taken);
    ++stores_at_;
  }
  first_ = issue_ = time;
}

Piece LineStream::issue() {
  check(issue_ != kNever, "a piece is ready to issue");
  const Segment& segment = segments_.front();
  const bool write = segment.access == Access::write;
  Piece piece{.address = static_cast<trace::Address>(row_at_),
              .lines = piece_lines_,
              .access = segment.access,
              .owner = segment.owner,
              .slot = static_cast<std::uint32_t>(issued_ & (slots_.size() - 1)),
              .first = first_};
  const bool leads = row_ == 0 && row_at_ == line_down(static_cast<std::int64_t>(segment.address));
  consume_lines(piece_lines_);

  Slot& s = slot(issued_++);
  s.line_end = lines_;
  s.lines = piece.lines;
  s.arrived = s.used = kNever;
  s.per_line = segment.per_line;
  s.lead_in = leads ? segment.lead_in : Picoseconds();
  s.ends_segment = row_at_ == row_end_;
  last_issue_ = issue_;
  if (s.ends_segment) {
    segments_.pop();
    row_ = row_at_ = row_end_ = 0;
    if (!segments_.empty()) {
      enter_row();
    }
  }
  if (write) {
    note_store(piece);
    s.first_arrived = s.arrived = issue_;  // the core goes on as soon as the store has left
    s.behind_data = kNever / 2;            // what a store waits for is a place behind other stores' data
    s.held = Picoseconds();
    lines_arrived_ += piece.lines;
    use_arrived();
  }
  plan_issue();
  return piece;
}

void LineStream::note_store(Piece& piece) {
  store_lines_ += piece.lines;
  store(stores_issued_) = {.line_end = store_lines_, .taken = kNever};
  piece.slot = kStore | static_cast<std::uint32_t>(stores_issued_ & (stores_.size() - 1));
  ++stores_issued_;
}

// --- what comes back
// --------------------------------------------------------------------------------------------

/// Lines are used in order: the piece is done n lines' work after its first line came or the core was free,
/// or one line's work after its last line came, whichever is later.
void LineStream::use(Slot& s) {
  const Picoseconds work = s.per_line * s.lines;
  const Picoseconds free = used_until_ + s.lead_in;
  const Picoseconds ready = std::max(s.first_arrived + work, s.arrived + s.per_line);
  s.first_used = std::max(free, s.first_arrived) + s.per_line;
  s.used = std::max(ready, free + work);
  if (ready > free + work) {
    account_stall(s, ready - free - work);
  }
  used_until_ = s.used;
  if (s.ends_segment) {
    finished_.push(used_until_);
  }
}

/// Had the piece not waited in the memory system, the stall would be shorter by as much; the rest is the way
/// there and back, which no prefetch hid.
void LineStream::account_stall(const Slot& s, Picoseconds stall) {
  const Picoseconds waited = s.held + s.behind_data;
  const Picoseconds in_memory = std::min(stall, waited);
  engine_time_.stalls.add(Owner::latency, stall - in_memory);
  Picoseconds held;
  if (s.held > Picoseconds()) {
    held = Picoseconds(static_cast<std::int64_t>(in_memory.as_double() * ratio(s.held, waited)));
    engine_time_.stalls.add(s.held_by, held);
  }
  engine_time_.behind_data += in_memory - held;
}

void LineStream::use_arrived() {
  while (used_ < issued_ && slot(used_).arrived != kNever) {
    use(slot(used_));
    ++used_;
  }
}

void LineStream::arrived(std::uint32_t slot_index, const Delivery& delivery) {
  Slot& s = slots_[slot_index];
  s.first_arrived = delivery.first;
  s.arrived = delivery.last;
  s.behind_data = delivery.behind_data;
  s.held = delivery.held;
  s.held_by = delivery.held_by;
  lines_arrived_ += s.lines;
  arrival(arrived_++) = {.line_end = lines_arrived_, .slot = slot_index};
  use_arrived();
  if (issue_ == kNever) {
    plan_issue();
  }
}

void LineStream::taken(std::uint32_t slot_index, Picoseconds time) {
  stores_[slot_index & ~kStore].taken = time;
  if (issue_ == kNever) {
    plan_issue();
  }
}

}  // namespace kvsim::model
