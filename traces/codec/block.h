// SPDX-License-Identifier: Apache-2.0
// Records to the columns of a block and back. Internal to the codec.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/codec/trace.pb.h"
#include "traces/record/record.h"

namespace kvsim::trace {

/// What the next delta of a chain is taken from. Unsigned, so that differences wrap instead of overflowing.
struct ExtentBase {
  std::uint64_t address = 0;
  std::uint64_t row_bytes = 0;
  std::uint64_t rows = 0;
};

struct BlockBases {
  std::array<ExtentBase, 2 * kKinds> extents;
  std::uint64_t operations = 0;
  std::uint64_t tokens = 0;
  std::uint64_t depth = 0;
};

class BlockEncoder {
 public:
  /// Precondition: well_formed(record).
  void add(const Record& record);
  [[nodiscard]] std::size_t records() const { return static_cast<std::size_t>(block_.tag_size()); }
  [[nodiscard]] pb::Block& block() { return block_; }
  void clear();

 private:
  void add(const Extent& e);
  void add(const Compute& c);
  void add(const Alloc& a);
  void add(const Free& f);
  void add(const Mark& m);

  pb::Block block_;
  BlockBases bases_;
};

/// Replaces `records` by the block's. Returns what is wrong with the block, or nothing.
[[nodiscard]] std::string decode(const pb::Block& block, std::vector<Record>& records);

}  // namespace kvsim::trace
