// SPDX-License-Identifier: Apache-2.0
// The KV cache of a run in tiers: what memory it takes, where its blocks are, what its operators wait for.
#pragma once

#include <optional>
#include <vector>

#include "configs/spec/run_spec.h"
#include "models/kv_tiers/kv_tiers.h"
#include "sim/run/frame_map.h"
#include "sim/run/measurement.h"
#include "sim/run/operation.h"
#include "traces/record/record.h"

namespace kvsim::sim {

/// Whether the allocation is of a KV cache that is in tiers.
[[nodiscard]] bool is_tiered(const config::RunSpec& spec, const trace::Alloc& alloc);

/// What memory has of it: its budget, and room for blocks on their way. Precondition: is_tiered().
[[nodiscard]] std::vector<trace::Alloc> tiers_in_memory(const config::RunSpec& spec,
                                                        const trace::Alloc& alloc);

/// Whether the device's storage has room for the file. Precondition: is_tiered().
[[nodiscard]] bool file_fits(const config::RunSpec& spec, const trace::Alloc& alloc);

/// Tokens of context up to which nothing is read from storage, but where a window's ring begins again; the
/// model's own if all that a window keeps is in memory.
[[nodiscard]] std::int64_t tokens_in_memory(const config::RunSpec& spec);

class TieredKv {
 public:
  /// Precondition: is_tiered().
  TieredKv(const config::RunSpec& spec, const trace::Alloc& alloc);

  /// As if a run had come to so many tokens.
  void place(std::int64_t tokens);
  /// The operation without what SRAM serves, at physical addresses; valid until the next call, and as long as
  /// `asked`.
  [[nodiscard]] const Operation& placed(const Operation& asked);
  /// Behind the last address of the stream.
  [[nodiscard]] Bytes end() const;

  struct Cost {
    Measurement time;
    model::KvTierUse use;
  };
  /// Of the operation last placed, which takes `in_memory` without what SRAM serves.
  [[nodiscard]] Cost run(const Operation& asked, Picoseconds in_memory);
  [[nodiscard]] Cost end_step();

  [[nodiscard]] const std::optional<model::KvFailure>& failure() const { return tiers_.failure(); }
  [[nodiscard]] const model::StorageDevice& storage() const { return tiers_.storage(); }

 private:
  const config::RunSpec& spec_;
  Bytes bytes_;
  model::KvTiers tiers_;
  std::optional<FrameMap> frames_;
  Operation placed_;  ///< without what SRAM serves
  Operation framed_;  ///< at physical addresses
  Picoseconds sram_;  ///< of the operation last placed
};

}  // namespace kvsim::sim
