// SPDX-License-Identifier: Apache-2.0
#include "models/masters/storage_dma.h"

#include <algorithm>

namespace kvsim::model {
namespace {

/// What the device moves at once, and how many of them may wait for memory.
constexpr std::int64_t kRequest = 16 << 10;
constexpr std::int64_t kMostWaiting = 4;
/// Lines in flight (assumed, as other masters').
constexpr std::int64_t kLines = 16;

}  // namespace

StorageDma::StorageDma(const sc_core::sc_module_name& name, MemoryPath& path)
    : sc_module(name), engine_("engine", {.in_flight = kLines, .ahead = 2 * kLines, .stores = kLines}, path) {
  engine_.add_channel(0);
  SC_HAS_PROCESS(StorageDma);
  SC_METHOD(run);
  sensitive << changed_;
  dont_initialize();
}

void StorageDma::set_rate(BytesPerSecond rate, trace::Address address, Bytes bytes) {
  const bool idle = interval_ == Picoseconds();
  const bool any = rate.count() > 0 && bytes >= Bytes(kRequest);
  interval_ = any ? Bytes(kRequest) / rate : Picoseconds();
  address_ = address;
  size_ = bytes.count() / kRequest * kRequest;
  at_ = at_ < size_ ? at_ : 0;
  if (any && idle) {
    changed_.notify(to_sc_time(interval_));
  }
}

void StorageDma::run() {
  if (interval_ == Picoseconds()) {
    return;
  }
  if (waiting_ < kMostWaiting) {
    DmaJob job;
    add_pieces(job.pieces, address_ + static_cast<trace::Address>(at_), Bytes(kRequest),
               trace::Access::write);
    job.done = [this] { --waiting_; };
    ++waiting_;
    at_ = at_ + kRequest < size_ ? at_ + kRequest : 0;
    engine_.submit(0, std::move(job));
  }
  changed_.notify(to_sc_time(interval_));
}

}  // namespace kvsim::model
