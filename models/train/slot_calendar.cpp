// SPDX-License-Identifier: Apache-2.0
#include "models/train/slot_calendar.h"

namespace kvsim::model {

/// What is left of a gap before and behind a booking stays free.
void SlotCalendar::split(std::size_t i, std::int64_t start, std::int64_t length, std::size_t lane,
                         const Wait& wait) {
  Gap before = at(i);
  Gap behind = before;
  before.end = start;
  before.after = static_cast<std::uint16_t>(lane);
  const std::int64_t since = std::max(before.start, wait.since);
  if (since < before.since) {
    before.since = since;
    before.owner = wait.owner;
  }
  behind.start = start + length;
  behind.before = static_cast<std::uint16_t>(lane);

  const bool keep_before = before.end - before.start >= shortest_;
  const bool keep_behind = behind.end - behind.start >= shortest_;
  if (!keep_before) {
    note_idle(before);
  }
  if (!keep_behind) {
    note_idle(behind);
  }
  if (keep_before && keep_behind) {
    at(i) = behind;
    insert(i, before);
  } else if (keep_before || keep_behind) {
    at(i) = keep_before ? before : behind;
  } else {
    erase(i);
  }
}

void SlotCalendar::leave(const Gap& gap) {
  if (gap.end - gap.start < shortest_) {
    note_idle(gap);
  } else {
    insert(last_, gap);
  }
}

void SlotCalendar::note_idle(const Gap& gap) {
  const std::int64_t since = std::max(gap.start, gap.since);
  if (since < gap.end) {
    idle_.add(gap.owner, Picoseconds(gap.end - since));
  }
}

void SlotCalendar::forget() {
  while (first_ != last_ && at(first_).end <= floor_) {
    note_idle(at(first_++));
  }
}

void SlotCalendar::insert(std::size_t i, const Gap& gap) {
  if (last_ - first_ == kGaps) {
    forget();
  }
  if (last_ - first_ == kGaps) {  // the oldest is the least likely to be asked for
    note_idle(at(first_++));
  }
  for (std::size_t j = last_; j > i; --j) {
    at(j) = at(j - 1);
  }
  at(i) = gap;
  ++last_;
}

void SlotCalendar::erase(std::size_t i) {
  for (; i + 1 != last_; ++i) {
    at(i) = at(i + 1);
  }
  --last_;
}

}  // namespace kvsim::model
