// SPDX-License-Identifier: Apache-2.0
// A disk for tests: one request after the other, each with a fixed time and a time per byte; keeps a log.
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "models/page_cache/block_queue.h"

namespace kvsim::model::testing {

class TestDisk final : public BlockDevice {
 public:
  explicit TestDisk(Picoseconds each = Picoseconds(100'000'000), Picoseconds page = Picoseconds(10'000'000))
      : each_(each), page_(page) {}

  std::uint64_t submit(const StorageRequest& request) override {
    free_ = std::max(free_, request.when) + each_ + page_ * (request.bytes.count() / kPageBytes);
    const StorageStatus status =
        request.op == StorageOp::write && refuse_writes ? StorageStatus::read_only : StorageStatus::ok;
    waiting_.push_back({.id = next_id_, .request = request, .status = status, .done = free_});
    if (keep_log) {
      log.push_back(request);
    }
    (request.op == StorageOp::read ? read : written) += request.bytes;
    return next_id_++;
  }
  std::optional<StorageCompletion> next_until(Picoseconds until) override {
    return waiting_.empty() || waiting_.front().done > until ? std::nullopt : next();
  }
  std::optional<StorageCompletion> next() override {
    if (waiting_.empty()) {
      return std::nullopt;
    }
    const StorageCompletion done = waiting_.front();
    waiting_.pop_front();
    return done;
  }

  bool keep_log = true;
  bool refuse_writes = false;
  std::vector<StorageRequest> log;
  Bytes read, written;

 private:
  Picoseconds each_;
  Picoseconds page_;
  Picoseconds free_;
  std::uint64_t next_id_ = 0;
  std::deque<StorageCompletion> waiting_;
};

}  // namespace kvsim::model::testing
