// SPDX-License-Identifier: Apache-2.0
// The controller's read-ahead: finds sequential streams, and keeps the page sets that were read for them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "models/storage/map_table.h"

namespace kvsim::model {

class ReadAhead {
 public:
  struct Waiter {
    std::uint32_t command;
    std::int64_t bytes;
  };
  struct Entry {
    Unit set = kNowhere;  ///< logical units, in sets
    std::uint32_t reads_left = 0;
    std::uint64_t used = 0;
    bool is_read = false;         ///< to its end: it may go
    std::vector<Waiter> waiters;  ///< commands that came before the data
  };

  /// Holds `sets` page sets.
  explicit ReadAhead(std::size_t sets) : entries_(sets) {}

  [[nodiscard]] bool is_on() const { return !entries_.empty(); }
  /// A read of [begin, end). True if it goes on where another one ended.
  bool note_read(std::int64_t begin, std::int64_t end);

  /// The entry that holds or fetches a set.
  [[nodiscard]] std::optional<std::uint32_t> find(Unit set) const;
  /// An entry for a set; none if all are still being fetched.
  [[nodiscard]] std::optional<std::uint32_t> take(Unit set);
  [[nodiscard]] Entry& entry(std::uint32_t index) { return entries_[index]; }
  /// Its data is used up or out of date.
  void drop(std::uint32_t index);
  /// Drops what has been written over.
  void forget(Unit first_set, Unit last_set);

 private:
  struct Stream {
    std::int64_t end = -1;
    std::uint64_t used = 0;
  };
  std::array<Stream, 8> streams_;
  std::vector<Entry> entries_;
  std::uint64_t clock_ = 0;
};

}  // namespace kvsim::model
