// SPDX-License-Identifier: Apache-2.0
#include "models/storage/read_ahead.h"

#include <algorithm>

namespace kvsim::model {

bool ReadAhead::note_read(std::int64_t begin, std::int64_t end) {
  const auto found = std::ranges::find(streams_, begin, &Stream::end);
  const bool goes_on = found != streams_.end();
  Stream& stream = goes_on ? *found : *std::ranges::min_element(streams_, {}, &Stream::used);
  stream = {end, ++clock_};
  return goes_on;
}

std::optional<std::uint32_t> ReadAhead::find(Unit set) const {
  const auto found = std::ranges::find(entries_, set, &Entry::set);
  return found == entries_.end() ? std::nullopt
                                 : std::optional(static_cast<std::uint32_t>(found - entries_.begin()));
}

std::optional<std::uint32_t> ReadAhead::take(Unit set) {
  std::optional<std::uint32_t> best;
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    const Entry& each = entries_[i];
    const bool idle = each.reads_left == 0;
    if (idle && (!best || each.used < entries_[*best].used)) {
      best = i;
    }
  }
  if (best) {
    entries_[*best].set = set;
    entries_[*best].used = ++clock_;
    entries_[*best].is_read = false;
  }
  return best;
}

void ReadAhead::drop(std::uint32_t index) {
  entries_[index].set = kNowhere;
  entries_[index].used = 0;
}

void ReadAhead::forget(Unit first_set, Unit last_set) {
  for (Entry& each : entries_) {
    if (each.set >= first_set && each.set <= last_set) {
      each.set = kNowhere;
      each.used = 0;
    }
  }
}

}  // namespace kvsim::model
