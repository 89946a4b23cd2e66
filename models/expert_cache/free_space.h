// SPDX-License-Identifier: Apache-2.0
// Room in a range of memory, handed out in one run where one is left and in several where not, as pages are.
#pragma once

#include <map>
#include <vector>

#include "configs/units/quantity.h"

namespace kvsim::model {

struct SpaceRun {
  Bytes first;
  Bytes bytes;

  bool operator==(const SpaceRun&) const = default;
};

class FreeSpace {
 public:
  explicit FreeSpace(Bytes size);

  /// The first run that is long enough, else the first runs that together are. Precondition: `bytes` are
  /// free, and some.
  [[nodiscard]] std::vector<SpaceRun> take(Bytes bytes);
  /// Precondition: they were taken and are not free.
  void give_back(const std::vector<SpaceRun>& runs);
  [[nodiscard]] Bytes free() const { return free_; }

 private:
  using Runs = std::map<Bytes, Bytes>;  ///< length by beginning; no two touch
  [[nodiscard]] SpaceRun cut(Runs::iterator run, Bytes bytes);
  void give_back(const SpaceRun& run);

  Runs runs_;
  Bytes free_;
};

}  // namespace kvsim::model
