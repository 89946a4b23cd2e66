// SPDX-License-Identifier: Apache-2.0
// From runs of pages to requests of the device, as Linux's block layer makes them, and who waits for which.
// Linux 6.1, fs/mpage.c, block/blk-merge.c.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "configs/units/quantity.h"
#include "models/page_cache/page.h"
#include "models/storage/storage_device.h"

namespace kvsim::model {

/// What the cache needs of a device; tests have one of their own.
class BlockDevice {
 public:
  virtual ~BlockDevice() = default;
  virtual std::uint64_t submit(const StorageRequest& request) = 0;
  /// The next completion up to `until`.
  virtual std::optional<StorageCompletion> next_until(Picoseconds until) = 0;
  /// The next one, whenever it comes.
  virtual std::optional<StorageCompletion> next() = 0;
};

/// Limits of the device's request queue.
struct BlockLimits {
  Bytes max_request{1280 << 10};        ///< max_sectors_kb
  std::int64_t max_segments = 1 << 16;  ///< each page is taken as one: frames seldom lie side by side
};

/// A run on the device and the pages that it fills or empties.
struct BlockRun {
  StorageOp op = StorageOp::read;
  Bytes offset = {};
  Bytes bytes = {};
  PageId page = kNoPage;  ///< the first of them; none of a direct transfer
  std::int64_t lane = 0;  ///< thread that asks
};

/// A completed request.
struct BlockDone {
  BlockRun run = {};
  Picoseconds done = {};
  StorageStatus status = StorageStatus::ok;
};

/// Lengths of the requests that a run becomes: BIOs of up to 256 pages, each cut to the limits, or joined to
/// the request before if both fit in one.
void split_run(Bytes bytes, const BlockLimits& limits, std::vector<Bytes>& lengths);

class BlockQueue {
 public:
  BlockQueue(BlockDevice& device, const BlockLimits& limits) : device_(device), limits_(limits) {}

  /// Splits and submits; how many requests that made.
  std::int64_t submit(const BlockRun& run, Picoseconds now);
  /// The next request that is done by `until`.
  std::optional<BlockDone> next_until(Picoseconds until);
  /// The next request that gets done. None if none is left.
  std::optional<BlockDone> next();
  [[nodiscard]] std::int64_t requests() const { return requests_; }
  [[nodiscard]] const BlockLimits& limits() const { return limits_; }

 private:
  struct Open {
    std::uint64_t id = 0;
    BlockRun run = {};
  };
  std::optional<BlockDone> take(const std::optional<StorageCompletion>& completion);

  BlockDevice& device_;
  BlockLimits limits_;
  std::vector<Bytes> lengths_;
  std::deque<Open> open_;  ///< in order of submission
  std::int64_t requests_ = 0;
  Picoseconds last_done_;
};

}  // namespace kvsim::model
