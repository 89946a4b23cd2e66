// SPDX-License-Identifier: Apache-2.0
#include "models/weight_pager/paced_reader.h"

#include <algorithm>
#include <utility>

#include "models/page_cache/page.h"

namespace kvsim::model {

std::vector<PacedReader> PacedReader::of(std::span<const ThreadWork> threads, const WatchedRange& range,
                                         const std::function<bool(const trace::Extent&)>& wanted,
                                         Picoseconds in_memory, Picoseconds now) {
  std::vector<PacedReader> readers;
  for (std::size_t thread = 0; thread < threads.size(); ++thread) {
    PacedReader reader;
    reader.lane = static_cast<std::int64_t>(thread);
    reader.clock = now;
    std::int64_t pages = 0;
    for (const trace::Extent& e : threads[thread].extents) {
      if (e.address < range.begin || e.address >= range.end || !wanted(e)) {
        continue;
      }
      const auto first = static_cast<std::int64_t>(e.address - range.begin);
      const bool whole = e.stride == e.row_bytes || e.rows == 1;
      const std::int64_t rows = whole ? 1 : e.rows;
      const std::int64_t bytes = whole ? e.row_bytes.count() * e.rows : e.row_bytes.count();
      for (std::int64_t row = 0; row < rows; ++row) {
        reader.pieces_.push_back({.first = Bytes(first + row * e.stride.count()),
                                  .bytes = Bytes(bytes),
                                  .writes = e.access == trace::Access::write});
        pages += (bytes + kPageBytes - 1) / kPageBytes;
      }
    }
    if (pages > 0) {
      reader.each_page = in_memory / pages;
      readers.push_back(std::move(reader));
    }
  }
  return readers;
}

Picoseconds PacedReader::play(std::vector<PacedReader> readers, Picoseconds end,
                              const std::function<void(PacedReader&)>& advance) {
  while (!readers.empty()) {
    const auto next = std::ranges::min_element(readers, {}, &PacedReader::clock);
    advance(*next);
    if (next->done()) {
      end = std::max(end, next->clock);
      readers.erase(next);
    }
  }
  return end;
}

PacedReader::Piece PacedReader::take(Bytes most) {
  const Piece& piece = pieces_[at_];
  const Piece part{
      .first = piece.first + into_, .bytes = std::min(most, piece.bytes - into_), .writes = piece.writes};
  into_ += part.bytes;
  if (into_ >= piece.bytes) {
    into_ = Bytes();
    ++at_;
  }
  return part;
}

}  // namespace kvsim::model
