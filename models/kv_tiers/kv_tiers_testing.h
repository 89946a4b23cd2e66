// SPDX-License-Identifier: Apache-2.0
// For tests: what a language model's threads do to its KV cache.
#pragma once

#include <vector>

#include "models/kv_tiers/kv_geometry.h"

namespace kvsim::model::testing {

/// A layer's attention: two threads, each half of every row of the cells; K, then V.
inline std::vector<ThreadWork> attention(const KvGeometry& g, std::int64_t layer, CellRange cells) {
  std::vector<ThreadWork> threads(2);
  for (std::uint32_t t = 0; t < 2; ++t) {
    for (const bool is_v : {false, true}) {
      const Bytes row = is_v ? g.v_row : g.k_row;
      if (row == Bytes()) {
        continue;
      }
      const std::int64_t at =
          (g.row() * g.cells * layer + (is_v ? g.k_row * g.cells : Bytes()) + row * cells.first + row / 2 * t)
              .count();
      threads[t].extents.push_back({.address = g.address + static_cast<trace::Address>(at),
                                    .row_bytes = row / 2,
                                    .rows = static_cast<std::uint32_t>(cells.end - cells.first),
                                    .stride = row,
                                    .access = trace::Access::read,
                                    .kind = trace::Kind::kv,
                                    .stream = Stream(t)});
    }
  }
  return threads;
}

/// One thread writes K and V of the cells.
inline std::vector<ThreadWork> append(const KvGeometry& g, std::int64_t layer, CellRange cells) {
  std::vector<ThreadWork> threads(1);
  for (const bool is_v : {false, true}) {
    const Bytes row = is_v ? g.v_row : g.k_row;
    if (row == Bytes()) {
      continue;
    }
    const std::int64_t at =
        (g.row() * g.cells * layer + (is_v ? g.k_row * g.cells : Bytes()) + row * cells.first).count();
    const Bytes bytes = row * (cells.end - cells.first);
    threads[0].extents.push_back({.address = g.address + static_cast<trace::Address>(at),
                                  .row_bytes = bytes,
                                  .rows = 1,
                                  .stride = bytes,
                                  .access = trace::Access::write,
                                  .kind = trace::Kind::kv});
  }
  return threads;
}

}  // namespace kvsim::model::testing
