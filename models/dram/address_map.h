// SPDX-License-Identifier: Apache-2.0
// Physical address to channel, rank, bank, row and column.
#pragma once

#include <array>
#include <cstdint>

#include "configs/spec/dram_spec.h"
#include "configs/units/index.h"
#include "configs/units/quantity.h"

namespace kvsim::model {

struct DramPlace {
  Channel channel;
  std::uint32_t bank = 0;  ///< bank of its channel, over all ranks: rank x banks per rank + bank
  Row row;
  std::uint32_t column = 0;  ///< byte within the row
};

/// The map is linear over GF(2), so a place is the XOR of what each byte of the address contributes.
class AddressMap {
 public:
  /// Precondition: `spec` is a bijection over the capacity; the resolver checks that.
  AddressMap(const config::AddressMapSpec& spec, std::int64_t banks_per_rank);

  [[nodiscard]] DramPlace place(std::uint64_t address) const { return unpack(packed(address)); }

  /// What the addresses of a page share, for one who asks for many of them.
  struct Page {
    std::uint64_t number = ~std::uint64_t{0};
    std::uint64_t packed = 0;
  };
  /// The place of the line that begins at `address`; `page` is the one of the last call, or new.
  [[nodiscard]] DramPlace place_of_line(std::uint64_t address, Page& page) const {
    const std::uint64_t number = address >> kPageBits;
    if (page.number != number) {
      page = {.number = number, .packed = packed(number << kPageBits)};
    }
    return unpack(page.packed ^ lines_[(address >> kLineBits) & (lines_.size() - 1)]);
  }

  /// Largest power-of-two block of addresses that stays within one row of one channel.
  [[nodiscard]] Bytes granule() const { return granule_; }

 private:
  static constexpr int kAddressBytes = 6;  // 256 TiB of memory
  static constexpr int kPageBits = 12;
  static constexpr int kLineBits = 6;
  // Packed place: column in bits 0-15, row in 16-47, bank in 48-55, channel in 56-63.
  static constexpr int kRowShift = 16;
  static constexpr int kBankShift = 48;
  static constexpr int kChannelShift = 56;

  [[nodiscard]] std::uint64_t packed(std::uint64_t address) const {
    std::uint64_t packed = 0;
    for (std::size_t byte = 0; byte < tables_.size(); ++byte) {
      packed ^= tables_[byte][(address >> (8 * byte)) & 0xff];
    }
    return packed;
  }
  [[nodiscard]] static DramPlace unpack(std::uint64_t packed) {
    return {.channel = Channel(static_cast<std::uint32_t>(packed >> kChannelShift)),
            .bank = static_cast<std::uint32_t>((packed >> kBankShift) & 0xff),
            .row = Row(static_cast<std::uint32_t>(packed >> kRowShift)),
            .column = static_cast<std::uint32_t>(packed & 0xffff)};
  }

  std::array<std::array<std::uint64_t, 256>, kAddressBytes> tables_{};
  std::array<std::uint64_t, std::size_t{1} << (kPageBits - kLineBits)> lines_{};  ///< of a page
  Bytes granule_;
};

}  // namespace kvsim::model
