// SPDX-License-Identifier: Apache-2.0
#include "models/cpu/segmenter.h"

#include <algorithm>
#include <cmath>

#include "configs/error/error.h"

namespace kvsim::model {

using trace::Access;
using trace::Extent;

namespace {

constexpr std::int64_t kSegmentBytes = 16 << 10;
/// Extents up to this size are kept in the cache even in an operator that streams more than it holds:
/// activations and norms, which the next operators read again.
constexpr std::int64_t kKeptBytes = 64 << 10;
/// Loads, address arithmetic and loop control per SIMD operation in dot-product loops (assumed).
constexpr double kInstructionsPerSimdOperation = 1.6;

std::int64_t line_down(std::int64_t address) {
  return address & ~(kLineBytes - 1);
}

bool contiguous(const Extent& e) {
  return e.stride == e.row_bytes || e.rows == 1;
}

}  // namespace

Picoseconds compute_time(const config::CoreSpec& core, std::uint64_t simd_operations) {
  const double seconds =
      static_cast<double>(simd_operations) / (core.simd_ops_per_cycle * core.clock.as_double());
  return Picoseconds(std::llround(seconds * kPicosecondsPerSecond));
}

LineWork line_work(const config::CoreSpec& core, std::uint64_t simd_operations, std::int64_t lines) {
  const double instructions_per_line =
      kInstructionsPerSimdOperation * static_cast<double>(simd_operations) / static_cast<double>(lines);
  const double reach = static_cast<double>(core.reorder_buffer) / std::max(1.0, instructions_per_line);
  return {.per_line = compute_time(core, simd_operations) / lines,
          .demand_lines = std::clamp(static_cast<std::int64_t>(reach), std::int64_t{1}, core.demand_misses)};
}

std::int64_t lines_of(const std::vector<Extent>& extents) {
  std::int64_t lines = 0;
  for (const Extent& e : extents) {
    const std::int64_t rows = contiguous(e) ? 1 : static_cast<std::int64_t>(e.rows);
    const std::int64_t bytes = total_bytes(e).count() / rows;
    const auto start = static_cast<std::int64_t>(e.address);
    lines += rows * ((line_down(start + bytes - 1) - line_down(start)) / kLineBytes + 1);
  }
  return lines;
}

void Segmenter::begin(const std::vector<Extent>& extents, const LineWork& work, bool passes_cache) {
  extents_ = extents;
  work_ = work;
  passes_cache_ = passes_cache;
  extent_ = 0;
  row_ = offset_ = 0;
  lead_in_ = Picoseconds();
  for (Extent& e : extents_) {
    if (contiguous(e)) {
      e.row_bytes = total_bytes(e);
      e.stride = e.row_bytes;
      e.rows = 1;
    }
  }
}

std::optional<Segment> Segmenter::next() {
  if (auto segment = write_back()) {
    return segment;
  }
  while (extent_ < extents_.size()) {
    const Extent& e = extents_[extent_];
    const bool pass = passes_cache_ && e.access == Access::read && total_bytes(e).count() > kKeptBytes;
    if (auto segment = pass ? slice() : through_cache()) {
      return segment;
    }
  }
  return write_back();
}

void Segmenter::next_extent() {
  ++extent_;
  row_ = offset_ = 0;
}

Segment Segmenter::segment(trace::Address address, Bytes row_bytes, std::int64_t rows, Bytes stride) {
  const Extent& e = extents_[extent_];
  return {.address = address,
          .row_bytes = row_bytes,
          .rows = rows,
          .stride = stride,
          .access = e.access,
          .owner = data_owner(e.kind, e.access),
          .per_line = work_.per_line,
          .demand_lines = work_.demand_lines,
          .lead_in = std::exchange(lead_in_, Picoseconds()),
          .posted = false};
}

/// Some rows of the extent, or some lines of its only row.
std::optional<Segment> Segmenter::slice() {
  const Extent& e = extents_[extent_];
  std::optional<Segment> result;
  Bytes bytes;
  if (e.rows == 1) {
    const auto start = static_cast<std::int64_t>(e.address) + offset_;
    const std::int64_t end = static_cast<std::int64_t>(e.address) + e.row_bytes.count();
    const std::int64_t cut = std::min(end, line_down(start + kSegmentBytes));
    bytes = Bytes(cut - start);
    result = segment(static_cast<trace::Address>(start), bytes, 1, bytes);
    offset_ += bytes.count();
    if (cut == end) {
      next_extent();
    }
  } else {
    const std::int64_t rows = std::clamp<std::int64_t>(kSegmentBytes / e.row_bytes.count(), 1,
                                                       static_cast<std::int64_t>(e.rows) - row_);
    const auto address = e.address + static_cast<trace::Address>(row_ * e.stride.count());
    bytes = e.row_bytes * rows;
    result = segment(address, e.row_bytes, rows, e.stride);
    row_ += rows;
    if (row_ == static_cast<std::int64_t>(e.rows)) {
      next_extent();
    }
  }
  cache_.pass(bytes);
  while (auto expired = cache_.take_expired()) {
    evicted_.push_back(*expired);
    evicted_sorted_ = false;
  }
  return result;
}

/// Goes on through the cache until a run of missing lines ends; hits add to the lead-in.
std::optional<Segment> Segmenter::through_cache() {
  const Extent e = extents_[extent_];
  const Owner owner = data_owner(e.kind, e.access);
  while (row_ < static_cast<std::int64_t>(e.rows)) {
    const auto row_start = static_cast<std::int64_t>(e.address) + row_ * e.stride.count();
    const std::int64_t row_end = row_start + e.row_bytes.count();
    std::int64_t missing = 0;
    while (row_start + offset_ < row_end) {
      const std::int64_t at = line_down(row_start + offset_);
      const CacheAccess access = cache_.access(static_cast<trace::Address>(at), e.access, owner);
      if (access.evicted) {
        evicted_.push_back(*access.evicted);
        evicted_sorted_ = false;
      }
      offset_ = at + kLineBytes - row_start;
      if (access.hit || e.access == Access::write) {
        lead_in_ += std::max(work_.per_line, hit_time_);
        if (missing > 0) {
          return segment(static_cast<trace::Address>(at - missing), Bytes(missing), 1, Bytes(missing));
        }
      } else if ((missing += kLineBytes) == kSegmentBytes) {
        const std::int64_t end = at + kLineBytes;
        return segment(static_cast<trace::Address>(end - missing), Bytes(missing), 1, Bytes(missing));
      }
    }
    const std::int64_t end = row_start + offset_;
    ++row_;
    offset_ = 0;
    if (missing > 0) {
      Segment s = segment(static_cast<trace::Address>(end - missing), Bytes(missing), 1, Bytes(missing));
      if (row_ == static_cast<std::int64_t>(e.rows)) {
        next_extent();
      }
      return s;
    }
  }
  next_extent();
  return std::nullopt;
}

/// Modified lines that left the cache, neighbours together.
std::optional<Segment> Segmenter::write_back() {
  if (evicted_.empty()) {
    return std::nullopt;
  }
  if (!std::exchange(evicted_sorted_, true)) {
    std::sort(evicted_.begin(), evicted_.end(),
              [](const WriteBack& a, const WriteBack& b) { return a.address > b.address; });
  }
  const WriteBack first = evicted_.back();
  std::int64_t bytes = 0;
  while (!evicted_.empty() && evicted_.back().address == first.address + static_cast<trace::Address>(bytes) &&
         evicted_.back().owner == first.owner) {
    bytes += kLineBytes;
    evicted_.pop_back();
  }
  return Segment{.address = first.address,
                 .row_bytes = Bytes(bytes),
                 .rows = 1,
                 .stride = Bytes(bytes),
                 .access = Access::write,
                 .owner = first.owner,
                 .per_line = {},
                 .demand_lines = 1,
                 .lead_in = {},
                 .posted = true};
}

}  // namespace kvsim::model
