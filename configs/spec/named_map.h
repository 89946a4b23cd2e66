// SPDX-License-Identifier: Apache-2.0
// Address maps by name: made from a part's geometry instead of written down bit by bit.
#pragma once

#include "configs/spec/dram_spec.h"

namespace kvsim::config {

/// What a named map has to cover.
struct MapGeometry {
  std::int64_t channels = 1;
  std::int64_t ranks = 1;
  Bytes line{64};  ///< stays in one row, as a burst does
};

/// Puts the masks into `map` that its order, channel_granule and hash ask for. Most significant first:
/// row-bank-column is [row][rank][bank][column], bank-row-column [rank][bank][row][column], and
/// row-bank-column-group [row][rank][bank][column][bank group][line]. The channel's bits lie within the
/// column, above `channel_granule`. What has no power of two values, rows or ranks, has its upper bits
/// topmost, so that the addresses end where the memory does. With `hash`, bank bits are XORed with the low
/// row bits. Precondition: the order is not `masks`, and the granule lies from least_granule() to
/// largest_granule().
void name_masks(AddressMapSpec& map, const DramPartSpec& part, const MapGeometry& geometry);

/// The least and the largest channel granule that name_masks() takes: a line or burst (of each bank group, if
/// they take turns), and a row.
[[nodiscard]] Bytes least_granule(MapOrder order, const DramPartSpec& part, Bytes line);
[[nodiscard]] Bytes largest_granule(const DramPartSpec& part);

/// Keys of a map of masks that are set and mean something in named maps only.
[[nodiscard]] std::vector<std::string> unused_of_masks(const AddressMapSpec& map);

/// The bits that a coordinate with this many values has.
[[nodiscard]] int coordinate_bits(std::int64_t values);
/// Those of them, the upper ones, whose values do not all exist; 0 for a power of two.
[[nodiscard]] int partial_bits(std::int64_t values);

}  // namespace kvsim::config
