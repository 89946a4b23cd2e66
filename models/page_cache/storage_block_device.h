// SPDX-License-Identifier: Apache-2.0
// The storage model as the page cache's device.
#pragma once

#include "models/page_cache/block_queue.h"

namespace kvsim::model {

/// A StorageDevice that nobody else takes completions from.
class StorageBlockDevice final : public BlockDevice {
 public:
  explicit StorageBlockDevice(StorageDevice& device) : device_(device) {}
  std::uint64_t submit(const StorageRequest& request) override { return device_.submit(request); }
  std::optional<StorageCompletion> next_until(Picoseconds until) override {
    return device_.next_until(until);
  }
  std::optional<StorageCompletion> next() override { return device_.next(); }

 private:
  StorageDevice& device_;
};

}  // namespace kvsim::model
