// SPDX-License-Identifier: Apache-2.0
#include "models/stream/line_stream.h"

#include <algorithm>
#include <bit>

#include "configs/error/error.h"

namespace kvsim::model {

using trace::Access;

namespace {

std::int64_t line_down(std::int64_t address) { return address & ~(kLineBytes - 1); }
std::int64_t line_up(std::int64_t address) { return line_down(address + kLineBytes - 1); }

std::size_t ring_size(std::int64_t pieces) { return std::bit_ceil(static_cast<std::size_t>(pieces + 2)); }

}  // namespace

/// The ring of slots holds the pieces that are ahead of use and as many before them, to which paths still refer.
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
  check(max_lines_ >= 1 && max_lines_ <= window.in_flight && max_lines_ <= window.stores, "a piece fits the window");
}

void LineStream::begin(Picoseconds now, const Ownership& path) {
  check(idle(), "a stream begins idle");
  begin_path_ = path;
  used_path_ = &begin_path_;
  used_until_ = now;
  last_issue_ = {.time = now, .base = &begin_path_, .owner = Owner::compute, .more = {}};
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

// --- cutting segments into pieces -------------------------------------------------------------------------------

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

// --- when the next piece may go ---------------------------------------------------------------------------------

/// Holds `event` until `lines` lines have arrived. False while that time is not known.
bool LineStream::hold_for_arrivals(std::int64_t lines, Event& event) {
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
    if (waited.arrived - early > event.time) {
      event = {.time = waited.arrived - early, .base = &waited.arrived_path, .owner = waited.owner, .more = -early};
    }
  }
  return true;
}

/// Holds `event` until `line` has been used. False while that time is not known.
bool LineStream::hold_for_use(std::uint64_t& pointer, std::int64_t line, Event& event) {
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
  const Picoseconds at =
      behind == 0 ? waited.used : waited.first_used + waited.per_line * (waited.lines - 1 - behind);
  if (at > event.time) {
    event = {.time = at, .base = &waited.used_path, .owner = Owner::compute, .more = at - waited.used};
  }
  return true;
}

/// Holds `event` for what `line` of the next piece needs: room in the window, and without the prefetcher the core's
/// reach.
bool LineStream::hold_read(std::int64_t line, Event& event) {
  return hold_for_arrivals(line - window_.in_flight, event) &&
         hold_for_use(ahead_at_, line - window_.ahead, event) &&
         (page_lines_ >= window_.training ||
          hold_for_use(demand_at_, line - segments_.front().demand_lines, event));
}

void LineStream::plan_issue() {
  issue_ = {};
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
  Event event = last_issue_;
  if (!hold_read(lines_ + 1, event)) {
    return;
  }
  first_ = issue_ = event;
  for (std::int64_t line = 2; line <= piece_lines_; ++line) {
    if (!hold_read(lines_ + line, event) || event.time - first_.time > spread_) {
      piece_lines_ = line - 1;
      return;
    }
    issue_ = event;
  }
}

/// A store leaves when the work before it is done and the store window has room.
void LineStream::plan_store() {
  Event event = last_issue_;
  if (segments_.front().posted) {
    if (issued_ - used_ >= slots_.size() / 2) {
      return;
    }
  } else {
    if (used_ != issued_) {
      return;
    }
    const bool leads = row_ == 0 && row_at_ == line_down(static_cast<std::int64_t>(segments_.front().address));
    const Picoseconds lead_in = leads ? segments_.front().lead_in : Picoseconds();
    if (used_until_ + lead_in > event.time) {
      event = {.time = used_until_ + lead_in, .base = used_path_, .owner = Owner::compute, .more = lead_in};
    }
  }
  const std::int64_t line = store_lines_ + piece_lines_ - window_.stores;
  while (stores_at_ < stores_issued_ && store(stores_at_).line_end <= line) {
    const StoreSlot& waited = store(stores_at_);
    if (waited.taken == kNever) {
      return;
    }
    if (waited.taken > event.time) {
      event = {.time = waited.taken, .base = &waited.path, .owner = Owner::compute, .more = {}};
    }
    ++stores_at_;
  }
  first_ = issue_ = event;
}

Piece LineStream::issue() {
  check(issue_.time != kNever, "a piece is ready to issue");
  const Segment& segment = segments_.front();
  const bool write = segment.access == Access::write;
  Piece piece{.address = static_cast<trace::Address>(row_at_),
              .lines = piece_lines_,
              .access = segment.access,
              .owner = segment.owner,
              .slot = static_cast<std::uint32_t>(issued_ & (slots_.size() - 1)),
              .first = first_.time};
  const bool leads = row_ == 0 && row_at_ == line_down(static_cast<std::int64_t>(segment.address));
  consume_lines(piece_lines_);

  Ownership path = *first_.base;
  path.add(first_.owner, first_.more);
  Slot& s = slot(issued_++);
  s.line_end = lines_;
  s.lines = piece.lines;
  s.arrived = s.used = kNever;
  s.per_line = segment.per_line;
  s.lead_in = leads ? segment.lead_in : Picoseconds();
  s.owner = segment.owner;
  s.ends_segment = row_at_ == row_end_;
  s.arrived_path = path;
  last_issue_ = issue_;
  if (s.ends_segment) {
    segments_.pop();
    row_ = row_at_ = row_end_ = 0;
    if (!segments_.empty()) {
      enter_row();
    }
  }
  if (write) {
    note_store(piece, path);
    s.first_arrived = s.arrived = issue_.time;  // the core goes on as soon as the store has left
    lines_arrived_ += piece.lines;
    use_arrived();
  }
  plan_issue();
  return piece;
}

void LineStream::note_store(Piece& piece, const Ownership& path) {
  store_lines_ += piece.lines;
  store(stores_issued_) = {.line_end = store_lines_, .taken = kNever, .path = path};
  piece.slot = kStore | static_cast<std::uint32_t>(stores_issued_ & (stores_.size() - 1));
  ++stores_issued_;
}

// --- what comes back --------------------------------------------------------------------------------------------

/// Lines are used in order: the piece is done n lines' work after its first line came or the core was free, or one
/// line's work after its last line came, whichever is later.
void LineStream::use(Slot& s) {
  const Picoseconds work = s.per_line * s.lines;
  const Picoseconds free = used_until_ + s.lead_in;
  const bool first_counts = s.first_arrived + work >= s.arrived + s.per_line;
  const Picoseconds done = first_counts ? s.first_arrived + work : s.arrived + s.per_line;
  s.first_used = std::max(free, s.first_arrived) + s.per_line;
  if (done > free + work) {
    s.used = done;
    s.used_path = s.arrived_path;
    s.used_path.add(Owner::compute, first_counts ? work : s.per_line);
    s.used_path.add(s.owner, first_counts ? s.first_arrived - s.arrived : Picoseconds());
  } else {
    s.used = free + work;
    s.used_path = *used_path_;
    s.used_path.add(Owner::compute, s.lead_in + work);
  }
  used_until_ = s.used;
  used_path_ = &s.used_path;
  if (s.ends_segment) {
    finished_.push(used_until_);
  }
}

void LineStream::use_arrived() {
  while (used_ < issued_ && slot(used_).arrived != kNever) {
    use(slot(used_));
    ++used_;
  }
}

void LineStream::arrived(std::uint32_t slot_index, const Delivery& delivery, const Ownership& path) {
  Slot& s = slots_[slot_index];
  s.first_arrived = delivery.first;
  s.arrived = delivery.last;
  s.arrived_path = path;
  s.arrived_path.add(Owner::latency, delivery.on_the_way);
  s.arrived_path.add(Owner::queue, delivery.queued);
  lines_arrived_ += s.lines;
  arrival(arrived_++) = {.line_end = lines_arrived_, .slot = slot_index};
  use_arrived();
  if (issue_.time == kNever) {
    plan_issue();
  }
}

void LineStream::taken(std::uint32_t slot_index, Picoseconds time, const Ownership& path) {
  StoreSlot& stored = stores_[slot_index & ~kStore];
  stored.taken = time;
  stored.path = path;
  if (issue_.time == kNever) {
    plan_issue();
  }
}

}  // namespace kvsim::model
