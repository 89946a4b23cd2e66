// SPDX-License-Identifier: Apache-2.0
// Attention of one layer on an engine with a scratchpad: which bytes are moved between DRAM and SRAM, and
// computed with, in which order. No time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "configs/units/quantity.h"
#include "traces/attention/method.h"
#include "traces/record/record.h"

namespace kvsim::trace {

/// One layer's attention. Queries are the last `queries` of `context` tokens and see the tokens up to their
/// own.
struct TileGeometry {
  std::int64_t heads = 0;  ///< query heads; head h reads KV head h / (heads / kv_heads)
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t queries = 0;
  std::int64_t context = 0;
  Bytes query_row;  ///< a head's vector of Q or O in DRAM,
  Bytes kv_row;     ///< of K or V,
  Bytes score{2};   ///< and a score, in DRAM or SRAM
};

/// What happens to a given tile that is larger than the SRAM.
enum class Oversize { refuse, spill };

struct TileShape {
  std::int64_t queries = 0;  ///< tokens; tiled: with all query heads of a KV head
  std::int64_t keys = 0;     ///< tokens
  bool operator==(const TileShape&) const = default;
};

struct TileOptions {
  AttentionMethod method = AttentionMethod::tiled;
  Bytes sram;                        ///< of each core
  std::int64_t cores = 1;            ///< query tiles are dealt to them in turn
  std::optional<TileShape> shape{};  ///< none: from the SRAM's bytes
  Oversize oversize = Oversize::refuse;
  std::int64_t resident_keys = 0;  ///< first tokens whose K and V stay in SRAM while a KV head lasts
};

/// A part of the SRAM that holds one thing at a time.
struct TileBuffer {
  Bytes offset;
  Bytes bytes;
};

struct TileMove {
  Extent extent;           ///< in DRAM
  std::size_t buffer = 0;  ///< where to or from
};

/// Loads, then arithmetic on the buffers, then stores. Steps compute in order; what they move may run ahead
/// or behind.
struct TileStep {
  std::vector<TileMove> loads;
  std::vector<std::size_t> uses;  ///< by the arithmetic: buffers, those of loads and stores among them
  std::vector<std::size_t>
      fresh{};  ///< of these, neither loaded nor filled before: taken when arithmetic begins,
  std::vector<std::size_t> reserved{};  ///< or, since others load them, when loading does
  std::int64_t macs = 0;
  std::int64_t scores = 0;  ///< that softmax works on
  std::vector<TileMove> stores;
  std::optional<std::size_t> after{};  ///< the loads read what this step stores
};

struct TilePlan {
  TileShape shape;
  std::int64_t rows_at_once =
      0;  ///< queries of a tile that are in SRAM together; less than shape.queries: spilled
  std::vector<TileBuffer> buffers;
  std::vector<std::vector<TileStep>> cores;
  std::int64_t tiles = 0;    ///< of queries x keys,
  std::int64_t spilled = 0;  ///< and of these without room for all their queries
  Bytes spill_bytes;         ///< moved for that reason alone, within read and written
  Bytes read;
  Bytes written;
};

/// Where things lie in DRAM, from `base` on: Q, K, V, O, all [token][head][head_dim], and, if naive, scores
/// and weights, both [head][query][token].
[[nodiscard]] Bytes tile_plan_footprint(const TileGeometry& geometry, AttentionMethod method);

/// SRAM that a tile takes, all buffers double but accumulators and what is handed out.
[[nodiscard]] Bytes tile_bytes(const TileGeometry& geometry, const TileOptions& options,
                               const TileShape& shape);

/// The shape taken if none is given: the largest power of two of keys, at most 128, for which as many queries
/// fit as keys; and as many queries as fit. Throws UserError if not even one of each does.
[[nodiscard]] TileShape fitting_shape(const TileGeometry& geometry, const TileOptions& options);

/// Throws UserError for what does not fit or has too many steps.
[[nodiscard]] TilePlan plan_tiles(const TileGeometry& geometry, const TileOptions& options, Address base = 0);

}  // namespace kvsim::trace
