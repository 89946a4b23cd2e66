// SPDX-License-Identifier: Apache-2.0
// What a run has to do with the device's storage: memory that is paged, swapped or streamed, a KV cache in
// tiers; how long operators wait for it, and what its DMA writes into memory.
#pragma once

#include <optional>
#include <string>

#include "configs/spec/run_spec.h"
#include "models/os_memory/memory_ledger.h"
#include "sim/run/offload.h"
#include "sim/run/run_record.h"
#include "sim/run/tiered_kv.h"

namespace kvsim::sim {

class RunStorage {
 public:
  explicit RunStorage(const config::RunSpec& spec) : spec_(spec), offload_(spec) {}

  /// An allocation that took place, as far as it is in memory; and as the stream has it.
  void note(const trace::Alloc& part);
  void note_whole(const trace::Alloc& alloc);
  /// Behind the last address that the stream may use.
  [[nodiscard]] Bytes end() const;

  /// A step begins. What is broken, if what does not fit into memory cannot be elsewhere.
  [[nodiscard]] std::optional<BrokenLimit> begin_step(const trace::Mark& mark,
                                                      const model::MemoryLedger& ledger);
  [[nodiscard]] bool any() const { return tiers_ || offload_.any(); }
  [[nodiscard]] bool is_tiered() const { return tiers_.has_value(); }
  [[nodiscard]] const Offload& offload() const { return offload_; }
  /// The operation at physical addresses, without what SRAM serves; valid until the next call, and as long as
  /// `operation`.
  [[nodiscard]] const Operation& placed(const Operation& operation);

  struct Cost {
    Measurement time;
    model::PagingUse paging{};
    model::ExpertReads experts{};
    model::KvTierUse tiers{};
  };
  /// Of the operation placed last, at the addresses of the stream, which takes `picoseconds` if nothing is
  /// missing; and of the end of a step.
  [[nodiscard]] Cost wait(const Operation& operation, double picoseconds);
  [[nodiscard]] Cost end_step();

  /// At which storage has written into memory so far in this step, or if that has just begun in the one
  /// before.
  [[nodiscard]] BytesPerSecond dma_rate() const;
  /// What the device has refused, which ends the run.
  [[nodiscard]] std::optional<std::string> failure() const;
  [[nodiscard]] model::StorageCounters counters() const;

 private:
  [[nodiscard]] Measurement landed(Bytes read, double picoseconds, Picoseconds stall);

  const config::RunSpec& spec_;
  Offload offload_;
  std::optional<TieredKv> tiers_;
  Operation placed_;       ///< by `offload_`
  Bytes read_;             ///< in this step,
  double time_ = 0;        ///< which has lasted so many picoseconds
  BytesPerSecond before_;  ///< rate of the step before
};

}  // namespace kvsim::sim
