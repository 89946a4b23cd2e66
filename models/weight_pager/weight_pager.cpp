// SPDX-License-Identifier: Apache-2.0
#include "models/weight_pager/weight_pager.h"

#include <algorithm>

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
  major_faults += other.major_faults;
  minor_faults += other.minor_faults;
  stall += other.stall;
  return *this;
}

/// A thread on its way through its weights.
struct WeightPager::Reader {
  struct Piece {
    Bytes first;  ///< in the file
    Bytes bytes;
  };
  std::int64_t lane = 0;
  std::vector<Piece> pieces;
  std::size_t at = 0;
  Bytes into;             ///< the piece in hand
  Picoseconds each_page;  ///< arithmetic and memory
  Picoseconds clock;
};

WeightPager::WeightPager(const config::DeviceSpec& device, const Mapping& mapping, Bytes memory,
                         std::uint64_t seed)
    : mapping_(mapping),
      storage_(*device.storage, {.seed = seed}),
      block_device_(storage_),
      cache_(block_device_, system_setup(device, memory)),
      file_() {
  const Bytes size = whole_pages(mapping.bytes);
  if (size > device.storage->capacity || !storage_.lay_out(Bytes(0), size)) {
    throw UserError(fmt::format("device.storage: {} of weights do not fit on {}, which holds {}",
                                to_text(mapping.bytes), device.storage->name,
                                to_text(device.storage->capacity)));
  }
  file_ = cache_.add_file(size, {{.offset = Bytes(0), .bytes = size}});
}

void WeightPager::load() {
  cache_.advise(file_, FileAdvice::sequential);
  now_ = cache_.populate(file_, Bytes(0), whole_pages(mapping_.bytes), now_).done;
}

std::vector<WeightPager::Reader> WeightPager::readers_of(std::span<const ThreadWork> threads,
                                                         Picoseconds in_memory) const {
  std::vector<Reader> readers;
  for (std::size_t thread = 0; thread < threads.size(); ++thread) {
    Reader reader;
    reader.lane = static_cast<std::int64_t>(thread);
    reader.clock = now_;
    std::int64_t pages = 0;
    for (const trace::Extent& e : threads[thread].extents) {
      if (e.kind != trace::Kind::weights || e.address < mapping_.address ||
          e.address >= mapping_.address + static_cast<std::uint64_t>(mapping_.bytes.count())) {
        continue;
      }
      const auto first = static_cast<std::int64_t>(e.address - mapping_.address);
      const bool whole = e.stride == e.row_bytes || e.rows == 1;
      const std::int64_t rows = whole ? 1 : e.rows;
      const std::int64_t bytes = whole ? e.row_bytes.count() * e.rows : e.row_bytes.count();
      for (std::int64_t row = 0; row < rows; ++row) {
        reader.pieces.push_back({.first = Bytes(first + row * e.stride.count()), .bytes = Bytes(bytes)});
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

void WeightPager::advance(Reader& reader, PagingUse& use) {
  const Reader::Piece& piece = reader.pieces[reader.at];
  const Bytes bytes = std::min(Bytes(kTurn), piece.bytes - reader.into);
  const Touched touched = cache_.touch(
      file_, piece.first + reader.into, bytes,
      {.path = AccessPath::mapped, .lane = reader.lane, .each_page = reader.each_page}, reader.clock);
  check(!touched.out_of_memory && !touched.failed, "weights can be read page by page");
  use.asked += whole_pages(bytes);
  use.read += touched.read;
  use.major_faults += touched.major_faults;
  use.minor_faults += touched.minor_faults;
  reader.clock = touched.done;
  reader.into += bytes;
  if (reader.into >= piece.bytes) {
    reader.into = Bytes();
    ++reader.at;
  }
}

PagingUse WeightPager::run(std::span<const ThreadWork> threads, Picoseconds in_memory) {
  PagingUse use;
  std::vector<Reader> readers = readers_of(threads, in_memory);
  Picoseconds end = now_ + in_memory;
  while (!readers.empty()) {
    const auto next = std::ranges::min_element(readers, {}, &Reader::clock);
    advance(*next, use);
    if (next->at == next->pieces.size()) {
      end = std::max(end, next->clock);
      readers.erase(next);
    }
  }
  use.stall = end - now_ - in_memory;
  now_ = end;
  return use;
}

}  // namespace kvsim::model
