// SPDX-License-Identifier: Apache-2.0
#include "sim/run/run_storage.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/metrics/human.h"

namespace kvsim::sim {

void RunStorage::note(const trace::Alloc& part) {
  offload_.note(part);
}

void RunStorage::note_whole(const trace::Alloc& alloc) {
  if (sim::is_tiered(spec_, alloc)) {
    tiers_.emplace(spec_, alloc);
  }
  offload_.note_whole(alloc);
}

Bytes RunStorage::end() const {
  return tiers_ ? std::max(offload_.end(), tiers_->end()) : offload_.end();
}

std::optional<BrokenLimit> RunStorage::begin_step(const trace::Mark& mark,
                                                  const model::MemoryLedger& ledger) {
  before_ = dma_rate();
  read_ = Bytes();
  time_ = 0;
  if (tiers_ && (ledger.pages() || offload_.streams())) {
    return BrokenLimit{.limit = "page cache",
                       .message = fmt::format(
                           "{} of memory in use, but the system leaves {}, and the KV cache in tiers has the "
                           "storage to itself; give engine.kv_tiers.dram less",
                           human(ledger.total()), human(ledger.available())),
                       .token = std::nullopt};
  }
  if (tiers_ && mark.phase == trace::Phase::probe) {
    tiers_->place(mark.depth);
  }
  return offload_.begin_step(mark, ledger);
}

const Operation& RunStorage::placed(const Operation& operation) {
  if (tiers_) {
    return tiers_->placed(operation);
  }
  placed_ = offload_.placed(operation);
  return placed_;
}

RunStorage::Cost RunStorage::wait(const Operation& operation, double picoseconds) {
  const Picoseconds took(std::llround(picoseconds));
  if (tiers_) {
    const TieredKv::Cost cost = tiers_->run(operation, took);
    const Picoseconds stall(std::llround(cost.time.picoseconds()));
    return {.time = cost.time + landed(cost.use.landed, picoseconds, stall), .tiers = cost.use};
  }
  const Offload::Use use = offload_.done(operation, took);
  model::TimeAccount account;
  account.add(model::Owner::storage, use.stall());
  return {.time = Measurement(account, {}, {}) +
                  landed(use.paging.read + use.paging.others + use.experts.read, picoseconds, use.stall()),
          .paging = use.paging,
          .experts = use.experts};
}

RunStorage::Cost RunStorage::end_step() {
  if (!tiers_) {
    return {};
  }
  const TieredKv::Cost cost = tiers_->end_step();
  return {.time = cost.time, .tiers = cost.use};
}

BytesPerSecond RunStorage::dma_rate() const {
  return time_ > 0 ? BytesPerSecond(read_.as_double() / time_ * kPicosecondsPerSecond) : before_;
}

/// What storage has written into memory while an operator took so long and then waited: what of it was not
/// simulated beside the operator was written while nothing else was.
Measurement RunStorage::landed(Bytes read, double picoseconds, Picoseconds stall) {
  const double beside = dma_rate().count() * picoseconds / kPicosecondsPerSecond;
  read_ += read;
  time_ += picoseconds + stall.as_double();
  const auto alone = static_cast<std::int64_t>(std::max(0.0, read.as_double() - beside));
  const std::int64_t bursts = alone / burst_bytes(spec_.device.dram).count();
  const std::int64_t rows = alone / row_bytes(spec_.device.dram).count();
  const model::MemoryCounters counters{.read = {},
                                       .written = Bytes(alone),
                                       .row_hits = bursts - rows,
                                       .row_conflicts = rows,
                                       .activates = rows};
  return {model::TimeAccount(), counters, model::DramActivity{.activates = rows, .writes = bursts}};
}

std::optional<std::string> RunStorage::failure() const {
  return tiers_ && tiers_->failure() ? std::optional(tiers_->failure()->what) : std::nullopt;
}

model::StorageCounters RunStorage::counters() const {
  return tiers_ ? tiers_->storage().counters() : offload_.storage_counters();
}

}  // namespace kvsim::sim
