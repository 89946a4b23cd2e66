// SPDX-License-Identifier: Apache-2.0
#include "models/storage/map_table.h"

#include <algorithm>
#include <numeric>

namespace kvsim::model {

MapTable::MapTable(Unit units) : pages_((std::size_t{units} + kMapPageUnits - 1) / kMapPageUnits) {}

UnitRun MapTable::run(Unit logical, Unit count) const {
  UnitRun result{logical, find(logical), 1};
  while (result.count < count) {
    const Unit at = logical + result.count;
    const Page& page = pages_[at / kMapPageUnits];
    const Unit expected = result.physical == kNowhere ? kNowhere : result.physical + result.count;
    if (find(at) != expected) {
      break;
    }
    // Up to the end of what is known to lie in one piece.
    const Unit in_page = at % kMapPageUnits;
    const Unit known = page.table ? 1 : (in_page < page.filled ? page.filled : kMapPageUnits) - in_page;
    result.count = std::min(count, result.count + known);
  }
  return result;
}

void MapTable::set(UnitRun run) {
  while (run.count > 0) {
    const Unit at = run.logical % kMapPageUnits;
    const Unit count = std::min(run.count, kMapPageUnits - at);
    set_in_page(pages_[run.logical / kMapPageUnits], at, run.physical, count);
    run.logical += count;
    run.count -= count;
    run.physical += run.physical == kNowhere ? 0 : count;
  }
}

void MapTable::set_in_page(Page& page, Unit at, Unit physical, Unit count) {
  if (count == kMapPageUnits) {
    tables_ -= page.table ? 1 : 0;
    page.table.reset();
    page.base = physical;
    page.filled = physical == kNowhere ? 0 : count;
    return;
  }
  if (!page.table && physical != kNowhere && at == page.filled &&
      (at == 0 || page.base + page.filled == physical)) {
    page.base = physical - at;
    page.filled += count;
    return;
  }
  scatter(page);
  if (physical == kNowhere) {
    std::fill_n(&page.table[at], count, kNowhere);
  } else {
    std::iota(&page.table[at], &page.table[at] + count, physical);
  }
}

void MapTable::scatter(Page& page) {
  if (page.table) {
    return;
  }
  page.table = std::make_unique<Unit[]>(kMapPageUnits);
  std::iota(&page.table[0], &page.table[0] + page.filled, page.base);
  std::fill(&page.table[0] + page.filled, &page.table[0] + kMapPageUnits, kNowhere);
  ++tables_;
}

std::size_t MapTable::memory() const {
  return pages_.size() * sizeof(Page) + tables_ * kMapPageUnits * sizeof(Unit);
}

}  // namespace kvsim::model
