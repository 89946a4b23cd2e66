// SPDX-License-Identifier: Apache-2.0
#include "models/os_memory/memory_ledger.h"

#include <algorithm>
#include <limits>
#include <string>

#include "configs/error/error.h"

namespace kvsim::model {

namespace {

std::string name_of(const trace::Alloc& alloc) {
  return {alloc.name.begin(), std::find(alloc.name.begin(), alloc.name.end(), '\0')};
}

/// What a process can map on Linux: 47 address bits on x86-64, which is less than on arm64.
constexpr Bytes kAddressSpace{std::int64_t{1} << 47};
constexpr Bytes kMost{std::numeric_limits<std::int64_t>::max()};

/// Sizes come from traces: a sum or a rounding that does not fit its type is the largest number instead.
Bytes add(Bytes a, Bytes b) {
  return a > kMost - b ? kMost : a + b;
}

Bytes whole_pages(Bytes bytes, Bytes page) {
  const std::int64_t pages = bytes.count() / page.count() + (bytes.count() % page.count() != 0);
  std::int64_t result = 0;
  return __builtin_mul_overflow(pages, page.count(), &result) ? kMost : Bytes(result);
}

}  // namespace

MemoryLedger::MemoryLedger(const config::OsSpec& os, Bytes installed)
    : page_(os.page), available_(std::max(Bytes(), installed - os.firmware - os.reserve)), swap_(os.swap) {}

std::optional<OutOfMemory> MemoryLedger::allocate(const trace::Alloc& alloc) {
  const Bytes bytes = whole_pages(alloc.bytes, page_);
  const bool mapped = alloc.backing == trace::Backing::file_mapped;
  const Bytes needed = add(mapped ? total() : anonymous_, bytes);
  const Bytes limit = mapped ? kAddressSpace : available_ + swap_;
  if (needed > limit) {
    return OutOfMemory{.limit = mapped ? "address space" : "memory",
                       .item = name_of(alloc),
                       .needed = needed,
                       .available = limit};
  }
  (mapped ? file_mapped_ : anonymous_) += bytes;
  peak_ = std::max(peak_, total());
  items_.push_back({.name = name_of(alloc), .kind = alloc.kind, .backing = alloc.backing, .bytes = bytes});
  starts_.push_back(alloc.address);
  return std::nullopt;
}

void MemoryLedger::free(trace::Address address) {
  const auto found = std::find(starts_.begin(), starts_.end(), address);
  check(found != starts_.end(), "an allocation starts at the freed address");
  const auto at = found - starts_.begin();
  const LedgerItem& item = items_[static_cast<std::size_t>(at)];
  (item.backing == trace::Backing::file_mapped ? file_mapped_ : anonymous_) -= item.bytes;
  items_.erase(items_.begin() + at);
  starts_.erase(found);
}

}  // namespace kvsim::model
