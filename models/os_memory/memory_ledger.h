// SPDX-License-Identifier: Apache-2.0
// The operating system's memory as a ledger: who holds how much, and which limit breaks first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "configs/spec/device_spec.h"
#include "configs/units/quantity.h"
#include "traces/record/record.h"

namespace kvsim::model {

struct LedgerItem {
  std::string name;
  trace::Kind kind = trace::Kind::other;
  trace::Backing backing = trace::Backing::anonymous;
  Bytes bytes;  ///< in whole pages
};

/// A limit that was passed. Running out of memory is a result, not an error.
struct OutOfMemory {
  std::string limit;  ///< "memory", or "address space" for an absurd mapping
  std::string item;   ///< the allocation that broke it
  Bytes needed;       ///< by all that cannot be dropped
  Bytes available;
};

/// Anonymous memory has to stay, or go to the swap area (`os.swap`); file-mapped memory (weights) is clean
/// page cache that the kernel may drop and read again. So anonymous memory above what the system and the area
/// leave is death by the OOM killer, and file-mapped memory above that is paging.
class MemoryLedger {
 public:
  MemoryLedger(const config::OsSpec& os, Bytes installed);

  /// Books an allocation. Returns the limit it breaks, if any; the allocation then does not take place.
  std::optional<OutOfMemory> allocate(const trace::Alloc& alloc);
  /// Precondition: an allocation starts at `address`.
  void free(trace::Address address);

  [[nodiscard]] Bytes available() const {
    return available_;
  }  ///< to the model: installed - firmware - reserve
  /// Anonymous memory does not fit without the swap area.
  [[nodiscard]] bool swaps() const { return anonymous_ > available_; }
  [[nodiscard]] Bytes anonymous() const { return anonymous_; }
  [[nodiscard]] Bytes file_mapped() const { return file_mapped_; }
  [[nodiscard]] Bytes total() const { return anonymous_ + file_mapped_; }
  [[nodiscard]] Bytes peak() const { return peak_; }
  /// File-mapped memory does not fit beside the anonymous: it can only be used by paging.
  [[nodiscard]] bool pages() const { return total() > available_; }
  /// What is held now, in the order of allocation.
  [[nodiscard]] const std::vector<LedgerItem>& items() const { return items_; }

 private:
  Bytes page_;
  Bytes available_;
  Bytes swap_;
  Bytes anonymous_;
  Bytes file_mapped_;
  Bytes peak_;
  std::vector<LedgerItem> items_;
  std::vector<trace::Address> starts_;  ///< of items_
};

}  // namespace kvsim::model
