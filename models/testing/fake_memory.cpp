// SPDX-License-Identifier: Apache-2.0
#include "models/testing/fake_memory.h"

#include <algorithm>

namespace kvsim::model::testing {

void FakeMemory::run() {
  while (true) {
    const auto next = std::min_element(outstanding_.begin(), outstanding_.end(),
                                       [](const Transfer& a, const Transfer& b) { return a.done < b.done; });
    const Picoseconds arrival = next == outstanding_.end() ? LineStream::kNever : next->done;
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
  const LineRequest request = stream_.issue();
  transfers_.push_back({request, asked, asked + latency_(request)});
  outstanding_.push_back(transfers_.back());
}

void FakeMemory::deliver(std::size_t index) {
  const Transfer back = outstanding_[index];
  outstanding_.erase(outstanding_.begin() + static_cast<std::ptrdiff_t>(index));
  if (back.request.access == trace::Access::read) {
    stream_.arrived(back.request.slot, {.arrival = back.done});
  } else {
    stream_.taken(back.request.slot, back.done);
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
    lines.push_back(transfer.request.address);
  }
  return lines;
}

}  // namespace kvsim::model::testing
