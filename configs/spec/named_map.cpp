// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/named_map.h"

#include <algorithm>
#include <bit>

#include "configs/error/error.h"

namespace kvsim::config {
namespace {

using Bits = std::vector<AddressBit>;

/// Takes address bits from the lowest up.
class BitDealer {
 public:
  [[nodiscard]] int dealt() const { return next_; }
  void deal(Bits& to, int count) {
    for (int i = 0; i < count; ++i) {
      to.push_back({std::uint64_t{1} << next_++});
    }
  }

 private:
  int next_ = 0;
};

/// The bits of `values` that a map may place as it likes.
int full_bits(std::int64_t values) {
  return coordinate_bits(values) - partial_bits(values);
}

/// Columns from the line on, and the channels among them.
void deal_columns(BitDealer& dealer, AddressMapSpec& map, int column_bits, const MapGeometry& geometry) {
  const int below = coordinate_bits(map.channel_granule.count()) - dealer.dealt();
  const int first = geometry.channels == 1 ? column_bits : below;
  dealer.deal(map.column, first);
  dealer.deal(map.channel, coordinate_bits(geometry.channels));
  dealer.deal(map.column, column_bits - first);
}

}  // namespace

int coordinate_bits(std::int64_t values) {
  return std::bit_width(static_cast<std::uint64_t>(values) - 1);
}

int partial_bits(std::int64_t values) {
  const auto v = static_cast<std::uint64_t>(values);
  return std::has_single_bit(v) ? 0 : std::bit_width(v) - std::countr_zero(v);
}

std::vector<std::string> unused_of_masks(const AddressMapSpec& map) {
  std::vector<std::string> keys;
  if (map.hash) {
    keys.emplace_back("hash");
  }
  if (map.channel_granule != AddressMapSpec{}.channel_granule) {
    keys.emplace_back("channel_granule");
  }
  return keys;
}

Bytes least_granule(MapOrder order, const DramPartSpec& part, Bytes line) {
  const std::int64_t turns = order == MapOrder::row_bank_column_group ? part.bank_groups : 1;
  return std::max(line, burst_bytes(part)) * turns;
}

Bytes largest_granule(const DramPartSpec& part) {
  return row_bytes(part);
}

void name_masks(AddressMapSpec& map, const DramPartSpec& part, const MapGeometry& geometry) {
  check(map.order != MapOrder::masks, "a named map has a name");
  map.channel = map.rank = map.bank = map.row = map.column = {};
  BitDealer dealer;
  Bits groups;
  const int row_bits = coordinate_bits(row_bytes(part).count());
  const bool by_group = map.order == MapOrder::row_bank_column_group;
  if (by_group) {
    dealer.deal(map.column, coordinate_bits(std::max(geometry.line, burst_bytes(part)).count()));
    dealer.deal(groups, coordinate_bits(part.bank_groups));
  }
  deal_columns(dealer, map, row_bits - static_cast<int>(map.column.size()), geometry);
  if (map.order == MapOrder::bank_row_column) {
    dealer.deal(map.row, full_bits(part.rows));
  }
  dealer.deal(map.bank, coordinate_bits(part.banks) - static_cast<int>(groups.size()));
  map.bank.insert(map.bank.end(), groups.begin(), groups.end());
  dealer.deal(map.rank, full_bits(geometry.ranks));
  if (map.order != MapOrder::bank_row_column) {
    dealer.deal(map.row, full_bits(part.rows));
  }
  dealer.deal(map.rank, partial_bits(geometry.ranks));
  dealer.deal(map.row, partial_bits(part.rows));
  for (std::size_t i = 0; map.hash && i < std::min(map.bank.size(), map.row.size()); ++i) {
    map.bank[i].mask |= map.row[i].mask;
  }
}

}  // namespace kvsim::config
