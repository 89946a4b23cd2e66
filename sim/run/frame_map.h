// SPDX-License-Identifier: Apache-2.0
// Where a mapped file that is larger than the memory left for it lies in DRAM.
#pragma once

#include "sim/run/operation.h"

namespace kvsim::sim {

/// The file has so many frames, which its pages use in turn; what is mapped behind it moves down to their
/// end. Frames lie side by side in the order of the file: how the kernel scatters them is not modelled.
class FrameMap {
 public:
  /// Precondition: 0 < `frames` <= `bytes`.
  FrameMap(trace::Address address, Bytes bytes, Bytes frames);

  /// The operation at physical addresses. Extents that reach past the last frame go on at the first.
  [[nodiscard]] Operation placed(const Operation& operation) const;
  /// The same in `result`, another operation, whose room is used again.
  void place(const Operation& operation, Operation& result) const;

 private:
  void place(const trace::Extent& extent, std::vector<trace::Extent>& out) const;
  void place_row(const trace::Extent& row, std::vector<trace::Extent>& out) const;

  trace::Address begin_;
  trace::Address end_;
  trace::Address frames_;
};

}  // namespace kvsim::sim
