// SPDX-License-Identifier: Apache-2.0
#include "models/weight_pager/swapped_memory.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "configs/units/text.h"
#include "models/page_cache/system_setup.h"

namespace kvsim::model {
namespace {

/// Pages of one turn of a thread: a cluster of the swap read-ahead.
constexpr Bytes kTurn{8 * kPageBytes};

Bytes whole_pages(Bytes bytes) {
  return Bytes((bytes.count() + kPageBytes - 1) / kPageBytes * kPageBytes);
}

SwapSetup setup_of(const config::DeviceSpec& device, Bytes memory, Bytes file) {
  SwapSetup setup;
  setup.memory = memory;
  setup.min_free = min_free(device, memory);
  setup.area = device.os.swap;
  setup.offset = whole_pages(file);
  setup.minor_fault = device.os.minor_fault;
  setup.major_fault = device.os.major_fault;
  const Bytes request = std::min(setup.block.max_request, device.storage->link.max_request);
  setup.block.max_request = std::max(Bytes(kPageBytes), request / kPageBytes * kPageBytes);
  return setup;
}

}  // namespace

SwappedMemory::SwappedMemory(const config::DeviceSpec& device, Bytes end, Bytes memory, Bytes file,
                             std::uint64_t seed)
    : storage_(*device.storage, {.seed = seed}),
      block_device_(storage_),
      pages_(whole_pages(end).count() / kPageBytes),
      memory_(block_device_, setup_of(device, memory, file), pages_) {
  const Bytes needed = whole_pages(file) + device.os.swap;
  if (needed > device.storage->capacity || !storage_.lay_out(Bytes(), whole_pages(file))) {
    throw UserError(
        fmt::format("device.os.swap: {} of model file and swap area do not fit on {}, which holds {}",
                    to_text(needed), device.storage->name, to_text(device.storage->capacity)));
  }
}

void SwappedMemory::load() {
  const SwapTouched touched = memory_.touch(0, pages_, true, now_);
  check(!touched.out_of_memory, "memory and area hold what was allocated");
  now_ = touched.done;
}

void SwappedMemory::advance(PacedReader& reader, PagingUse& use) {
  const PacedReader::Piece piece = reader.take(kTurn);
  const std::int64_t first = piece.first.count() / kPageBytes;
  const std::int64_t pages = (piece.first + piece.bytes - Bytes(1)).count() / kPageBytes - first + 1;
  const SwapCounters before = memory_.counters();
  const SwapTouched touched = memory_.touch(first, pages, piece.writes, reader.clock);
  check(!touched.out_of_memory, "memory and area hold what was allocated");
  const SwapCounters after = memory_.counters();
  use.asked += Bytes(pages * kPageBytes);
  use.read += Bytes((after.swapped_in - before.swapped_in) * kPageBytes);
  use.written += Bytes((after.swapped_out - before.swapped_out) * kPageBytes);
  use.major_faults += touched.major_faults;
  use.minor_faults += touched.minor_faults;
  reader.clock = touched.done + reader.each_page * ((piece.bytes.count() + kPageBytes - 1) / kPageBytes);
}

PagingUse SwappedMemory::run(std::span<const ThreadWork> threads, Picoseconds in_memory) {
  PagingUse use;
  const WatchedRange all{.begin = 0, .end = static_cast<trace::Address>(pages_ * kPageBytes)};
  std::vector<PacedReader> readers = PacedReader::of(
      threads, all, [](const trace::Extent& /*e*/) { return true; }, in_memory, now_);
  const Picoseconds end = PacedReader::play(std::move(readers), now_ + in_memory,
                                            [&](PacedReader& reader) { advance(reader, use); });
  use.stall = end - now_ - in_memory;
  now_ = end;
  return use;
}

}  // namespace kvsim::model
