// SPDX-License-Identifier: Apache-2.0
#include "models/page_cache/swap.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "configs/error/error.h"

namespace kvsim::model {

AnonymousMemory::AnonymousMemory(BlockDevice& device, const SwapSetup& setup, std::int64_t pages)
    : setup_(setup),
      pages_(static_cast<std::size_t>(pages)),
      lru_(pages_, *this),
      queue_(device, setup.block),
      slot_of_(static_cast<std::size_t>(pages), kNoSlot),
      page_in_(static_cast<std::size_t>(setup.area.count() / kPageBytes), kNoPage),
      touched_(static_cast<std::size_t>(pages)) {
  check(pages > 0 && pages < static_cast<std::int64_t>(kNoPage), "pages have numbers");
  check(setup.page_cluster >= 0 && setup.page_cluster <= 10, "a cluster is 1 to 1024 pages");
  check(!setup.zram || setup.zram->ratio >= 1, "compression does not make larger");
  resize();
}

std::int64_t AnonymousMemory::store() const {
  return setup_.zram
             ? static_cast<std::int64_t>(std::ceil(static_cast<double>(slots_used_) / setup_.zram->ratio))
             : 0;
}

void AnonymousMemory::resize() {
  const std::int64_t min = setup_.min_free.count() / kPageBytes;
  lru_.set_marks({.frames = setup_.memory.count() / kPageBytes - store(),
                  .min = min,
                  .low = min + min / 4,
                  .high = min + min / 2});
}

SwapTouched AnonymousMemory::touch(std::int64_t first, std::int64_t pages, bool write, Picoseconds now) {
  check(0 <= first && 0 < pages && pages <= static_cast<std::int64_t>(pages_.size()) &&
            first <= static_cast<std::int64_t>(pages_.size()) - pages,
        "an access stays within the memory");
  Call call{.now = now, .result = {}};
  for (std::int64_t i = first; i < first + pages; ++i) {
    const auto id = static_cast<PageId>(i);
    if (!pages_[id].has(page_flag::mapped) && !fault(call, id)) {
      call.result.out_of_memory = true;
      break;
    }
    pages_[id].set(page_flag::young | page_flag::used);
    if (write) {
      free_slot(id);  // what is on the area is out of date
    }
  }
  call.result.done = call.now;
  return call.result;
}

bool AnonymousMemory::fault(Call& call, PageId id) {
  collect(call.now);
  now_ = call.now;
  Page& page = pages_[id];
  if (page.resident()) {
    // Read ahead into the swap cache.
    ++hits_;
    const bool ready = page.uptodate();
    (ready ? call.result.minor_faults : call.result.major_faults) += 1;
    call.now += ready ? setup_.minor_fault : setup_.major_fault;
    wait_for(call, id);
  } else if (slot_of_[id] != kNoSlot) {
    ++call.result.major_faults;
    call.now += setup_.major_fault;
    if (!swap_in(call, id)) {
      return false;
    }
  } else {
    if (!lru_.add(id)) {
      return false;
    }
    flush_writes();
    ++in_use_;
    touched_[id] = true;
    ++call.result.minor_faults;
    call.now += setup_.minor_fault;
  }
  page.set(page_flag::mapped);
  return true;
}

bool AnonymousMemory::swap_in(Call& call, PageId id) {
  if (setup_.zram) {
    // SWP_SYNCHRONOUS_IO: no read-ahead.
    if (!lru_.add(id)) {
      return false;
    }
    ++counters_.swapped_in;
    call.now += setup_.zram->decompress;
    call.result.waited += setup_.zram->decompress;
    return true;
  }
  read_around(call, id);
  if (!pages_[id].resident()) {
    if (!lru_.add(id)) {
      return false;
    }
    pages_[id].set(page_flag::in_flight);
    ++counters_.swapped_in;
    read_run(slot_of_[id], 1, call.now);
  }
  flush_writes();
  wait_for(call, id);
  return true;
}

// swapin_nr_pages(): more while what was read ahead gets used.
std::int64_t AnonymousMemory::window(std::uint32_t slot) {
  const std::int64_t most = std::int64_t{1} << setup_.page_cluster;
  if (most == 1) {
    return 1;
  }
  std::int64_t pages = hits_ + 2;
  hits_ = 0;
  if (pages == 2) {
    if (slot != last_slot_ + 1 && slot + 1 != last_slot_) {
      pages = 1;
    }
    last_slot_ = slot;
  } else {
    pages = static_cast<std::int64_t>(
        std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(pages, 4))));
  }
  last_window_ = std::max(std::min(pages, most), last_window_ / 2);
  return last_window_;
}

// swap_cluster_readahead(): the aligned window of slots.
void AnonymousMemory::read_around(Call& call, PageId id) {
  const std::uint32_t slot = slot_of_[id];
  const auto pages = static_cast<std::uint32_t>(window(slot));
  const std::uint32_t first = slot - slot % pages;
  const std::uint32_t end = std::min(first + pages, static_cast<std::uint32_t>(page_in_.size()));
  std::int64_t run = 0;
  for (std::uint32_t i = first; i < end; ++i) {
    const PageId page = page_in_[i];
    if (page == kNoPage || pages_[page].resident() || !lru_.add(page)) {
      read_run(i - static_cast<std::uint32_t>(run), run, call.now);
      run = 0;
      continue;
    }
    pages_[page].clear(page_flag::used);
    pages_[page].set(page_flag::in_flight);
    ++counters_.swapped_in;
    counters_.read_ahead += page == id ? 0 : 1;
    ++run;
  }
  read_run(end - static_cast<std::uint32_t>(run), run, call.now);
}

void AnonymousMemory::read_run(std::uint32_t slot, std::int64_t pages, Picoseconds now) {
  if (pages > 0) {
    queue_.submit({.op = StorageOp::read,
                   .offset = setup_.offset + Bytes(slot * kPageBytes),
                   .bytes = Bytes(pages * kPageBytes),
                   .page = slot},
                  now);
  }
}

void AnonymousMemory::collect(Picoseconds now) {
  while (const std::optional<BlockDone> done = queue_.next_until(now)) {
    finish(*done);
  }
}

void AnonymousMemory::finish(const BlockDone& done) {
  if (done.run.op == StorageOp::read) {
    const auto pages = static_cast<std::uint32_t>(done.run.bytes.count() / kPageBytes);
    for (std::uint32_t slot = done.run.page; slot < done.run.page + pages; ++slot) {
      pages_[page_in_[slot]].clear(page_flag::in_flight);
    }
  }
}

void AnonymousMemory::wait_for(Call& call, PageId page) {
  while (pages_[page].has(page_flag::in_flight)) {
    const std::optional<BlockDone> done = queue_.next();
    check(done.has_value(), "a page in flight has a request");
    if (done->done > call.now) {
      call.result.waited += done->done - call.now;
      call.now = done->done;
    }
    finish(*done);
  }
}

// can_reclaim_anon_pages(): there must be a slot, or one that a page in memory can give up. The page that is
// asked about is on no list and so counts as swapped already.
bool AnonymousMemory::may_evict(PageId id) const {
  return slot_of_[id] != kNoSlot || slots_used_ < static_cast<std::int64_t>(page_in_.size()) ||
         slots_used_ > swapped() - 1;
}

void AnonymousMemory::evict(PageId id) {
  counters_.wasted += pages_[id].has(page_flag::used) ? 0 : 1;
  if (slot_of_[id] != kNoSlot) {
    return;  // the area still has it
  }
  const std::uint32_t slot = take_slot(id);
  ++counters_.swapped_out;
  if (setup_.zram) {
    counters_.processor += setup_.zram->compress;
    return;
  }
  if (write_pages_ > 0 && slot != write_first_ + write_pages_) {
    flush_writes();
  }
  if (write_pages_++ == 0) {
    write_first_ = slot;
  }
}

std::uint32_t AnonymousMemory::take_slot(PageId id) {
  const auto slots = static_cast<std::uint32_t>(page_in_.size());
  check(slots > 0, "reclaim needs a swap area");
  for (std::uint32_t tried = 0; tried < 2 * slots; ++tried) {
    const std::uint32_t slot = next_slot_;
    next_slot_ = next_slot_ + 1 < slots ? next_slot_ + 1 : 0;
    const PageId holder = page_in_[slot];
    // Pages that are back in memory give up their slots when there is no other (vm_swap_full()).
    const bool spare = holder != kNoPage && tried >= slots && pages_[holder].uptodate() && holder != id;
    if (holder == kNoPage || spare) {
      if (spare) {
        free_slot(holder);
      }
      page_in_[slot] = id;
      slot_of_[id] = slot;
      ++slots_used_;
      return slot;
    }
  }
  check(false, "pages with contents fit in memory and area");
  return kNoSlot;
}

void AnonymousMemory::free_slot(PageId id) {
  if (slot_of_[id] != kNoSlot) {
    page_in_[slot_of_[id]] = kNoPage;
    slot_of_[id] = kNoSlot;
    --slots_used_;
  }
}

/// Neighbouring slots go out as one request; zram's store takes its room.
void AnonymousMemory::flush_writes() {
  if (write_pages_ > 0) {
    queue_.submit({.op = StorageOp::write,
                   .offset = setup_.offset + Bytes(write_first_ * kPageBytes),
                   .bytes = Bytes(write_pages_ * kPageBytes),
                   .page = kNoPage},
                  now_);
    write_pages_ = 0;
  }
  if (setup_.zram) {
    resize();
  }
}

SwapCounters AnonymousMemory::counters() const {
  SwapCounters counters = counters_;
  counters.lru = lru_.counters();
  return counters;
}

}  // namespace kvsim::model
