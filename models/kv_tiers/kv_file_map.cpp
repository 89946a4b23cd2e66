// SPDX-License-Identifier: Apache-2.0
#include "models/kv_tiers/kv_file_map.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <utility>

#include "configs/error/error.h"

namespace kvsim::model {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t to) {
  return (value + to - 1) / to * to;
}

/// SplitMix64.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

/// The product; the largest number if it does not fit.
Bytes saturated(std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) {
      return Bytes(kMost);
    }
  }
  return Bytes(product);
}

/// All layers' K and V of a batch, in whole sectors.
Bytes entry_bytes(const KvGeometry& g, const config::KvTierSpec& tiers) {
  const Bytes bytes = saturated({g.row().count(), g.layers, tiers.write_batch});
  return bytes.count() > kMost - kKvSector ? Bytes(kMost) : Bytes(round_up(bytes.count(), kKvSector));
}

/// In whole pages.
Bytes file_bytes(const KvGeometry& g, const config::KvTierSpec& tiers) {
  const std::int64_t batches = (g.cells - 1) / tiers.write_batch + 1;
  const Bytes bytes = tiers.file == config::KvFile::log
                          ? saturated({entry_bytes(g, tiers).count(), batches})
                          : saturated({g.row().count(), g.block, g.blocks(), g.layers});
  return bytes.count() > kMost - kPageBytes ? Bytes(kMost) : Bytes(round_up(bytes.count(), kPageBytes));
}

}  // namespace

KvFileMap::KvFileMap(const KvGeometry& geometry, const config::KvTierSpec& tiers, std::uint64_t seed)
    : geometry_(geometry),
      is_log_(tiers.file == config::KvFile::log),
      batch_(tiers.write_batch),
      entry_(entry_bytes(geometry, tiers)),
      size_(file_bytes(geometry, tiers)) {
  check(size_.count() < kMost, "the file's size fits its type");
  if (tiers.extent && *tiers.extent < size_) {
    extent_ = *tiers.extent;
    size_ = Bytes(round_up(size_.count(), extent_.count()));
    slots_.resize(static_cast<std::size_t>(size_.count() / extent_.count()));
    std::iota(slots_.begin(), slots_.end(), 0U);
    for (std::size_t i = slots_.size(); i > 1; --i) {
      std::swap(slots_[i - 1], slots_[mixed(seed + i) % i]);
    }
  }
}

Bytes KvFileMap::span(const KvGeometry& geometry, const config::KvTierSpec& tiers) {
  const Bytes size = file_bytes(geometry, tiers);
  if (!tiers.extent || *tiers.extent >= size) {
    return size;
  }
  const std::int64_t pieces = (size.count() - 1) / tiers.extent->count() + 1;
  return saturated({pieces, tiers.extent->count(), 2});
}

/// Every other piece of the span is somebody else's.
Bytes KvFileMap::place_of(std::int64_t piece) const {
  return extent_ > Bytes() ? extent_ * 2 * slots_[static_cast<std::size_t>(piece)] : Bytes();
}

std::vector<FileExtent> KvFileMap::extents() const {
  if (extent_ == Bytes()) {
    return {{.offset = Bytes(), .bytes = size_}};
  }
  std::vector<FileExtent> extents;
  for (std::int64_t piece = 0; piece < std::ssize(slots_); ++piece) {
    extents.push_back({.offset = place_of(piece), .bytes = extent_});
  }
  return extents;
}

FileExtent KvFileMap::in_file(std::int64_t layer, bool is_v, CellRange cells) const {
  const KvGeometry& g = geometry_;
  const Bytes row = is_v ? g.v_row : g.k_row;
  const Bytes bytes = row * (cells.end - cells.first);
  if (is_log_) {
    const std::int64_t batch = cells.first / batch_;
    const Bytes layers = g.row() * batch_ * layer + (is_v ? g.k_row * batch_ : Bytes());
    return {.offset = entry_ * batch + layers + row * (cells.first % batch_), .bytes = bytes};
  }
  const std::int64_t room = g.blocks() * g.block;
  return {.offset = g.row() * room * layer + (is_v ? g.k_row * room : Bytes()) + row * cells.first,
          .bytes = bytes};
}

FileExtent KvFileMap::entry(std::int64_t batch) const {
  return {.offset = entry_ * batch, .bytes = entry_};
}

void KvFileMap::add_pieces(std::int64_t layer, CellRange cells, std::vector<FileExtent>& out) const {
  for (const bool is_v : {false, true}) {
    if (is_v && geometry_.v_row == Bytes()) {
      continue;
    }
    if (!is_log_) {
      add_pieces(in_file(layer, is_v, cells), out);
      continue;
    }
    for (std::int64_t first = cells.first; first < cells.end;) {
      const std::int64_t end = std::min(cells.end, (first / batch_ + 1) * batch_);
      add_pieces(in_file(layer, is_v, {.first = first, .end = end}), out);
      first = end;
    }
  }
}

void KvFileMap::add_pieces(FileExtent range, std::vector<FileExtent>& out) const {
  std::int64_t at = range.offset.count() / kKvSector * kKvSector;
  const std::int64_t end = round_up((range.offset + range.bytes).count(), kKvSector);
  check(end <= size_.count(), "a cell lies in the file");
  while (at < end) {
    const std::int64_t piece = extent_ > Bytes() ? at / extent_.count() : 0;
    const std::int64_t stop = extent_ > Bytes() ? std::min(end, (piece + 1) * extent_.count()) : end;
    const Bytes begin = extent_ * piece;
    out.push_back({.offset = place_of(piece) + (Bytes(at) - begin), .bytes = Bytes(stop - at)});
    at = stop;
  }
}

}  // namespace kvsim::model
