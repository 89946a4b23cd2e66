// SPDX-License-Identifier: Apache-2.0
#include "models/storage/ftl.h"

#include <algorithm>
#include <utility>

#include "configs/error/error.h"

namespace kvsim::model {

namespace {

/// Free superblocks below which the collector works while the host writes,
constexpr std::int64_t kLow = 3;
/// and those that only it may take.
constexpr std::int64_t kReserve = 1;

Unit to_unit(std::int64_t value) {
  return static_cast<Unit>(value);
}

}  // namespace

Ftl::Ftl(const config::StoragePartSpec& part)
    : units_(to_unit(part.capacity.count() / part.flash.unit.count())),
      set_units_(to_unit(page_set(part.flash).count() / part.flash.unit.count())),
      dies_(to_unit(part.flash.dies)),
      block_units_(to_unit(superblock(part.flash).count() / part.flash.unit.count())),
      slc_units_(block_units_ / to_unit(part.flash.bits_per_cell)),
      slc_quota_(part.flash.slc_cache.count() / (std::int64_t{slc_units_} * part.flash.unit.count())),
      map_(units_),
      blocks_(static_cast<std::size_t>(superblocks(part))),
      free_(superblocks(part)) {}

bool Ftl::open(Stream& stream, bool slc, std::int64_t reserve) {
  if (free_ <= reserve) {
    return false;
  }
  // The least worn of the free ones.
  std::optional<std::uint32_t> best;
  for (std::uint32_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].state == State::free && (!best || blocks_[i].erases < blocks_[*best].erases)) {
      best = i;
    }
  }
  Block& block = blocks_[*best];
  block.state = State::open;
  block.slc = slc;
  --free_;
  slc_ += slc ? 1 : 0;
  stream = best;
  return true;
}

UnitRun Ftl::append(std::uint32_t index, Unit logical, Unit count) {
  Block& block = blocks_[index];
  const UnitRun run{logical, index * block_units_ + block.written, std::min(count, room(block))};
  if (!block.log.empty() && block.log.back().logical + block.log.back().count == logical) {
    block.log.back().count += run.count;
  } else {
    block.log.push_back({logical, run.count});
  }
  block.written += run.count;
  block.valid += run.count;
  map_.set(run);
  return run;
}

std::optional<UnitRun> Ftl::write_to(Stream& stream, bool slc, UnitRun run) {
  if (!stream && !open(stream, slc, kReserve)) {
    return std::nullopt;
  }
  run.count = std::min(run.count, room(blocks_[*stream]));
  invalidate(run.logical, run.count);
  const UnitRun placed = append(*stream, run.logical, run.count);
  owe(placed.count);
  if (room(blocks_[*stream]) == 0) {
    blocks_[*stream].state = State::closed;
    stream.reset();
  }
  return placed;
}

std::optional<UnitRun> Ftl::write(Unit logical, Unit count) {
  const bool slc = slc_quota_ > 0;
  if (slc && !host_ && slc_ >= slc_quota_) {
    return std::nullopt;  // a block of the cache must be emptied first
  }
  return write_to(host_, slc, {logical, 0, count});
}

std::optional<UnitRun> Ftl::write_native(Unit logical, Unit count) {
  return write_to(native_, false, {logical, 0, count});
}

void Ftl::invalidate(Unit logical, Unit count) {
  while (count > 0) {
    UnitRun run = map_.run(logical, count);
    logical += run.count;
    count -= run.count;
    while (run.physical != kNowhere && run.count > 0) {
      const Unit here = std::min(run.count, block_units_ - run.physical % block_units_);
      blocks_[run.physical / block_units_].valid -= here;
      run.physical += here;
      run.count -= here;
    }
  }
}

void Ftl::discard(Unit logical, Unit count) {
  invalidate(logical, count);
  map_.set({logical, kNowhere, count});
}

/// A victim must be empty when the blocks that are left have been written.
void Ftl::owe(Unit written) {
  if (free_ > kLow && !is_slc_full()) {
    debt_ = 0;
    return;
  }
  if (!victim_ && !choose_victim()) {
    return;
  }
  const Block& victim = blocks_[*victim_];
  Unit left = host_ ? room(blocks_[*host_]) : 0;
  if (!is_slc_full()) {
    left += native_ ? room(blocks_[*native_]) : 0;
    left += to_unit(std::max<std::int64_t>(free_ - kReserve - 1, 0)) * block_units_;
  }
  debt_ += static_cast<double>(written) * victim.valid / std::max<double>(left, written);
}

bool Ftl::has_idle_work() const {
  return slc_ > (host_ ? 1 : 0) || free_ <= kLow;
}

/// The block with the fewest valid units, of several the least worn.
std::optional<std::uint32_t> Ftl::best_victim(bool slc) const {
  std::optional<std::uint32_t> best;
  const auto cost = [this](std::uint32_t block) {
    return std::pair(blocks_[block].valid, blocks_[block].erases);
  };
  for (std::uint32_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    if (block.state == State::closed && block.slc == slc && (!best || cost(i) < cost(*best))) {
      best = i;
    }
  }
  return best;
}

bool Ftl::choose_victim() {
  const std::optional<std::uint32_t> native = best_victim(false);
  const std::optional<std::uint32_t> slc = best_victim(true);
  // Emptying an SLC block always wins room. A native one does if something in it is out of date.
  const bool native_wins = native && blocks_[*native].valid < blocks_[*native].written;
  if (!slc && !native_wins) {
    return false;
  }
  const bool take_native =
      native_wins && (!slc || (!is_slc_full() && blocks_[*native].valid < blocks_[*slc].valid));
  victim_ = take_native ? native : slc;
  blocks_[*victim_].state = State::collected;
  entry_ = 0;
  in_entry_ = 0;
  looked_ = 0;
  return true;
}

bool Ftl::collect(std::vector<UnitMove>& moves) {
  moves.clear();
  if (!victim_ && !choose_victim()) {
    debt_ = 0;
    return false;
  }
  Block& victim = blocks_[*victim_];
  Unit moved = 0;
  while (moved < set_units_ && entry_ < victim.log.size()) {
    const LogEntry entry = victim.log[entry_];
    if (in_entry_ == entry.count) {
      ++entry_;
      in_entry_ = 0;
      continue;
    }
    const Unit logical = entry.logical + in_entry_;
    const Unit from = *victim_ * block_units_ + looked_;
    ++in_entry_;
    ++looked_;
    if (map_.find(logical) != from) {
      continue;  // out of date
    }
    if (!collector_ && !open(collector_, false, 0)) {
      --in_entry_;
      --looked_;
      return !moves.empty();
    }
    --victim.valid;
    const Unit to = append(*collector_, logical, 1).physical;
    if (!moves.empty() && moves.back().from + moves.back().count == from &&
        moves.back().to + moves.back().count == to) {
      ++moves.back().count;
    } else {
      moves.push_back({from, to, 1});
    }
    ++moved;
    if (room(blocks_[*collector_]) == 0) {
      blocks_[*collector_].state = State::closed;
      collector_.reset();
    }
  }
  debt_ = std::max(0.0, debt_ - moved);
  if (victim.valid == 0) {
    erase_victim();
  }
  return true;
}

void Ftl::erase_victim() {
  Block& victim = blocks_[*victim_];
  check(victim.valid == 0, "a block is erased when nothing in it is valid");
  slc_ -= victim.slc ? 1 : 0;
  victim = Block{.erases = victim.erases + 1, .log = std::move(victim.log)};
  victim.log.clear();
  ++free_;
  ++erased_;
  victim_.reset();
}

std::uint32_t Ftl::take_erased() {
  return std::exchange(erased_, 0);
}

EraseCounts Ftl::erase_counts() const {
  EraseCounts counts{.least = blocks_.front().erases, .most = 0, .total = 0};
  for (const Block& block : blocks_) {
    counts.least = std::min(counts.least, block.erases);
    counts.most = std::max(counts.most, block.erases);
    counts.total += block.erases;
  }
  return counts;
}

std::size_t Ftl::memory() const {
  std::size_t bytes = map_.memory() + blocks_.size() * sizeof(Block);
  for (const Block& block : blocks_) {
    bytes += block.log.capacity() * sizeof(LogEntry);
  }
  return bytes;
}

}  // namespace kvsim::model
