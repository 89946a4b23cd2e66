// SPDX-License-Identifier: Apache-2.0
// A thread on its way through what an operator touches, at an even pace if nothing is missing.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/cpu/segmenter.h"

namespace kvsim::model {

/// Bytes from `begin` on that are looked after, `end` not included.
struct WatchedRange {
  trace::Address begin = 0;
  trace::Address end = 0;
};

class PacedReader {
 public:
  struct Piece {
    Bytes first;  ///< from the range's beginning
    Bytes bytes;
    bool writes = false;
  };

  /// Those threads of an operator that takes `in_memory` which touch the range; `wanted` says with which
  /// extents.
  [[nodiscard]] static std::vector<PacedReader> of(std::span<const ThreadWork> threads,
                                                   const WatchedRange& range,
                                                   const std::function<bool(const trace::Extent&)>& wanted,
                                                   Picoseconds in_memory, Picoseconds now);

  /// Lets all of them go on to their end, the one that is furthest behind first: `advance` takes bytes of it
  /// and moves its clock. Returns when the last one is done, at least `end`.
  [[nodiscard]] static Picoseconds play(std::vector<PacedReader> readers, Picoseconds end,
                                        const std::function<void(PacedReader&)>& advance);

  /// The next bytes, at most so many. Precondition: not done.
  [[nodiscard]] Piece take(Bytes most);
  [[nodiscard]] bool done() const { return at_ == pieces_.size(); }

  std::int64_t lane = 0;
  Picoseconds each_page;  ///< arithmetic and memory
  Picoseconds clock;

 private:
  std::vector<Piece> pieces_;
  std::size_t at_ = 0;
  Bytes into_;  ///< the piece in hand
};

}  // namespace kvsim::model
