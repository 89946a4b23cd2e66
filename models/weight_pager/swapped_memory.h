// SPDX-License-Identifier: Apache-2.0
// Anonymous memory that is larger than what the system leaves, and goes to a swap area and back.
#pragma once

#include <cstdint>
#include <span>

#include "models/page_cache/swap.h"
#include "models/weight_pager/weight_pager.h"

namespace kvsim::model {

class SwappedMemory {
 public:
  /// Precondition: the device has storage and a swap area. Addresses of [0, `end`) are anonymous memory, of
  /// which `memory` has room; `file` bytes lie before the area. Throws UserError if the device does not hold
  /// both.
  SwappedMemory(const config::DeviceSpec& device, Bytes end, Bytes memory, Bytes file, std::uint64_t seed);

  /// Every page is written once, in order. Takes none of the run's time.
  void load();
  /// An operator that takes `in_memory` if no page is missing.
  [[nodiscard]] PagingUse run(std::span<const ThreadWork> threads, Picoseconds in_memory);

  [[nodiscard]] const StorageDevice& storage() const { return storage_; }

 private:
  void advance(PacedReader& reader, PagingUse& use);

  StorageDevice storage_;
  StorageBlockDevice block_device_;
  std::int64_t pages_;
  AnonymousMemory memory_;
  Picoseconds now_;
};

}  // namespace kvsim::model
