// SPDX-License-Identifier: Apache-2.0
// What the tests of address maps share: a memory small enough to try every address.
#pragma once

#include <bit>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "configs/spec/address_map.h"

namespace kvsim::config {

/// 2 channels x 2 ranks x 4 banks x `rows` rows of 16 B, with lines and bursts of 4 B. It has no map yet.
inline DeviceSpec small_device(std::int64_t rows) {
  using namespace literals;
  DeviceSpec device;
  device.llc.line = 4_B;
  device.controller.channels = 2;
  device.controller.ranks = 2;
  device.dram.banks = 4;
  device.dram.rows = rows;
  device.dram.columns = 16;
  device.dram.width_bits = 8;
  device.dram.burst_length = 4;
  return device;
}

/// One problem a line.
inline std::string problems(const DeviceSpec& device) {
  std::string text;
  for (const MapProblem& problem : address_map_problems(device)) {
    text += problem.coordinate + ": " + problem.what + "\n";
  }
  return text;
}

inline std::int64_t coordinate(const std::vector<AddressBit>& bits, std::uint64_t address) {
  std::int64_t value = 0;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    value |= std::int64_t{std::popcount(bits[i].mask & address) & 1} << i;
  }
  return value;
}

/// Whether the addresses installed and the places that exist pair up, by trying every address.
inline bool is_bijection(const DeviceSpec& device) {
  const AddressMapSpec& map = device.controller.mapping;
  std::set<std::vector<std::int64_t>> places;
  const std::int64_t capacity = dram_capacity(device).count();
  for (std::int64_t address = 0; address < capacity; ++address) {
    const auto at = [&](const std::vector<AddressBit>& bits) {
      return coordinate(bits, static_cast<std::uint64_t>(address));
    };
    if (at(map.row) < device.dram.rows && at(map.rank) < device.controller.ranks) {
      places.insert({at(map.channel), at(map.rank), at(map.bank), at(map.row), at(map.column)});
    }
  }
  return std::ssize(places) == capacity;
}

}  // namespace kvsim::config
