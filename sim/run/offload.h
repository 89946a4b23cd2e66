// SPDX-License-Identifier: Apache-2.0
// What of a run's memory is on storage: mapped weights that are paged, anonymous memory that is swapped,
// experts that are streamed. Where the rest lies in DRAM, and how long operators wait.
#pragma once

#include <optional>

#include "configs/spec/run_spec.h"
#include "models/os_memory/memory_ledger.h"
#include "models/weight_pager/swapped_memory.h"
#include "models/weight_pager/weight_pager.h"
#include "sim/run/expert_stream.h"
#include "sim/run/frame_map.h"
#include "sim/run/operation.h"
#include "sim/run/run_record.h"
#include "sim/run/streamed_weights.h"

namespace kvsim::sim {

class Offload {
 public:
  explicit Offload(const config::RunSpec& spec) : spec_(spec) {}

  /// What the ledger goes by: memory beside streamed experts does not swap (the cache is locked).
  [[nodiscard]] static config::OsSpec os_of(const config::RunSpec& spec);

  /// An allocation that took place, as far as it is in memory. Throws UserError if experts cannot be streamed
  /// into it.
  void note(const trace::Alloc& part);
  /// The same, as the stream has it. Throws UserError if weights cannot be streamed into it.
  void note_whole(const trace::Alloc& alloc);
  /// A step begins: what does not fit goes to storage from now on. What is broken, if that cannot be.
  [[nodiscard]] std::optional<BrokenLimit> begin_step(const trace::Mark& mark,
                                                      const model::MemoryLedger& ledger);

  /// Behind the last address that the stream may use.
  [[nodiscard]] Bytes end() const;
  /// Weights are read again and again, or memory is swapped. With room for all weights that is so when other
  /// programs have pushed some out.
  [[nodiscard]] bool pages() const { return lacks_ || read_again_ || swapped_; }
  [[nodiscard]] bool swaps() const { return swapped_.has_value(); }
  [[nodiscard]] bool streams() const { return experts_.has_value(); }
  [[nodiscard]] bool streams_layers() const { return layers_.has_value(); }
  [[nodiscard]] bool any() const { return pager_ || swapped_ || experts_ || layers_; }
  /// Of what is paged or swapped.
  [[nodiscard]] model::StorageCounters storage_counters() const;

  /// The operation at physical addresses.
  [[nodiscard]] Operation placed(const Operation& operation);
  struct Use {
    model::PagingUse paging;
    model::ExpertReads experts;
    [[nodiscard]] Picoseconds stall() const { return paging.stall + experts.stall; }
  };
  /// Of the operation placed last, at the addresses of the stream, which takes `took` if nothing is missing.
  [[nodiscard]] Use done(const Operation& operation, Picoseconds took);

 private:
  [[nodiscard]] std::optional<BrokenLimit> begin_paging(const model::MemoryLedger& ledger);
  [[nodiscard]] std::optional<BrokenLimit> begin_swapping(const model::MemoryLedger& ledger);

  const config::RunSpec& spec_;
  model::WeightPager::Mapping mapping_;  ///< the model file
  trace::Alloc largest_;                 ///< of anonymous memory
  Bytes anonymous_end_;
  bool lacks_ = false;       ///< memory for all weights
  bool read_again_ = false;  ///< in a decode step,
  bool decodes_ = false;     ///< as this one is
  std::optional<model::WeightPager> pager_;
  std::optional<model::SwappedMemory> swapped_;
  std::optional<ExpertStream> experts_;
  std::optional<StreamedWeights> layers_;
  std::optional<FrameMap> frames_;
};

}  // namespace kvsim::sim
