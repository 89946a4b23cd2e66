// SPDX-License-Identifier: Apache-2.0
// The figures of a run that reports show, computed once for all formats.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/spec/run_spec.h"
#include "configs/units/quantity.h"
#include "sim/metrics/dram_energy.h"
#include "sim/metrics/storage_figures.h"
#include "sim/run/run_record.h"

namespace kvsim::sim {

struct Verdict {
  bool fits = false;
  std::string limit;                  ///< empty if it fits
  std::optional<std::int64_t> token;  ///< generated when the limit broke; none if it fits or broke at load
  std::string message;
  std::vector<std::string> notes;  ///< what to know besides
  bool pages = false;              ///< it fits only by reading weights from storage again and again
};

struct DepthSpeed {
  std::int64_t depth = 0;
  double tokens_per_second = 0;
};

/// A part of a decode token's time.
struct BreakdownPart {
  std::string part;  ///< name in JSON
  std::string text;  ///< for people
  double share = 0;
};

/// What one kind of operator did over all decode steps.
struct OperatorFigures {
  std::string name;
  Picoseconds time;
  Bytes read, written;                                 ///< by DRAM
  double row_hit = 0, row_miss = 0, row_conflict = 0;  ///< shares of DRAM column commands
};

struct Percentiles {
  Picoseconds p50, p95, p99, max;
};

/// Tokens of which K and V were computed, once per layer each.
struct KvComputations {
  std::int64_t made = 0;        ///< in all prefill and decode steps
  std::int64_t with_cache = 0;  ///< of which a KV cache needs these: each token once
};

/// What can only be said of a run that went through.
struct Speed {
  Picoseconds time_to_first_token;
  double prefill_tokens_per_second = 0;
  std::optional<StorageFigures> storage;   ///< none unless something is paged, swapped, streamed or in tiers
  std::optional<Percentiles> inter_token;  ///< none if nothing was generated
  KvComputations kv_computations;
  std::vector<DepthSpeed> decode;
  std::vector<OperatorFigures> operators;              ///< in the order of the forward pass
  std::vector<BreakdownPart> breakdown;                ///< of the mean decode token, adding up to 1
  BytesPerSecond read, written;                        ///< mean over decode
  double row_hit = 0, row_miss = 0, row_conflict = 0;  ///< shares of DRAM column commands
  std::optional<DramEnergyFigures> energy;             ///< of all decode steps; none: the part has none
  Joules energy_per_token;
  Bytes bytes_per_token;                  ///< weights and KV of the mean decode token
  double roofline_tokens_per_second = 0;  ///< peak bandwidth / bytes_per_token
  double mean_tokens_per_second = 0;
  double simulated_share = 0;
  double relative_ci = 0;       ///< half-width of the 95 % interval of the whole run's time, over that time
  bool target_reached = false;  ///< relative_ci is within run.relative_error
};

struct Summary {
  Verdict verdict;
  std::optional<Speed> speed;
  BytesPerSecond peak;
  std::int64_t max_context_tokens = 0;  ///< largest context that fits; 0 if none does
};

[[nodiscard]] Summary summarise(const config::RunSpec& spec, const RunRecord& record);

/// Largest context, in tokens, whose allocations fit the device as the verdict asks; 0 if none does. At most
/// what the model was trained for.
[[nodiscard]] std::int64_t max_context(const config::RunSpec& spec);

/// Energy of DRAM over the steps whose sum `sum` is. None if the part has none.
[[nodiscard]] std::optional<DramEnergyFigures> phase_energy(const config::DeviceSpec& device,
                                                            const Measurement& sum);

/// Nearest-rank percentiles. Precondition: there is a time.
[[nodiscard]] Percentiles percentiles_of(std::vector<Picoseconds> times);

/// Time of a step, in whole picoseconds.
[[nodiscard]] Picoseconds time_of(const StepResult& step);

}  // namespace kvsim::sim
