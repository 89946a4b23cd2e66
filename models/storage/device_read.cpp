// SPDX-License-Identifier: Apache-2.0
// Reads: mapping, page sets, read-ahead, and the way to the host.
#include <algorithm>

#include "models/storage/storage_device.h"
#include "traces/record/spread.h"

namespace kvsim::model {

namespace {

/// Page sets of the mapping table lie outside those of the data.
constexpr std::uint64_t kMapSets = std::uint64_t{1} << 40U;
constexpr Bytes kMapPage{4096};

}  // namespace

void StorageDevice::begin_read(Index index, Picoseconds now) {
  const Unit first = unit_of(commands_[index].offset);
  const Unit last = unit_of(commands_[index].offset + commands_[index].bytes - Bytes(1));
  for (Unit page = first / kMapPageUnits; page <= last / kMapPageUnits; ++page) {
    if (map_cache_.use(page)) {
      ++counters_.map_hits;
      continue;
    }
    ++counters_.map_misses;
    ++commands_[index].pieces;
    read_map_page(page, {.purpose = OpPurpose::map, .owner = index}, now);
  }
  if (commands_[index].pieces == 0) {
    commands_[index].has_map = true;
    read_data(index, now);
  }
}

/// Mapping pages are spread over the dies, and lie in blocks of one bit per cell.
void StorageDevice::read_map_page(std::uint32_t page, FlashOp op, Picoseconds now) {
  op.die = static_cast<std::uint32_t>(trace::spread(page + 1) % static_cast<std::uint64_t>(part_.flash.dies));
  op.set = kMapSets + page;
  op.array = part_.flash.slc_read;
  op.moved = kMapPage;
  flash_.enqueue(flash_.make(op), now);
}

void StorageDevice::read_data(Index index, Picoseconds now) {
  const Bytes begin = commands_[index].offset;
  const Bytes end = begin + commands_[index].bytes;
  const Unit stop = unit_of(end - Bytes(1)) + 1;
  ++commands_[index].pieces;  // until all are under way
  for (Unit unit = unit_of(begin); unit < stop;) {
    Unit count = stop - unit;
    if (ahead_.is_on()) {
      const Unit set = unit / ftl_.set_units();
      count = std::min(count, (set + 1) * ftl_.set_units() - unit);
      if (const std::optional<std::uint32_t> entry = ahead_.find(set)) {
        const std::int64_t bytes = std::min(end.count(), (unit + count) * part_.flash.unit.count()) -
                                   std::max(begin.count(), unit * part_.flash.unit.count());
        if (ahead_.entry(*entry).reads_left > 0) {
          ++commands_[index].pieces;
          ahead_.entry(*entry).waiters.push_back({index, bytes});
        } else {
          to_host(index, Bytes(bytes), now);
        }
        unit += count;
        ahead_.entry(*entry).is_read = unit % ftl_.set_units() == 0;
        if (ahead_.entry(*entry).is_read && ahead_.entry(*entry).reads_left == 0) {
          ahead_.drop(*entry);
        }
        continue;
      }
    }
    const UnitRun run = ftl_.map().run(unit, count);
    read_run(index, run, now);
    unit += run.count;
  }
  if (ahead_.is_on() && ahead_.note_read(begin.count(), end.count())) {
    run_ahead(end, now);
  }
  drop_piece(index, now);
}

/// Units that lie in one piece, page set by page set.
void StorageDevice::read_run(Index index, UnitRun run, Picoseconds now) {
  const std::int64_t unit = part_.flash.unit.count();
  const std::int64_t begin = commands_[index].offset.count();
  const std::int64_t end = begin + commands_[index].bytes.count();
  const auto wanted = [&](Unit first, Unit count) {
    return Bytes(std::min(end, (first + std::int64_t{count}) * unit) - std::max(begin, first * unit));
  };
  if (run.physical == kNowhere) {  // the firmware answers with zeros
    return to_host(index, wanted(run.logical, run.count), now);
  }
  while (run.count > 0) {
    const Unit count = std::min(run.count, ftl_.set_units() - run.physical % ftl_.set_units());
    ++commands_[index].pieces;
    read_set({.purpose = OpPurpose::data, .owner = index, .wanted = wanted(run.logical, count)}, run.physical,
             count, now);
    run.logical += count;
    run.physical += count;
    run.count -= count;
  }
}

/// Units of one page set.
void StorageDevice::read_set(FlashOp op, Unit physical, Unit units, Picoseconds now) {
  op.kind = OpKind::read;
  op.die = static_cast<std::uint32_t>(ftl_.die_of(physical));
  op.set = physical / ftl_.set_units();
  op.array = ftl_.is_slc(physical) ? part_.flash.slc_read : part_.flash.read;
  op.moved = part_.flash.unit * units;
  ++counters_.page_reads;
  flash_.enqueue(flash_.make(op), now);
}

void StorageDevice::to_host(Index index, Bytes bytes, Picoseconds now) {
  commands_[index].linked = reserve_link(true, bytes, now);
}

void StorageDevice::run_ahead(Bytes end, Picoseconds now) {
  const Bytes limit = std::min(end + part_.controller.read_ahead, part_.capacity);
  if (limit <= end) {
    return;
  }
  const Unit last = unit_of(limit - Bytes(1)) / ftl_.set_units();
  for (Unit set = unit_of(end) / ftl_.set_units(); set <= last; ++set) {
    // A page set that a command has begun to read is in the die's register, or on its way.
    const bool begun = set == unit_of(end) / ftl_.set_units() && unit_of(end) % ftl_.set_units() != 0;
    if (!begun && !ahead_.find(set)) {
      fetch_ahead(set, now);
    }
  }
}

void StorageDevice::fetch_ahead(Unit set, Picoseconds now) {
  Unit unit = set * ftl_.set_units();
  const Unit stop = std::min(unit + ftl_.set_units(), ftl_.units());
  if (!map_cache_.holds(unit / kMapPageUnits)) {
    return;
  }
  const UnitRun whole = ftl_.map().run(unit, stop - unit);
  if (whole.physical == kNowhere) {
    return;
  }
  const std::optional<std::uint32_t> entry = ahead_.take(set);
  if (!entry) {
    return;
  }
  while (unit < stop) {
    const UnitRun run = ftl_.map().run(unit, stop - unit);
    const Unit count = run.physical == kNowhere
                           ? run.count
                           : std::min(run.count, ftl_.set_units() - run.physical % ftl_.set_units());
    if (run.physical != kNowhere) {
      ++ahead_.entry(*entry).reads_left;
      read_set({.purpose = OpPurpose::read_ahead, .owner = *entry}, run.physical, count, now);
    }
    unit += count;
  }
}

void StorageDevice::end_ahead(Index index, Picoseconds now) {
  ReadAhead::Entry& entry = ahead_.entry(index);
  if (--entry.reads_left > 0) {
    return;
  }
  for (const ReadAhead::Waiter& waiter : entry.waiters) {
    to_host(waiter.command, Bytes(waiter.bytes), now);
    drop_piece(waiter.command, now);
  }
  entry.waiters.clear();
  if (entry.is_read) {
    ahead_.drop(index);
  }
}

}  // namespace kvsim::model
