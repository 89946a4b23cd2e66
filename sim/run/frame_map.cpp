// SPDX-License-Identifier: Apache-2.0
#include "sim/run/frame_map.h"

#include <algorithm>

#include "configs/error/error.h"

namespace kvsim::sim {

using trace::Address;
using trace::Extent;

FrameMap::FrameMap(Address address, Bytes bytes, Bytes frames)
    : begin_(address),
      end_(address + static_cast<Address>(bytes.count())),
      frames_(static_cast<Address>(frames.count())) {
  check(frames > Bytes() && frames <= bytes, "a file has frames, and no more than pages");
}

Operation FrameMap::placed(const Operation& operation) const {
  Operation result;
  place(operation, result);
  return result;
}

void FrameMap::place(const Operation& operation, Operation& result) const {
  result.mark = operation.mark;
  result.threads.resize(operation.threads.size());
  for (std::size_t i = 0; i < operation.threads.size(); ++i) {
    model::ThreadWork& thread = result.threads[i];
    thread.simd_operations = operation.threads[i].simd_operations;
    thread.extents.clear();
    for (const Extent& extent : operation.threads[i].extents) {
      place(extent, thread.extents);
    }
  }
}

/// A row that is longer than all frames goes through them more than once.
void FrameMap::place_row(const Extent& row, std::vector<Extent>& out) const {
  for (Bytes done; done < row.row_bytes;) {
    const Address at = (row.address + static_cast<Address>(done.count()) - begin_) % frames_;
    Extent& part = out.emplace_back(row);
    part.address = begin_ + at;
    part.rows = 1;
    part.row_bytes = std::min(row.row_bytes - done, Bytes(static_cast<std::int64_t>(frames_ - at)));
    part.stride = part.row_bytes;
    done += part.row_bytes;
  }
}

void FrameMap::place(const Extent& extent, std::vector<Extent>& out) const {
  if (extent.address < begin_ || extent.address >= end_) {
    out.push_back(extent);
    out.back().address -= extent.address >= end_ ? end_ - begin_ - frames_ : 0;
    return;
  }
  Extent rest = extent;
  const auto row = static_cast<Address>(extent.row_bytes.count());
  const auto stride = std::max(row, static_cast<Address>(extent.stride.count()));
  while (rest.rows > 0) {
    Address at = (rest.address - begin_) % frames_;
    if (row > frames_) {
      place_row(rest, out);
      rest.address += stride;
      --rest.rows;
      continue;
    }
    at = at + row > frames_ ? 0 : at;
    const Address fit = (frames_ - at - row) / stride + 1;
    Extent& part = out.emplace_back(rest);
    part.address = begin_ + at;
    part.rows = static_cast<std::uint32_t>(std::min<Address>(rest.rows, fit));
    rest.address += stride * part.rows;
    rest.rows -= part.rows;
  }
}

}  // namespace kvsim::sim
