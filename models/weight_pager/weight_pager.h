// SPDX-License-Identifier: Apache-2.0
// Weights that are larger than the memory left for them: a mapped file, read through the page cache again and
// again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "configs/spec/device_spec.h"
#include "models/cpu/segmenter.h"
#include "models/page_cache/page_cache.h"
#include "models/page_cache/storage_block_device.h"
#include "models/storage/storage_device.h"
#include "models/weight_pager/file_readers.h"
#include "models/weight_pager/paced_reader.h"

namespace kvsim::model {

/// What memory that is not there cost.
struct PagingUse {
  Bytes asked;    ///< in whole pages
  Bytes read;     ///< by the device, ahead or not
  Bytes written;  ///< to the device, of what is swapped out
  Bytes others;   ///< read by the device for other programs
  std::int64_t major_faults = 0;
  std::int64_t minor_faults = 0;
  std::int64_t requests = 0;  ///< of streamed weights
  Picoseconds stall;          ///< longer than with all weights in memory

  PagingUse& operator+=(const PagingUse& other);
};

class WeightPager {
 public:
  struct Mapping {
    trace::Address address = 0;
    Bytes bytes;
  };
  /// Precondition: the device has storage. `memory` is what anonymous memory leaves. Throws UserError if the
  /// file does not fit the storage.
  WeightPager(const config::DeviceSpec& device, const Mapping& mapping, Bytes memory, std::uint64_t seed);

  /// mlock() of the first bytes, which `memory` has room for. Takes none of the run's time.
  void lock(Bytes bytes);
  /// What llama.cpp's loader does; without it pages come when they are touched: sequential read-ahead, then
  /// every page is touched in order (FADV_SEQUENTIAL, MAP_POPULATE). Takes none of the run's time.
  void load();
  /// An operator that takes `in_memory` if no page is missing: its threads read their weights at an even
  /// pace. Precondition: each is in the mapping or outside of it whole.
  PagingUse run(std::span<const ThreadWork> threads, Picoseconds in_memory);

  [[nodiscard]] const StorageDevice& storage() const { return storage_; }

 private:
  void advance(PacedReader& reader, PagingUse& use);

  Mapping mapping_;
  StorageDevice storage_;
  StorageBlockDevice block_device_;
  PageCache cache_;
  FileId file_;
  FileReaders others_;
  Picoseconds now_;
};

}  // namespace kvsim::model
