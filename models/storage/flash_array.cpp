// SPDX-License-Identifier: Apache-2.0
#include "models/storage/flash_array.h"

#include <algorithm>
#include <utility>

#include "traces/record/spread.h"

namespace kvsim::model {

namespace {

/// Reads that go before a waiting program or erase, so that it is not put off for ever.
constexpr int kReadsInRow = 32;

bool is_urgent(OpPurpose purpose) {
  return purpose == OpPurpose::data || purpose == OpPurpose::old_data || purpose == OpPurpose::map ||
         purpose == OpPurpose::read_ahead;
}

}  // namespace

FlashArray::FlashArray(const config::StorageFlash& flash, double stretch, std::uint64_t seed,
                       StorageCalendar& calendar)
    : flash_(flash),
      stretch_(stretch),
      random_(seed),
      calendar_(calendar),
      dies_(static_cast<std::size_t>(flash.dies)),
      channel_free_(static_cast<std::size_t>(flash.channels)) {}

Picoseconds FlashArray::transfer_time(Bytes bytes) const {
  const Bytes spare(flash_.page_spare.count() * bytes.count() / flash_.page.count());
  const double seconds = (bytes + spare).as_double() / flash_.channel_rate.as_double();
  const double command = flash_.transfer_command.as_double();
  return Picoseconds(static_cast<std::int64_t>((seconds * kPicosecondsPerSecond + command) * stretch_ + 0.5));
}

OpIndex FlashArray::make(const FlashOp& op) {
  ++pending_;
  if (spare_.empty()) {
    ops_.push_back(op);
    return static_cast<OpIndex>(ops_.size() - 1);
  }
  const OpIndex index = spare_.back();
  spare_.pop_back();
  ops_[index] = op;
  return index;
}

void FlashArray::chain(OpIndex before, OpIndex op) {
  ops_[before].next = op;
  ++ops_[op].blockers;
}

void FlashArray::enqueue(OpIndex index, Picoseconds now) {
  const FlashOp& op = ops_[index];
  Die& die = dies_[op.die];
  const bool urgent = op.kind == OpKind::read && is_urgent(op.purpose);
  (urgent ? die.urgent : die.other).push(index);
  start(op.die, now);
}

void FlashArray::release(OpIndex index, Picoseconds now) {
  --pending_;
  const OpIndex next = ops_[index].next;
  spare_.push_back(index);
  if (next != kNoOp && --ops_[next].blockers == 0) {
    enqueue(next, now);
  }
}

void FlashArray::start(std::uint32_t index, Picoseconds now) {
  Die& die = dies_[index];
  Picoseconds begin = now;
  if (die.array != kNoOp) {
    const bool may_stop = flash_.suspend && die.array_runs && ops_[die.array].kind != OpKind::read &&
                          die.suspended == kNoOp && !die.urgent.empty() && die.reads_in_row < kReadsInRow;
    if (!may_stop) {
      return;
    }
    ++suspends_;
    ++die.stamp;  // calls its end off
    die.suspended = std::exchange(die.array, kNoOp);
    die.left = die.array_end - now;
    begin = now + *flash_.suspend;
  }
  const bool others = die.suspended != kNoOp || !die.other.empty();
  if (!die.urgent.empty() && (!others || die.reads_in_row < kReadsInRow)) {
    const OpIndex op = die.urgent.front();
    die.urgent.pop();
    ++die.reads_in_row;
    start_read(die, op, begin);
  } else if (die.suspended != kNoOp) {
    run_array(die, std::exchange(die.suspended, kNoOp), now + die.left);
  } else if (!die.other.empty()) {
    const OpIndex op = die.other.front();
    die.other.pop();
    start_other(die, op, now);
  }
}

int FlashArray::retry_steps() {
  if (flash_.retry_share == 0) {
    return 0;
  }
  int steps = 0;
  for (double share = flash_.retry_share;; share = flash_.retry_again) {
    if (random_.unit() >= share) {
      return steps;
    }
    ++steps;
    ++retries_;
  }
}

void FlashArray::start_read(Die& die, OpIndex op, Picoseconds begin) {
  const FlashOp& read = ops_[op];
  if (die.set == read.set && die.moving == kNoOp) {
    return run_array(die, op, begin);  // still in the register
  }
  die.set = read.set;
  run_array(die, op, begin + read.array * (1 + retry_steps()));
}

void FlashArray::start_other(Die& die, OpIndex op, Picoseconds now) {
  const FlashOp& other = ops_[op];
  if (other.kind == OpKind::read) {
    return start_read(die, op, now);
  }
  die.set = kNoSet;
  if (other.kind == OpKind::erase) {
    return run_array(die, op, now + other.array);
  }
  die.array = op;
  die.array_runs = false;
  calendar_.add(reserve_channel(other.die, other.moved, now), StorageEvent::transfer_end, op);
}

void FlashArray::run_array(Die& die, OpIndex op, Picoseconds end) {
  die.array = op;
  die.array_runs = true;
  die.array_end = end;
  calendar_.add(end, StorageEvent::array_end, ops_[op].die, ++die.stamp);
}

Picoseconds FlashArray::reserve_channel(std::uint32_t die, Bytes bytes, Picoseconds now) {
  Picoseconds& free = channel_free_[die % channel_free_.size()];
  free = std::max(free, now) + transfer_time(bytes);
  return free;
}

void FlashArray::move_out(Die& die, OpIndex op, Picoseconds now) {
  die.moving = op;
  calendar_.add(reserve_channel(ops_[op].die, ops_[op].moved, now), StorageEvent::transfer_end, op);
  if (flash_.cache_read) {
    die.array = kNoOp;
  }
}

std::optional<OpIndex> FlashArray::end_array(Die& die, Picoseconds now) {
  const OpIndex op = die.array;
  die.array_runs = false;
  if (ops_[op].kind != OpKind::read) {
    die.array = kNoOp;
    die.reads_in_row = 0;
    start(ops_[op].die, now);
    return op;
  }
  die.waits = die.moving != kNoOp;
  if (!die.waits) {
    move_out(die, op, now);
    start(ops_[op].die, now);
  }
  return std::nullopt;
}

std::optional<OpIndex> FlashArray::handle(const StorageCalendar::Event& event) {
  if (event.kind == StorageEvent::array_end) {
    Die& die = dies_[event.index];
    return die.stamp == event.stamp ? end_array(die, event.time) : std::nullopt;
  }
  const OpIndex op = event.index;
  Die& die = dies_[ops_[op].die];
  if (ops_[op].kind == OpKind::program) {
    run_array(die, op, event.time + ops_[op].array);
    start(ops_[op].die, event.time);
    return std::nullopt;
  }
  die.moving = kNoOp;
  if (!flash_.cache_read) {
    die.array = kNoOp;
  } else if (die.waits) {
    die.waits = false;
    move_out(die, die.array, event.time);
  }
  start(ops_[op].die, event.time);
  return op;
}

}  // namespace kvsim::model
