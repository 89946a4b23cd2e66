// SPDX-License-Identifier: Apache-2.0
// What serves one request after another, and who may still use the time it stood idle.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/accounting/time_account.h"

namespace kvsim::model {

/// A request that waits for something else than the server it books: since when, and for what.
struct Wait {
  std::int64_t since = 0;
  Owner owner = Owner::queue;
};

/// Books time, in picoseconds, on a data bus or another server of one request at a time. Requests come in
/// nearly the order of time: one that comes late still finds the gaps left before the last booking.
/// Neighbours of different lanes (rank, direction, bank group) keep a distance.
class SlotCalendar {
 public:
  /// `distances[before * lanes + after]` is the idle time between neighbours. Gaps shorter than `shortest`
  /// are not kept.
  SlotCalendar(std::vector<std::int64_t> distances, std::size_t lanes, std::int64_t shortest)
      : distances_(std::move(distances)), lanes_(lanes), shortest_(shortest) {}

  /// A free time: in a gap, or behind the last booking.
  struct Slot {
    std::int64_t start = 0;
    std::size_t gap = 0;
  };
  /// The first free time of `length` from `earliest` on.
  [[nodiscard]] Slot find(std::int64_t earliest, std::int64_t length, std::size_t lane) const {
    std::size_t i = last_;  // most requests come in order, so that few gaps lie behind `earliest`
    const std::int64_t past = std::max(earliest, floor_);
    while (i != first_ && gaps_[(i - 1) % kGaps].end > past) {
      --i;
    }
    for (; i != last_; ++i) {
      const Gap& gap = gaps_[i % kGaps];
      const std::int64_t start = std::max(earliest, gap.start + distance(gap.before, lane));
      if (start + length + distance(lane, gap.after) <= gap.end) {
        return {.start = start, .gap = i};
      }
    }
    return {.start = std::max(earliest, free_for(lane)), .gap = last_};
  }
  /// Books what find() has found. If the server stands idle while the request waits, `wait` says for what.
  void book(const Slot& slot, std::int64_t length, std::size_t lane, const Wait& wait) {
    if (slot.gap != last_) {
      split(slot.gap, slot.start, length, lane, wait);
      return;
    }
    if (slot.start > end_) {
      const bool turned = distance(lane_, lane) > 0 && slot.start == free_for(lane);
      const Owner owner =
          lane_ == lane ? Owner::queue : Owner::turnaround;  // bursts of one bank group, or a turn
      leave({.start = end_,
             .end = slot.start,
             .since = turned ? end_ : wait.since,
             .owner = turned ? owner : wait.owner,
             .before = static_cast<std::uint16_t>(lane_),
             .after = static_cast<std::uint16_t>(lane)});
    }
    end_ = slot.start + length;
    lane_ = lane;
  }
  /// Both at once; returns the start.
  std::int64_t book(std::int64_t earliest, std::int64_t length, std::size_t lane, const Wait& wait) {
    const Slot slot = find(earliest, length, lane);
    book(slot, length, lane, wait);
    return slot.start;
  }

  /// Nothing is booked from here on,
  [[nodiscard]] std::int64_t end() const { return end_; }
  /// and a request of `lane` could begin here.
  [[nodiscard]] std::int64_t free_for(std::size_t lane) const { return end_ + distance(lane_, lane); }
  [[nodiscard]] std::int64_t distance(std::size_t before, std::size_t after) const {
    return distances_[before * lanes_ + after];
  }

  /// No request before `time` comes any more: gaps up to there stay idle.
  void forget_before(std::int64_t time) { floor_ = time; }
  /// How long the server stood idle while a request waited, in gaps that are forgotten.
  [[nodiscard]] const TimeAccount& idle() {
    forget();
    return idle_;
  }

 private:
  struct Gap {
    std::int64_t start = 0;
    std::int64_t end = 0;
    std::int64_t since = 0;  ///< the request that left it has waited,
    Owner owner = Owner::queue;
    std::uint16_t before = 0;  ///< lanes of its neighbours
    std::uint16_t after = 0;
  };
  static constexpr std::size_t kGaps = 64;

  [[nodiscard]] Gap& at(std::size_t i) { return gaps_[i % kGaps]; }
  void split(std::size_t i, std::int64_t start, std::int64_t length, std::size_t lane, const Wait& wait);
  void leave(const Gap& gap);
  void forget();
  void note_idle(const Gap& gap);
  void insert(std::size_t i, const Gap& gap);
  void erase(std::size_t i);

  std::vector<std::int64_t> distances_;
  std::size_t lanes_;
  std::int64_t shortest_;
  std::array<Gap, kGaps> gaps_{};  ///< a ring, in order of time
  std::size_t first_ = 0;
  std::size_t last_ = 0;
  std::int64_t end_ = 0;
  std::size_t lane_ = 0;
  std::int64_t floor_ = 0;  ///< no request comes before
  TimeAccount idle_;
};

}  // namespace kvsim::model
