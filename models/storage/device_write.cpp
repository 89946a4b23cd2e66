// SPDX-License-Identifier: Apache-2.0
// Writes: the buffer, page sets, the mapping's journal, and the collector.
#include <algorithm>

#include "models/storage/storage_device.h"

namespace kvsim::model {

namespace {

constexpr Bytes kMapPage{4096};
/// Without requests for so long, the device tidies up (assumed: firmware waits for a pause, not for a gap).
constexpr Picoseconds kIdle(10'000'000'000);

}  // namespace

/// What the write leaves of its first and last unit must be read first.
void StorageDevice::begin_write(Index index, Picoseconds now) {
  const Command& command = commands_[index];
  const std::int64_t unit = part_.flash.unit.count();
  const Bytes end = command.offset + command.bytes;
  const Unit first = unit_of(command.offset);
  const Unit last = unit_of(end - Bytes(1));
  const bool keeps_head = command.offset.count() % unit != 0;
  const bool keeps_tail = end.count() % unit != 0 && (last != first || !keeps_head);
  std::int64_t reads = 0;
  for (const auto& [keeps, at] : {std::pair(keeps_head, first), std::pair(keeps_tail, last)}) {
    const Unit physical = keeps ? ftl_.map().find(at) : kNowhere;
    if (physical != kNowhere) {
      ++reads;
      commands_[index].pieces = reads;
      read_set({.purpose = OpPurpose::old_data, .owner = index}, physical, 1, now);
    }
  }
  if (reads == 0) {
    receive(index, now);
  }
}

void StorageDevice::begin_discard(Index index, Picoseconds now) {
  // Units that are covered only in part keep their data.
  const std::int64_t unit = part_.flash.unit.count();
  const std::int64_t begin = commands_[index].offset.count();
  const auto first = static_cast<Unit>((begin + unit - 1) / unit);
  const auto stop = static_cast<Unit>((begin + commands_[index].bytes.count()) / unit);
  if (first < stop) {
    ahead_.forget(first / ftl_.set_units(), (stop - 1) / ftl_.set_units());
    ftl_.discard(first, stop - first);
    note_changes(first, stop - first);
  }
  finish(index, now);
}

/// Takes the next piece from the host, at most a page set, as soon as there is room for it.
void StorageDevice::receive(Index index, Picoseconds now) {
  Command& command = commands_[index];
  const Unit room = buffer_units_ - buffered_;
  if (flush_left_ > 0 || room == 0) {
    blocked_.push(index);
    return;
  }
  const std::int64_t unit = part_.flash.unit.count();
  const std::int64_t at = (command.offset + command.bytes - command.left).count();
  const std::int64_t longest = std::int64_t{std::min(room, ftl_.set_units())} * unit - at % unit;
  const std::int64_t bytes = std::min(command.left.count(), longest);
  buffered_ += static_cast<Unit>((at % unit + bytes + unit - 1) / unit);
  calendar_.add(reserve_link(false, Bytes(bytes), now), StorageEvent::link_written, index,
                static_cast<std::uint32_t>(bytes));
}

void StorageDevice::receive_end(Index index, Bytes bytes, Picoseconds now) {
  const Bytes at = commands_[index].offset + commands_[index].bytes - commands_[index].left;
  const Unit first = unit_of(at);
  const Unit last = unit_of(at + bytes - Bytes(1));
  commands_[index].left -= bytes;
  ahead_.forget(first / ftl_.set_units(), last / ftl_.set_units());
  place(index, first, last - first + 1, now);
  if (requests_[commands_[index].request].status == StorageStatus::ok) {
    counters_.host_written += bytes;
  } else {
    commands_[index].left = Bytes();
  }
  if (map_cache_.is_journal_full() && flush_left_ == 0) {
    begin_flush(now);
  }
  if (commands_[index].left.count() > 0) {
    receive(index, now);
  } else {
    finish(index, now);
  }
}

void StorageDevice::place(Index index, Unit first, Unit count, Picoseconds now) {
  while (count > 0) {
    const std::optional<UnitRun> run = ftl_.write(first, count);
    if (!run) {
      if (collect(now)) {
        continue;
      }
      Request& request = requests_[commands_[index].request];
      request.status = StorageStatus::device_full;
      request.place = part_.flash.unit * first;
      buffered_ -= count;
      return unblock(now);
    }
    note_changes(run->logical, run->count);
    program_full_sets(run->physical, run->count, OpPurpose::destage, now);
    first += run->count;
    count -= run->count;
    while (ftl_.is_collection_due() && collect(now)) {
    }
  }
}

OpIndex StorageDevice::program_set(Unit physical, OpPurpose purpose) {
  const bool slc = ftl_.is_slc(physical);
  const Bytes bytes = page_set(part_.flash);
  (slc ? counters_.slc_programmed : counters_.native_programmed) += bytes;
  return flash_.make({.kind = OpKind::program,
                      .purpose = purpose,
                      .die = static_cast<std::uint32_t>(ftl_.die_of(physical)),
                      .array = slc ? part_.flash.slc_program : part_.flash.program,
                      .moved = bytes});
}

void StorageDevice::program_full_sets(Unit physical, Unit count, OpPurpose purpose, Picoseconds now) {
  const Unit set = ftl_.set_units();
  for (Unit full = (physical / set + 1) * set; full <= physical + count; full += set) {
    flash_.enqueue(program_set(full - 1, purpose), now);
  }
}

/// One step of the collector: reads, and a program that begins after them once a page set is full.
bool StorageDevice::collect(Picoseconds now) {
  const bool won = ftl_.collect(moves_);
  const Unit set = ftl_.set_units();
  OpIndex program = kNoOp;
  for (const UnitMove& move : moves_) {
    for (Unit full = (move.to / set + 1) * set; full <= move.to + move.count; full += set) {
      program = program_set(full - 1, OpPurpose::collect);
    }
  }
  for (const UnitMove& move : moves_) {
    counters_.collected += part_.flash.unit * move.count;
    for (Unit from = move.from; from < move.from + move.count;) {
      const Unit units = std::min(move.from + move.count - from, set - from % set);
      FlashOp read{.purpose = OpPurpose::collect,
                   .die = static_cast<std::uint32_t>(ftl_.die_of(from)),
                   .set = from / set,
                   .array = ftl_.is_slc(from) ? part_.flash.slc_read : part_.flash.read,
                   .moved = part_.flash.unit * units};
      const OpIndex op = flash_.make(read);
      if (program != kNoOp) {
        flash_.chain(op, program);
      }
      flash_.enqueue(op, now);
      from += units;
    }
  }
  const std::uint32_t erased = ftl_.take_erased();
  counters_.erases += erased;
  for (std::int64_t die = 0; die < part_.flash.dies * erased; ++die) {
    flash_.enqueue(flash_.make({.kind = OpKind::erase,
                                .purpose = OpPurpose::erase,
                                .die = static_cast<std::uint32_t>(die % part_.flash.dies),
                                .array = part_.flash.erase}),
                   now);
  }
  return won || erased > 0;
}

/// What a pause is long enough for is done at its end at once, as nobody saw it in between.
void StorageDevice::collect_while_idle(Picoseconds gap) {
  if (gap < kIdle || !ftl_.has_idle_work()) {
    return;
  }
  const Bytes set = page_set(part_.flash);
  const Picoseconds array = (part_.flash.slc_read + part_.flash.program) / part_.flash.dies;
  const Picoseconds channel = flash_.transfer_time(set) * 2 / part_.flash.channels;
  const Picoseconds step = std::max(array, channel);
  for (Picoseconds spent = step; spent <= gap && ftl_.has_idle_work() && ftl_.collect(moves_);
       spent += step) {
    for (const UnitMove& move : moves_) {
      counters_.collected += part_.flash.unit * move.count;
      counters_.native_programmed += part_.flash.unit * move.count;
    }
  }
  counters_.erases += ftl_.take_erased();
}

void StorageDevice::note_changes(Unit logical, Unit count) {
  for (Unit page = logical / kMapPageUnits; page <= (logical + count - 1) / kMapPageUnits; ++page) {
    map_cache_.note_change(page);
  }
}

/// The mapping pages that have changed are read, if they are not held, and then written anew.
void StorageDevice::begin_flush(Picoseconds now) {
  const std::vector<std::uint32_t> pages = map_cache_.take_changed();
  ++counters_.map_flushes;
  flush_pages_ = static_cast<std::int64_t>(pages.size());
  flush_programs_ = false;
  flush_left_ = 1;  // until all reads are under way
  for (const std::uint32_t page : pages) {
    if (!map_cache_.holds(page)) {
      ++flush_left_;
      read_map_page(page, {.purpose = OpPurpose::map_flush}, now);
    }
  }
  end_flush_operation(now);
}

void StorageDevice::program_map(Picoseconds now) {
  const Bytes set = page_set(part_.flash);
  const std::int64_t sets = (flush_pages_ * kMapPage.count() + set.count() - 1) / set.count();
  counters_.map_programmed += set * sets;
  flush_programs_ = true;
  flush_left_ = sets;
  for (std::int64_t i = 0; i < sets; ++i) {
    flash_.enqueue(flash_.make({.kind = OpKind::program,
                                .purpose = OpPurpose::map_flush,
                                .die = map_die_,
                                .array = part_.flash.slc_program,
                                .moved = set}),
                   now);
    map_die_ = (map_die_ + 1) % static_cast<std::uint32_t>(part_.flash.dies);
  }
}

void StorageDevice::end_flush_operation(Picoseconds now) {
  if (--flush_left_ > 0) {
    return;
  }
  if (!flush_programs_) {
    return program_map(now);
  }
  unblock(now);
}

void StorageDevice::unblock(Picoseconds now) {
  for (std::size_t tries = blocked_.size(); tries > 0 && flush_left_ == 0 && buffered_ < buffer_units_;
       --tries) {
    const Index command = blocked_.front();
    blocked_.pop();
    receive(command, now);
  }
}

}  // namespace kvsim::model
