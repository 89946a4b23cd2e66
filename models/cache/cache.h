// SPDX-License-Identifier: Apache-2.0
// A set-associative write-back cache with LRU replacement. Book-keeping only: it tells hits from misses.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "configs/spec/device_spec.h"
#include "configs/units/quantity.h"
#include "models/accounting/time_account.h"
#include "models/dram/fifo.h"
#include "traces/record/record.h"

namespace kvsim::model {

/// A modified line that leaves the cache.
struct WriteBack {
  trace::Address address = 0;
  Owner owner = Owner::other_data;  ///< of the bytes it holds
};

/// Outcome of one access.
struct CacheAccess {
  bool hit = false;
  std::optional<WriteBack> evicted;
};

class Cache {
 public:
  explicit Cache(const config::CacheSpec& spec);

  /// Accesses the line that holds `address` and leaves it in the cache. A written line is not fetched: the
  /// engines write whole lines.
  CacheAccess access(trace::Address address, trace::Access access, Owner owner);

  /// A stream of `bytes` passes through that is larger than the cache, so that none of it will be found
  /// again. It ages what is there as single accesses would, at no cost per line.
  void pass(Bytes bytes);
  /// The next modified line that passing streams have pushed out, if any.
  std::optional<WriteBack> take_expired();

  [[nodiscard]] Bytes size() const { return size_; }
  [[nodiscard]] std::int64_t hits() const { return hits_; }
  [[nodiscard]] std::int64_t misses() const { return misses_; }

 private:
  struct Line {
    std::uint64_t number = ~std::uint64_t{0};  ///< address / line size
    Bytes used_at;                             ///< passed_ at its last use
    Owner owner = Owner::other_data;
    bool dirty = false;
  };
  struct DirtyLine {
    std::uint64_t number = 0;
    Bytes used_at;
  };

  [[nodiscard]] Line* set_of(std::uint64_t number) { return &lines_[(number % sets_) * ways_]; }
  [[nodiscard]] bool expired(const Line& line) const { return passed_ - line.used_at > size_; }

  Bytes size_;
  std::int64_t line_bytes_;
  std::uint64_t ways_;
  std::uint64_t sets_;
  std::vector<Line> lines_;  ///< sets of ways, most recently used first
  Bytes passed_;
  /// Modified lines, each time they were used, in order of passed_. None before the first stream passes:
  /// they have one age, and are booked then.
  Fifo<DirtyLine> dirty_;
  std::int64_t hits_ = 0;
  std::int64_t misses_ = 0;
};

}  // namespace kvsim::model
