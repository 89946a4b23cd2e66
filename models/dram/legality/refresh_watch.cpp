// SPDX-License-Identifier: Apache-2.0
#include "models/dram/legality/refresh_watch.h"

#include <algorithm>
#include <cmath>

namespace kvsim::model::legality {

namespace {

constexpr int kPartBits = 32;
constexpr double kPartsPerClock = 4294967296.0;

}  // namespace

RefreshWatch::RefreshWatch(Shape shape, double interval, std::int64_t postponed)
    : shape_(shape),
      postponed_(postponed),
      interval_{static_cast<Cycle>(std::floor(interval)),
                static_cast<std::uint64_t>(std::ceil((interval - std::floor(interval)) * kPartsPerClock))},
      due_(shape.ranks * shape.banks, interval_),
      asleep_(shape.ranks),
      asleep_at_(shape.ranks) {
  find_deadline();
}

RefreshWatch::Instant RefreshWatch::later(Instant instant, std::int64_t intervals) const {
  // A few intervals at a time: the parts of a clock of one are below 2^32, of all below 2^64.
  const auto parts =
      static_cast<std::int64_t>(instant.part) + intervals * static_cast<std::int64_t>(interval_.part);
  instant.clock += intervals * interval_.clock + (parts >> kPartBits);
  instant.part = static_cast<std::uint64_t>(parts) & ((std::uint64_t{1} << kPartBits) - 1);
  return instant;
}

void RefreshWatch::refreshed(std::size_t first_bank, std::size_t step, Cycle clock) {
  const Instant latest = later({clock, 0}, kAhead + 1);
  const std::size_t end = (first_bank / shape_.banks + 1) * shape_.banks;
  for (std::size_t bank = first_bank; bank < end; bank += step) {
    due_[bank] = later(due_[bank], 1);
    if (due_[bank].clock > latest.clock) {
      due_[bank] = latest;
    }
  }
  find_deadline();
}

void RefreshWatch::asleep(std::size_t rank, Cycle clock) {
  asleep_[rank] = true;
  asleep_at_[rank] = clock;
  find_deadline();
}

void RefreshWatch::awake(std::size_t rank, Cycle clock) {
  asleep_[rank] = false;
  for (std::size_t bank = rank * shape_.banks; bank < (rank + 1) * shape_.banks; ++bank) {
    const Cycle left = due_[bank].clock - asleep_at_[rank];
    const Cycle credit =
        left >= 0 ? left / interval_.clock : -((-left + interval_.clock - 1) / interval_.clock);
    due_[bank] = later({clock, 0}, 1 + std::clamp<Cycle>(credit, -postponed_, kAhead));
  }
  find_deadline();
}

std::optional<std::size_t> RefreshWatch::find_late(Cycle clock) {
  std::optional<std::size_t> late;
  for (std::size_t bank = 0; bank < due_.size(); ++bank) {
    const std::size_t rank = bank / shape_.banks;
    if (asleep_[rank] || (late && *late / shape_.banks != rank) ||
        clock <= later(due_[bank], postponed_).clock) {
      continue;
    }
    late = late.value_or(bank);
    due_[bank] = later({clock, 0}, 1 - postponed_);
  }
  find_deadline();
  return late;
}

void RefreshWatch::find_deadline() {
  deadline_ = kNever;
  for (std::size_t bank = 0; bank < due_.size(); ++bank) {
    if (!asleep_[bank / shape_.banks]) {
      deadline_ = std::min(deadline_, later(due_[bank], postponed_).clock);
    }
  }
}

}  // namespace kvsim::model::legality
