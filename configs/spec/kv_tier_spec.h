// SPDX-License-Identifier: Apache-2.0
// A KV cache that is larger than the memory given to it: what is not in memory lies in a file on the device's
// storage.
#pragma once

#include <cstdint>
#include <optional>

#include "configs/spec/kv_format.h"
#include "configs/units/quantity.h"

namespace kvsim::config {

struct RunSpec;
struct EngineSpec;
struct LlmSpec;

/// in_place: a token has its place in the file; log: batches of all layers follow each other.
enum class KvFile { in_place, log };
/// The engine reads and writes blocks itself, past the page cache; or the file is mapped.
enum class KvThrough { direct, mapped };
/// In memory are the newest blocks of each layer, or those that attention has read most often.
enum class KvPlacement { age, score };

/// A block is K or V of so many tokens in one layer. Every tier keeps what the one above it has.
struct KvTierSpec {
  std::int64_t block = 128;  ///< tokens
  Bytes sram = {};           ///< for blocks of all layers; 0: none
  Bytes dram = {};           ///< for blocks of all layers
  KvPlacement placement = KvPlacement::age;
  std::int64_t prefetch = 1;      ///< layers whose blocks are read ahead
  std::int64_t write_batch = 16;  ///< tokens that are written together
  KvFile file = KvFile::in_place;
  std::optional<KvFormat> format = {};  ///< of K and V in the file; none: as in memory
  std::optional<Bytes> extent = {};     ///< the file lies in pieces of this size; none: in one
  KvThrough through = KvThrough::direct;
  bool read_ahead = true;    ///< mapped: the kernel reads ahead (off: MADV_RANDOM)
  bool lock_current = true;  ///< mapped: the block that is being filled is locked

  bool operator==(const KvTierSpec&) const = default;
};

/// K or V of one token in one layer; 0: it is not kept.
struct KvRowBytes {
  Bytes k;
  Bytes v;
};
[[nodiscard]] KvRowBytes kv_row_bytes(const LlmSpec& model, const EngineSpec& engine);
/// The same in the file. Precondition: the engine has tiers.
[[nodiscard]] KvRowBytes kv_file_row_bytes(const LlmSpec& model, const EngineSpec& engine);

/// Layers whose KV cache is in tiers: those that see all tokens.
[[nodiscard]] std::int64_t tiered_layers(const LlmSpec& model);

/// A block of K and one of V in every layer. Precondition: it fits into 63 bits.
[[nodiscard]] Bytes kv_blocks_bytes(const RunSpec& run);

/// Blocks of each layer that a budget holds.
[[nodiscard]] std::int64_t tier_blocks(const RunSpec& run, Bytes budget);

}  // namespace kvsim::config
