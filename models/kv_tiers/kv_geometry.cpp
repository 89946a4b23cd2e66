// SPDX-License-Identifier: Apache-2.0
#include "models/kv_tiers/kv_geometry.h"

#include <algorithm>

#include "configs/error/error.h"

namespace kvsim::model {
namespace {

using trace::Extent;

/// Where an extent begins.
struct Spot {
  std::int64_t layer = 0;
  bool is_v = false;
  Bytes row = {};
  std::int64_t cell = 0;
};

std::optional<Spot> spot_of(const KvGeometry& g, const Extent& e) {
  if (e.kind != trace::Kind::kv || e.address < g.address ||
      e.address - g.address >= static_cast<trace::Address>(g.bytes().count())) {
    return std::nullopt;
  }
  const auto at = static_cast<std::int64_t>(e.address - g.address);
  const std::int64_t layer_bytes = g.row().count() * g.cells;
  const std::int64_t k_bytes = g.k_row.count() * g.cells;
  Spot spot{.layer = at / layer_bytes, .is_v = at % layer_bytes >= k_bytes};
  spot.row = spot.is_v ? g.v_row : g.k_row;
  spot.cell = (at % layer_bytes - (spot.is_v ? k_bytes : 0)) / spot.row.count();
  return spot;
}

CellRange cells_of(const Extent& e, const Spot& spot, const KvGeometry& g) {
  const auto in_layer = static_cast<std::int64_t>(e.address - g.address) % (g.row().count() * g.cells);
  const std::int64_t in_side = in_layer - (spot.is_v ? g.k_row.count() * g.cells : 0);
  const std::int64_t last = in_side + e.stride.count() * (e.rows - 1) + e.row_bytes.count() - 1;
  return {.first = spot.cell, .end = last / spot.row.count() + 1};
}

/// The extent as rows of at most one cell each.
Extent by_cell(Extent e, Bytes row) {
  const bool whole_cells = e.rows == 1 && e.row_bytes > row && e.row_bytes.count() % row.count() == 0;
  if (whole_cells) {
    e.rows = static_cast<std::uint32_t>(e.row_bytes.count() / row.count());
    e.row_bytes = e.stride = row;
  }
  return e;
}

/// Rows side by side are one.
Extent joined(Extent e) {
  if (e.stride == e.row_bytes) {
    e.row_bytes = e.stride = total_bytes(e);
    e.rows = 1;
  }
  return e;
}

}  // namespace

std::optional<KvTouch> touched(const KvGeometry& geometry, std::span<const ThreadWork> threads) {
  std::optional<KvTouch> touch;
  for (const ThreadWork& thread : threads) {
    for (const Extent& e : thread.extents) {
      const std::optional<Spot> spot = spot_of(geometry, e);
      if (!spot) {
        continue;
      }
      if (!touch) {
        touch.emplace().layer = spot->layer;
      }
      check(touch->layer == spot->layer, "an operator touches the KV cache of one layer");
      const CellRange cells = cells_of(e, *spot, geometry);
      if (e.access == trace::Access::write) {
        if (!spot->is_v) {
          touch->written.push_back(cells);
        }
        continue;
      }
      for (std::int64_t block = cells.first / geometry.block; block * geometry.block < cells.end; ++block) {
        if (touch->read.empty() || touch->read.back() != block) {
          touch->read.push_back(block);
        }
      }
    }
  }
  if (touch) {
    std::ranges::sort(touch->read);
    const auto rest = std::ranges::unique(touch->read);
    touch->read.erase(rest.begin(), rest.end());
  }
  return touch;
}

Bytes take_out(const KvGeometry& geometry,
               const std::function<bool(std::int64_t layer, std::int64_t block)>& held, ThreadWork& thread) {
  Bytes taken;
  std::vector<Extent> kept;
  kept.reserve(thread.extents.size());
  for (const Extent& extent : thread.extents) {
    const std::optional<Spot> spot = spot_of(geometry, extent);
    if (!spot || extent.access == trace::Access::write) {
      kept.push_back(extent);
      continue;
    }
    Extent rest = by_cell(extent, spot->row);
    const std::int64_t step = std::max<std::int64_t>(1, rest.stride.count() / spot->row.count());
    std::int64_t cell = spot->cell;
    while (rest.rows > 0) {
      const std::int64_t block = cell / geometry.block;
      const std::int64_t left = ((block + 1) * geometry.block - cell + step - 1) / step;
      Extent part = rest;
      part.rows = static_cast<std::uint32_t>(std::min<std::int64_t>(rest.rows, left));
      if (held(spot->layer, block)) {
        taken += total_bytes(part);
      } else {
        kept.push_back(joined(part));
      }
      cell += step * part.rows;
      rest.address += static_cast<trace::Address>(rest.stride.count()) * part.rows;
      rest.rows -= part.rows;
    }
  }
  thread.extents = std::move(kept);
  return taken;
}

}  // namespace kvsim::model
