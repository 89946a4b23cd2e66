// SPDX-License-Identifier: Apache-2.0
// What a run asked of the device's storage, and how fast that wears it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/spec/run_spec.h"
#include "sim/run/run_record.h"

namespace kvsim::sim {

/// Of a KV cache in tiers.
struct TierFigures {
  std::string tier;     ///< name in JSON
  double share = 0;     ///< of the bytes asked for
  Picoseconds latency;  ///< of a block, until it can be used; of DRAM and SRAM what attention takes for one
};

/// Of streamed experts, per decode token.
struct ExpertFigures {
  Bytes cache;           ///< what stays from token to token
  double hit_share = 0;  ///< of the experts asked for
  double misses = 0;
  double requests = 0;
};

/// Of weights that are streamed layer by layer.
struct LayerFigures {
  Bytes locked;         ///< in memory throughout
  Bytes buffers;        ///< room for layers at work and on their way
  double requests = 0;  ///< per decode token
};

/// Per decode token.
struct StorageFigures {
  std::string part = {};
  std::string what = {};  ///< that is read from it: "weights", "memory", "experts", "KV"
  double read_bytes = 0;
  double written_bytes = 0;
  /// Bytes of `what` that did not have to be read, of those used; reads in vain count against.
  double hit_share = 0;
  double major_faults = 0;
  double stall_share = 0;                    ///< of the token's time
  std::optional<double> amplification = {};  ///< bytes programmed for each byte written; none: nothing was
  std::optional<double> days_to_endurance = {};  ///< at workload.duty
  std::int64_t erases = 0;                       ///< of superblocks, in all decode steps
  std::vector<TierFigures> tiers = {};           ///< empty unless the KV cache is in tiers
  std::optional<ExpertFigures> experts = {};
  std::optional<LayerFigures> layers = {};
  double others_bytes = 0;  ///< read for other programs
  std::int64_t cliff = 0;   ///< tokens of context up to which nothing is read; 0: none
};

/// None unless weights are paged or streamed, memory is swapped, or the KV cache is in tiers. `decode` is the
/// sum of the decode steps, of which there is one at least.
[[nodiscard]] std::optional<StorageFigures> storage_figures(const config::RunSpec& spec,
                                                            const RunRecord& record,
                                                            const Measurement& decode);

/// What to know of a run with a KV cache in tiers.
void add_tier_notes(const config::RunSpec& spec, std::vector<std::string>& notes);

}  // namespace kvsim::sim
