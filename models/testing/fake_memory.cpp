// SPDX-License-Identifier: Apache-2.0
#include "models/testing/fake_memory.h"

#include <algorithm>

namespace kvsim::model::testing {

void FakeMemory::run() {
  while (true) {
    const auto next = std::min_element(
        outstanding_.begin(), outstanding_.end(),
        [](const Outstanding& a, const Outstanding& b) { return a.back.last < b.back.last; });
    const Picoseconds arrival = next == outstanding_.end() ? LineStream::kNever : next->back.last;
    if (arrival == LineStream::kNever && stream_.next_issue() == LineStream::kNever) {
      return;
    }
    if (arrival <= stream_.next_issue()) {
      deliver(static_cast<std::size_t>(next - outstanding_.begin()));
    } else {
      issue();
    }
  }
}

void FakeMemory::issue() {
  const Picoseconds asked = stream_.next_issue();
  const Piece piece = stream_.issue();
  const Picoseconds latency = latency_(piece);
  outstanding_.push_back({piece, {.first = piece.first + latency, .last = asked + latency}});
  transfers_.push_back({piece, asked, asked + latency});
}

void FakeMemory::deliver(std::size_t index) {
  const Outstanding done = outstanding_[index];
  outstanding_.erase(outstanding_.begin() + static_cast<std::ptrdiff_t>(index));
  if (done.piece.access == trace::Access::read) {
    stream_.arrived(done.piece.slot, done.back);
  } else {
    stream_.taken(done.piece.slot, done.back.last);
  }
}

Segment run_of(trace::Address address, Bytes bytes, trace::Access access) {
  Segment segment;
  segment.address = address;
  segment.row_bytes = segment.stride = bytes;
  segment.access = access;
  return segment;
}

std::vector<trace::Address> lines_of(const std::vector<Transfer>& transfers) {
  std::vector<trace::Address> lines;
  for (const Transfer& transfer : transfers) {
    for (std::int64_t line = 0; line < transfer.piece.lines; ++line) {
      lines.push_back(transfer.piece.address + static_cast<trace::Address>(line * kLineBytes));
    }
  }
  return lines;
}

}  // namespace kvsim::model::testing
