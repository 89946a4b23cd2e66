// SPDX-License-Identifier: Apache-2.0
#include "sim/run/budget.h"

#include <limits>
#include <string>

namespace kvsim::sim {

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

Bytes whole_pages(Bytes bytes, Bytes page) {
  const std::int64_t pages = bytes.count() / page.count() + (bytes.count() % page.count() != 0 ? 1 : 0);
  std::int64_t result = 0;
  return Bytes(__builtin_mul_overflow(pages, page.count(), &result) ? kMost : result);
}

}  // namespace

model::LedgerItem item_of(const trace::Alloc& alloc, Bytes page) {
  return {.name = std::string(trace::to_string(alloc.name)),
          .kind = alloc.kind,
          .backing = alloc.backing,
          .bytes = whole_pages(alloc.bytes, page)};
}

Bytes total_of(const std::vector<model::LedgerItem>& items, Bytes held) {
  std::int64_t sum = held.count();
  for (const model::LedgerItem& item : items) {
    sum = __builtin_add_overflow(sum, item.bytes.count(), &sum) ? kMost : sum;
  }
  return Bytes(sum);
}

}  // namespace kvsim::sim
