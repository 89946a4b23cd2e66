// SPDX-License-Identifier: Apache-2.0
#include "models/dram/address_map.h"

#include <bit>
#include <vector>

#include "configs/error/error.h"

namespace kvsim::model {

namespace {

/// Bits of the packed place that address bit `address_bit` flips.
std::uint64_t contribution(const std::vector<config::AddressBit>& bits, int address_bit, int shift) {
  std::uint64_t packed = 0;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    if ((bits[i].mask >> address_bit) & 1) {
      packed |= std::uint64_t{1} << (static_cast<std::size_t>(shift) + i);
    }
  }
  return packed;
}

}  // namespace

AddressMap::AddressMap(const config::AddressMapSpec& spec, std::int64_t banks_per_rank) {
  check(std::has_single_bit(static_cast<std::uint64_t>(banks_per_rank)), "banks per rank are a power of two");
  check(spec.column.size() <= kRowShift && spec.row.size() <= 32 &&
            spec.rank.size() + spec.bank.size() <= 8 && spec.channel.size() <= 8,
        "coordinates fit the packed place");
  const int rank_shift = kBankShift + std::countr_zero(static_cast<std::uint64_t>(banks_per_rank));

  int granule_bits = 8 * kAddressBytes;
  for (int bit = 0; bit < 8 * kAddressBytes; ++bit) {
    const std::uint64_t outside_row =
        contribution(spec.row, bit, kRowShift) | contribution(spec.bank, bit, kBankShift) |
        contribution(spec.rank, bit, rank_shift) | contribution(spec.channel, bit, kChannelShift);
    if (outside_row != 0 && granule_bits > bit) {
      granule_bits = bit;
    }
    const std::uint64_t packed = outside_row | contribution(spec.column, bit, 0);
    auto& table = tables_[static_cast<std::size_t>(bit / 8)];
    const std::size_t flag = std::size_t{1} << (bit % 8);
    for (std::size_t value = 0; value < table.size(); ++value) {
      if (value & flag) {
        table[value] ^= packed;
      }
    }
  }
  granule_ = Bytes(std::int64_t{1} << granule_bits);
  for (std::size_t line = 0; line < lines_.size(); ++line) {
    lines_[line] = packed(line << kLineBits);
  }
}

}  // namespace kvsim::model
