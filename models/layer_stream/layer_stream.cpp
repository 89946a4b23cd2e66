// SPDX-License-Identifier: Apache-2.0
#include "models/layer_stream/layer_stream.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "configs/error/error.h"
#include "configs/spec/expert_layers.h"

namespace kvsim::model {
namespace {

constexpr std::uint64_t kDemand = std::numeric_limits<std::uint64_t>::max();

LayerReads told(std::span<const config::FileRange> ranges, Bytes longest) {
  LayerReads reads;
  for (const config::FileRange& range : ranges) {
    const Bytes whole = config::in_blocks(range).bytes;
    reads.asked += range.bytes;
    reads.read += whole;
    reads.requests += (whole.count() + longest.count() - 1) / longest.count();
  }
  reads.rounding = reads.read - reads.asked;
  return reads;
}

}  // namespace

LayerStream::LayerStream(StorageDevice& device, const config::WeightStream& how,
                         std::vector<config::WeightUnit> units)
    : device_(device), how_(how), units_(std::move(units)), most_ahead_(0), in_hand_(units_.size()) {
  check(how_.in_flight > 0 && how_.buffers >= 2, "there are reads in flight, and buffers to read ahead");
  check(how_.request >= config::kDirectBlock && how_.request.count() % config::kDirectBlock.count() == 0,
        "a read is whole blocks");
  const auto streamed = std::ranges::count_if(units_, [](const auto& unit) { return !unit.empty(); });
  most_ahead_ = static_cast<std::size_t>(std::min<std::int64_t>(how_.buffers, streamed));
  for (std::int64_t lane = how_.in_flight; lane-- > 0;) {
    idle_.push_back(lane);
  }
}

/// From `next_` on, which may be behind the last unit of its step. False at the output of a step that has not
/// begun: whether that is needed is not known yet.
bool LayerStream::skip_to_streamed() {
  const std::size_t output = units_.size() - 1;
  for (;; ++next_) {
    if (next_ > output) {
      check(!in_next_step_, "some unit is streamed");
      in_next_step_ = true;
      next_ = 0;
    }
    if (is_streamed(next_) && (next_ < output || in_next_step_ || with_output_)) {
      return next_ < output || !in_next_step_;
    }
  }
}

void LayerStream::begin_step(bool with_output, Picoseconds now) {
  // The last step is over: what is planned from here on is this one's.
  if (!in_next_step_) {
    next_ = 0;
  }
  in_next_step_ = false;
  in_hand_ = units_.size();
  with_output_ = with_output;
  plan(now);
}

/// Gives free buffers to the next units.
void LayerStream::plan(Picoseconds now) {
  while (ahead_.size() < most_ahead_ && skip_to_streamed()) {
    Ahead& unit = ahead_.emplace_back(Ahead{.unit = next_, .left = 0, .there = now});
    for (const config::FileRange& range : units_[next_]) {
      unit.left += cut(range, first_ + ahead_.size() - 1, reads_);
    }
    ++next_;
  }
  start(now);
}

std::int64_t LayerStream::cut(const config::FileRange& range, std::uint64_t unit,
                              std::deque<Read>& out) const {
  const config::FileRange whole = config::in_blocks(range);
  std::int64_t reads = 0;
  for (Bytes done; done < whole.bytes; done += how_.request, ++reads) {
    out.push_back(
        {.unit = unit, .offset = whole.first + done, .bytes = std::min(how_.request, whole.bytes - done)});
  }
  return reads;
}

void LayerStream::submit(const Read& read, std::int64_t lane, Picoseconds now) {
  open_.push_back(
      {.id = device_.submit(
           {.op = StorageOp::read, .offset = read.offset, .bytes = read.bytes, .when = now, .lane = lane}),
       .unit = read.unit});
}

void LayerStream::start(Picoseconds now) {
  for (; !idle_.empty() && !reads_.empty(); idle_.pop_back(), reads_.pop_front()) {
    submit(reads_.front(), idle_.back(), now);
  }
}

void LayerStream::finish(const StorageCompletion& done) {
  check(done.status == StorageStatus::ok, "the file lies on the device");
  const auto which = std::ranges::find(open_, done.id, &Open::id);
  check(which != open_.end(), "completions are of this stream's reads");
  const std::uint64_t unit = which->unit;
  open_.erase(which);
  if (unit == kDemand) {
    --demanded_;
    demand_there_ = done.done;
  } else {
    Ahead& ahead = ahead_.at(unit - first_);
    --ahead.left;
    ahead.there = done.done;
  }
  if (done.request.lane < how_.in_flight) {
    idle_.push_back(done.request.lane);
    start(done.done);
  }
}

LayerReads LayerStream::use(std::size_t unit, Picoseconds now) {
  if (unit == in_hand_) {
    return {};
  }
  while (const auto done = device_.next_until(now)) {
    finish(*done);
  }
  if (held_) {
    ahead_.pop_front();
    ++first_;
    held_ = false;
    plan(now);
  }
  in_hand_ = unit;
  if (!is_streamed(unit)) {
    return {};
  }
  check(!ahead_.empty() && ahead_.front().unit == unit, "units are used in their order");
  held_ = true;
  while (ahead_.front().left > 0) {
    const auto done = device_.next();
    check(done.has_value(), "a unit that is not there is on its way");
    finish(*done);
  }
  LayerReads reads = told(units_[unit], how_.request);
  reads.stall = std::max(now, ahead_.front().there) - now;
  return reads;
}

LayerReads LayerStream::read(std::span<const config::FileRange> ranges, Picoseconds now) {
  while (const auto done = device_.next_until(now)) {
    finish(*done);
  }
  std::deque<Read> list;
  demand_there_ = now;
  for (const config::FileRange& range : ranges) {
    demanded_ += cut(range, kDemand, list);
  }
  // A thread besides those that read ahead.
  for (const Read& read : list) {
    submit(read, how_.in_flight, now);
  }
  while (demanded_ > 0) {
    const auto done = device_.next();
    check(done.has_value(), "a read that is not done is under way");
    finish(*done);
  }
  LayerReads reads = told(ranges, how_.request);
  reads.stall = demand_there_ - now;
  return reads;
}

}  // namespace kvsim::model
