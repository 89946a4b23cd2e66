// SPDX-License-Identifier: Apache-2.0
#include "models/train/train_stream.h"

#include <algorithm>
#include <bit>

#include "configs/error/error.h"

namespace kvsim::model {

using trace::Access;

namespace {

constexpr std::int64_t kRoom = 1024;  ///< lines after which the window's past is moved to the front

}  // namespace

TrainStream::TrainStream(const StreamWindow& window, const Groups& groups)
    : in_flight_(window.in_flight),
      ahead_(window.ahead),
      stores_in_flight_(static_cast<std::uint64_t>(window.stores)),
      training_(window.training),
      page_mask_(window.page.count() - 1),
      block_mask_(std::min(groups.granule, window.page).count() - 1),
      most_lines_(Regulator(window.regulation).acts()
                      ? 1
                      : std::min({groups.most_lines, window.in_flight, window.stores})),
      spread_(groups.spread.count()),
      regulator_(window.regulation),
      store_mask_(std::bit_ceil(static_cast<std::uint64_t>(window.stores + most_lines_ + 1)) - 1),
      used_(static_cast<std::size_t>(window.ahead + kRoom)),
      arrival_(used_.size()),
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
  lines_ = ahead_;
  std::fill_n(used_.begin(), lines_ + 1, last_);
  std::fill_n(arrival_.begin(), lines_ + 1, last_);
  page_ = -1;
}

/// Moves what the window still asks for to the front.
void TrainStream::make_room() {
  const auto moved = [&](std::vector<std::int64_t>& v) {
    std::copy(v.begin() + (lines_ - ahead_), v.begin() + (lines_ + 1), v.begin());
  };
  moved(used_);
  moved(arrival_);
  lines_ = ahead_;
}

void TrainStream::push(const Segment& segment) {
  if (walk_.push(segment)) {
    enter_segment();
    plan();
  }
}

void TrainStream::enter_segment() {
  if (walk_.empty()) {
    return;
  }
  const Segment& s = walk_.segment();
  write_ = s.access == Access::write;
  per_line_ = s.per_line.count();
  lead_in_ = s.lead_in.count();
  demand_ = std::min(s.demand_lines, ahead_);
  group_.access = s.access;
  group_.owner = s.owner;
}

/// A store leaves when the work before it is done, unless it is posted, and the store window has room.
void TrainStream::plan_store() {
  next_ = kNotYet;
  if (walk_.empty()) {
    return;
  }
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
  if (!walk_.segment().posted) {
    next_ = std::max(next_, used_last_ + lead_in_);
  }
  next_ = regulator_.earliest(Picoseconds(next_)).count();
}

const LineGroup& TrainStream::take_stores() {
  group_.address = static_cast<trace::Address>(walk_.at());
  group_.lines = lines_at_hand();
  group_.asked = last_ = next_;
  group_.store = stores_ + 1;
  for (std::int64_t i = 0; i < group_.lines; ++i) {
    taken_[++stores_ & store_mask_] = kNotYet;
  }
  stores_group_ = group_;
  // What a store waits for is a place behind other stores' data; the core goes on as soon as it has left.
  deliver({.first = last_, .behind_data = kNotYet});
  return stores_group_;
}

void TrainStream::taken(std::uint64_t store, std::int64_t time) {
  taken_[store & store_mask_] = time;
  if (next_ == kNotYet) {
    plan();
  }
}

}  // namespace kvsim::model
