// SPDX-License-Identifier: Apache-2.0
#include "traces/kv_cache/address_allocator.h"

#include <algorithm>
#include <iterator>

#include "configs/error/error.h"
#include "traces/record/checked.h"

namespace kvsim::trace {
namespace {

Address after(Address address, Bytes bytes) {
  return address + static_cast<Address>(bytes.count());
}

}  // namespace

AddressAllocator::AddressAllocator(Address base, Bytes memory)
    : memory_(memory / kAlignment.count() * kAlignment.count()) {
  check(base % static_cast<Address>(kAlignment.count()) == 0, "a memory begins at a whole line");
  check(memory >= Bytes(0) && after(base, memory) >= base, "a memory lies within the address space");
  if (memory_ > Bytes(0)) {
    holes_.emplace(base, memory_);
  }
}

Bytes AddressAllocator::rounded(Bytes bytes) {
  return checked_round_up("an allocation", bytes, kAlignment);
}

std::optional<Address> AddressAllocator::allocate(Bytes bytes) {
  check(bytes > Bytes(0), "an allocation has a size");
  const Bytes size = rounded(bytes);
  const auto hole = std::find_if(holes_.begin(), holes_.end(),
                                 [&](const auto& candidate) { return candidate.second >= size; });
  if (hole == holes_.end()) {
    return std::nullopt;
  }
  const auto [address, room] = *hole;
  holes_.erase(hole);
  if (room > size) {
    holes_.emplace(after(address, size), room - size);
  }
  live_.emplace(address, size);
  in_use_ += size;
  return address;
}

Bytes AddressAllocator::free(Address address) {
  const Bytes bytes = size(address);
  live_.erase(address);
  give_back(address, bytes);
  return bytes;
}

void AddressAllocator::shrink(Address address, Bytes bytes) {
  const Bytes before = size(address), kept = rounded(bytes);
  check(bytes > Bytes(0) && kept <= before, "an allocation shrinks to a part of itself");
  if (kept < before) {
    live_[address] = kept;
    give_back(after(address, kept), before - kept);
  }
}

/// Makes a hole, one with those that touch it.
void AddressAllocator::give_back(Address address, Bytes bytes) {
  in_use_ -= bytes;
  const auto next = holes_.lower_bound(address);
  auto hole = holes_.end();
  if (next != holes_.begin() && after(std::prev(next)->first, std::prev(next)->second) == address) {
    hole = std::prev(next);
    hole->second += bytes;
  } else {
    hole = holes_.emplace(address, bytes).first;
  }
  if (next != holes_.end() && after(address, bytes) == next->first) {
    hole->second += next->second;
    holes_.erase(next);
  }
}

Bytes AddressAllocator::largest_hole() const {
  Bytes largest{};
  for (const auto& [address, bytes] : holes_) {
    largest = std::max(largest, bytes);
  }
  return largest;
}

Bytes AddressAllocator::size(Address address) const {
  const auto found = live_.find(address);
  check(found != live_.end(), "what is given back was allocated");
  return found->second;
}

}  // namespace kvsim::trace
