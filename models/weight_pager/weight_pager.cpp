// SPDX-License-Identifier: Apache-2.0
#include "models/weight_pager/weight_pager.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "configs/units/text.h"
#include "models/page_cache/system_setup.h"

namespace kvsim::model {
namespace {

/// Pages of one turn of a thread: what a fault maps at once (fault_around_bytes, mm/memory.c).
constexpr std::int64_t kTurn = 64 << 10;

Bytes whole_pages(Bytes bytes) {
  return Bytes((bytes.count() + kPageBytes - 1) / kPageBytes * kPageBytes);
}

}  // namespace

PagingUse& PagingUse::operator+=(const PagingUse& other) {
  asked += other.asked;
  read += other.read;
  written += other.written;
  others += other.others;
  major_faults += other.major_faults;
  minor_faults += other.minor_faults;
  requests += other.requests;
  stall += other.stall;
  return *this;
}

WeightPager::WeightPager(const config::DeviceSpec& device, const Mapping& mapping, Bytes memory,
                         std::uint64_t seed)
    : mapping_(mapping),
      storage_(*device.storage, {.seed = seed}),
      block_device_(storage_),
      cache_(block_device_, system_setup(device, memory)),
      file_(),
      others_(cache_, seed) {
  const Bytes size = whole_pages(mapping.bytes);
  if (size > device.storage->capacity || !storage_.lay_out(Bytes(0), size)) {
    throw UserError(fmt::format("device.storage: {} of weights do not fit on {}, which holds {}",
                                to_text(mapping.bytes), device.storage->name,
                                to_text(device.storage->capacity)));
  }
  file_ = cache_.add_file(size, {{.offset = Bytes(0), .bytes = size}});
  others_.add(device.os.readers, storage_, size);
}

void WeightPager::lock(Bytes bytes) {
  if (bytes > Bytes()) {
    const Touched touched = cache_.lock(file_, Bytes(), std::min(bytes, mapping_.bytes), now_);
    check(!touched.out_of_memory, "memory has room for what is locked");
    now_ = touched.done;
    others_.begin(now_);
  }
}

void WeightPager::load() {
  cache_.advise(file_, FileAdvice::sequential);
  now_ = cache_.populate(file_, Bytes(0), whole_pages(mapping_.bytes), now_).done;
  others_.begin(now_);
}

void WeightPager::advance(PacedReader& reader, PagingUse& use) {
  const PacedReader::Piece piece = reader.take(Bytes(kTurn));
  const Touched touched = cache_.touch(
      file_, piece.first, piece.bytes,
      {.path = AccessPath::mapped, .lane = reader.lane, .each_page = reader.each_page}, reader.clock);
  check(!touched.out_of_memory && !touched.failed, "weights can be read page by page");
  use.asked += whole_pages(piece.bytes);
  use.read += touched.read;
  use.major_faults += touched.major_faults;
  use.minor_faults += touched.minor_faults;
  reader.clock = touched.done;
}

PagingUse WeightPager::run(std::span<const ThreadWork> threads, Picoseconds in_memory) {
  PagingUse use;
  const WatchedRange file{.begin = mapping_.address,
                          .end = mapping_.address + static_cast<trace::Address>(mapping_.bytes.count())};
  std::vector<PacedReader> readers = PacedReader::of(
      threads, file, [](const trace::Extent& e) { return e.kind == trace::Kind::weights; }, in_memory, now_);
  const Picoseconds end = PacedReader::play(std::move(readers), now_ + in_memory, [&](PacedReader& reader) {
    use.others += others_.until(reader.clock);
    advance(reader, use);
  });
  use.others += others_.until(end);
  use.stall = end - now_ - in_memory;
  now_ = end;
  return use;
}

}  // namespace kvsim::model
