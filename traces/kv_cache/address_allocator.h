// SPDX-License-Identifier: Apache-2.0
// Hands out ranges of one memory: first fit, holes that touch become one. Book-keeping only.
#pragma once

#include <map>
#include <optional>

#include "configs/units/quantity.h"
#include "traces/record/record.h"

namespace kvsim::trace {

class AddressAllocator {
 public:
  static constexpr Bytes kAlignment{64};  ///< a cache line

  /// [base, base + memory), the end rounded down. Precondition: `base` is aligned.
  AddressAllocator(Address base, Bytes memory);

  /// What an allocation of `bytes` takes.
  [[nodiscard]] static Bytes rounded(Bytes bytes);

  /// The lowest hole that is large enough; none if there is no such. Precondition: `bytes` > 0.
  [[nodiscard]] std::optional<Address> allocate(Bytes bytes);
  /// Gives an allocation back and returns what it took. Freeing what is not allocated is a bug.
  Bytes free(Address address);
  /// Keeps the first `bytes` of an allocation. Precondition: 0 < `bytes`, and no more than it has.
  void shrink(Address address, Bytes bytes);

  [[nodiscard]] Bytes in_use() const { return in_use_; }
  [[nodiscard]] Bytes left() const { return memory_ - in_use_; }
  [[nodiscard]] Bytes largest_hole() const;
  /// What an allocation takes.
  [[nodiscard]] Bytes size(Address address) const;

 private:
  void give_back(Address address, Bytes bytes);

  Bytes memory_;
  Bytes in_use_{};
  std::map<Address, Bytes> holes_;
  std::map<Address, Bytes> live_;
};

}  // namespace kvsim::trace
