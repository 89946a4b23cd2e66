// SPDX-License-Identifier: Apache-2.0
// What a run gives: per step its time and where it went, the memory ledger, and how much was simulated.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/units/quantity.h"
#include "models/expert_cache/expert_cache.h"
#include "models/kv_tiers/kv_path.h"
#include "models/masters/master.h"
#include "models/os_memory/memory_ledger.h"
#include "models/storage/storage_device.h"
#include "models/weight_pager/weight_pager.h"
#include "sim/run/measurement.h"
#include "traces/record/record.h"

namespace kvsim::sim {

struct StepResult {
  trace::Mark mark;
  Measurement total;
  double half_width = 0;      ///< picoseconds, of the 95 % interval
  double simulated = 0;       ///< picoseconds of it that were simulated; the rest was reused or interpolated
  Bytes model_bytes;          ///< weights and KV that the software read and wrote
  model::PagingUse paging{};  ///< all 0 unless weights are paged or swapped
  model::ExpertReads experts{};  ///< all 0 unless experts are streamed
  model::KvTierUse tiers{};      ///< all 0 unless the KV cache is in tiers
};

/// A limit that the run broke.
struct BrokenLimit {
  std::string limit;  ///< "memory", "page cache"
  std::string message;
  std::optional<std::int64_t> token;  ///< generated before it broke; none at load
};

/// A master beside the cores, over the time that was simulated.
struct MasterResult {
  config::MasterSpec spec;
  model::MasterFigures figures;
  Picoseconds time;
};

struct RunRecord {
  std::optional<BrokenLimit> broken;
  std::vector<model::LedgerItem> items;  ///< held at the end, or when a limit broke
  /// The one that broke a limit, and what loading asks for after it.
  std::vector<model::LedgerItem> refused;
  Bytes total;  ///< of both
  Bytes peak;   ///< held at most
  Bytes available;
  bool pages = false;           ///< weights are read from storage again and again
  bool swaps = false;           ///< anonymous memory goes to the swap area and back
  bool streams = false;         ///< experts are
  bool streams_layers = false;  ///< weights are, layer by layer
  /// What it did in decode steps; all 0 unless weights are paged or the KV cache is in tiers.
  model::StorageCounters storage{};
  std::vector<StepResult> steps;
  std::vector<MasterResult> masters;
  /// Of the decode steps together, by operator.
  std::array<Measurement, trace::kOperators> decode_operators{};
};

}  // namespace kvsim::sim
