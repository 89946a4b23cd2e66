// SPDX-License-Identifier: Apache-2.0
// Which tensor's bytes lie where: address ranges by kind, from a CSV file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "traces/record/record.h"

namespace kvsim::trace {

/// Number of a kind within its map.
using KindIndex = std::uint16_t;
inline constexpr std::size_t kMostRegionKinds = 64;

class RegionMap {
 public:
  /// Every address is of the one kind "other".
  RegionMap() : kinds_{"other"} {}
  /// Reads a file whose first line names its columns: `kind`, `start` and `end` (the first byte behind), and
  /// if it is there `bytes`; others are ignored. A kind that ends in VIEW is its base's. Ranges of one kind
  /// may overlap; those of two may not. Throws UserError with file, line and column.
  [[nodiscard]] static RegionMap load(const std::filesystem::path& path);

  /// In the order of the file; the last is "other", for addresses in no range.
  [[nodiscard]] const std::vector<std::string>& kinds() const { return kinds_; }

  /// What lies at an address, and where that ends.
  struct Piece {
    KindIndex kind = 0;
    Address end = std::numeric_limits<Address>::max();  ///< the first byte behind
  };
  [[nodiscard]] Piece piece_at(Address address) const;

 private:
  friend class RegionFile;
  struct Range {
    Address begin = 0;
    Address end = 0;
    KindIndex kind = 0;
  };

  std::vector<std::string> kinds_;
  std::vector<Range> ranges_;  ///< by address, apart
};

/// What a kind's bytes are for, from its name: W or weights, KV, C or compute; else other.
[[nodiscard]] Kind use_of(const std::string& kind);

}  // namespace kvsim::trace
