// SPDX-License-Identifier: Apache-2.0
#include "models/dram/legality/bus_watch.h"

#include <algorithm>

namespace kvsim::model::legality {

std::optional<CommandBus::Overlap> CommandBus::put(Command command, Cycle clock) {
  const Cycle first = clock - length_[static_cast<std::size_t>(command)] + 1;
  std::optional<Overlap> overlap;
  if (first <= end_) {
    overlap = {"command bus", first, end_ + 1};
  }
  if (clock > end_) {
    in_use_ = (clock - end_ < 64 ? in_use_ << (clock - end_) : 0) | 1;
    end_ = clock;
  }
  if (split_activate_ && command == Command::activate) {
    if (!take_first_half() && !overlap) {
      overlap = {"ACT-1 on the command bus", clock - 1, clock};
    }
  }
  return overlap;
}

/// The earliest free clock is the best choice: what it leaves free serves the activates to come longest.
bool CommandBus::take_first_half() {
  for (Cycle before = kSplit; before >= 1; --before) {
    const std::uint64_t bit = std::uint64_t{1} << before;
    if ((in_use_ & bit) == 0) {
      in_use_ |= bit;
      return true;
    }
  }
  return false;
}

std::optional<DataBus::Conflict> DataBus::put(Command command, Cycle clock, std::uint32_t rank) {
  const Cycle latency = is_read(command) ? read_latency_ : write_latency_;
  const Burst now{command, clock, rank, clock + latency};
  const Cycle first_to_come = clock + std::min(read_latency_, write_latency_);
  std::optional<Conflict> conflict;
  std::size_t kept = 0;
  for (const Burst& other : bursts_) {
    const Cycle needed = other.rank == rank ? 0 : tRTRS_;
    const Cycle gap = std::max(now.start - other.start, other.start - now.start) - burst_;
    if (gap < needed && (!conflict || gap < conflict->gap)) {
      conflict = Conflict{other, gap};
    }
    if (other.start + burst_ + tRTRS_ > first_to_come) {
      bursts_[kept++] = other;
    }
  }
  bursts_.resize(kept);
  bursts_.push_back(now);
  return conflict;
}

}  // namespace kvsim::model::legality
