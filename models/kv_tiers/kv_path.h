// SPDX-License-Identifier: Apache-2.0
// What the ways to a KV cache in tiers have in common: the engine's own reads and writes, or a mapping.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "configs/units/quantity.h"
#include "models/cpu/segmenter.h"
#include "models/kv_tiers/kv_geometry.h"

namespace kvsim::model {

/// Blocks asked for in one tier.
struct KvTierHits {
  std::int64_t blocks = 0;  ///< K and V of a layer are one here
  Bytes bytes = {};
  Picoseconds time = {};  ///< until they could be used, summed over the blocks

  KvTierHits& operator+=(const KvTierHits& other) {
    blocks += other.blocks;
    bytes += other.bytes;
    time += other.time;
    return *this;
  }
};

/// What the KV cache cost beyond memory.
struct KvTierUse {
  KvTierHits sram = {}, dram = {}, device = {};
  Bytes read = {}, written = {};  ///< by the device
  Bytes landed = {};              ///< written into memory for that, by DMA and by conversion
  std::int64_t major_faults = 0;
  Picoseconds stall = {};  ///< longer than with all of it in memory

  [[nodiscard]] Bytes asked() const { return sram.bytes + dram.bytes + device.bytes; }
  KvTierUse& operator+=(const KvTierUse& other) {
    sram += other.sram;
    dram += other.dram;
    device += other.device;
    read += other.read;
    written += other.written;
    landed += other.landed;
    major_faults += other.major_faults;
    stall += other.stall;
    return *this;
  }
};

/// The device did not do what was asked of it.
struct KvFailure {
  std::string what;  ///< "a write of 4 KiB at 20 MiB of eMMC: device full"
};

/// By cell the position of the token in it, from 0; none: the cell is free.
using CellTokens = std::vector<std::optional<std::uint32_t>>;

class KvPath {
 public:
  KvPath() = default;
  KvPath(const KvPath&) = delete;
  KvPath& operator=(const KvPath&) = delete;
  virtual ~KvPath() = default;

  /// The state of a run that has come to these cells: takes no time.
  virtual void place(const CellTokens& cells) = 0;
  /// An operator that takes `in_memory` if all it needs is in memory. `touch`: if it touches the cache.
  virtual KvTierUse run(const std::optional<KvTouch>& touch, Picoseconds in_memory) = 0;
  /// All layers have seen a step's tokens.
  virtual KvTierUse end_step() = 0;
  /// Whether SRAM has the block.
  [[nodiscard]] virtual bool in_sram(std::int64_t layer, std::int64_t block) const = 0;
  [[nodiscard]] virtual const std::optional<KvFailure>& failure() const = 0;
};

}  // namespace kvsim::model
