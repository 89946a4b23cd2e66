// SPDX-License-Identifier: Apache-2.0
// Cuts a thread's extents into the segments its core asks memory for, past what the cache holds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "configs/spec/device_spec.h"
#include "configs/units/quantity.h"
#include "models/cache/cache.h"
#include "models/stream/engine_stream.h"
#include "traces/record/record.h"

namespace kvsim::model {

/// One thread's part of an operator: bytes to touch in order, and arithmetic spread evenly over them.
struct ThreadWork {
  std::vector<trace::Extent> extents;
  std::uint64_t simd_operations = 0;
};

/// How fast a core works on lines.
struct LineWork {
  Picoseconds per_line;           ///< arithmetic on one line
  std::int64_t demand_lines = 1;  ///< lines its loads reach ahead at that much work a line
};

/// Precondition: `lines` > 0.
[[nodiscard]] LineWork line_work(const config::CoreSpec& core, std::uint64_t simd_operations,
                                 std::int64_t lines);
[[nodiscard]] Picoseconds compute_time(const config::CoreSpec& core, std::uint64_t simd_operations);
/// Cache lines that the extents touch, each row counted by itself.
[[nodiscard]] std::int64_t lines_of(const std::vector<trace::Extent>& extents);

class Segmenter {
 public:
  Segmenter(Cache& cache, const config::CacheSpec& spec)
      : cache_(cache), hit_time_(Bytes(kLineBytes) / spec.bandwidth) {}

  /// Begins with `extents`. With `passes_cache` the large ones stream past the cache: nothing of them is
  /// kept.
  void begin(const std::vector<trace::Extent>& extents, const LineWork& work, bool passes_cache);
  /// The next segment for memory, or none: then lead_in() is what work remains on data at hand.
  [[nodiscard]] std::optional<Segment> next();
  [[nodiscard]] Picoseconds lead_in() const { return lead_in_; }

 private:
  std::optional<Segment> slice();
  std::optional<Segment> through_cache();
  std::optional<Segment> write_back();
  [[nodiscard]] Segment segment(trace::Address address, Bytes row_bytes, std::int64_t rows, Bytes stride);
  void next_extent();

  Cache& cache_;
  Picoseconds hit_time_;  ///< a line from the cache
  std::vector<trace::Extent> extents_;
  LineWork work_;
  bool passes_cache_ = false;
  std::size_t extent_ = 0;
  std::int64_t row_ = 0;     ///< within the extent,
  std::int64_t offset_ = 0;  ///< and bytes within the row
  Picoseconds lead_in_;
  std::vector<WriteBack> evicted_;  ///< sorted, last address first, when nothing was added since
  bool evicted_sorted_ = true;
};

}  // namespace kvsim::model
