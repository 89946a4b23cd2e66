// SPDX-License-Identifier: Apache-2.0
// Operators that are not simulated, and what they would have left in the cache.
#pragma once

#include <deque>
#include <vector>

#include "configs/spec/device_spec.h"
#include "configs/units/quantity.h"
#include "models/cache/cache.h"
#include "models/cpu/segmenter.h"

namespace kvsim::model {

/// Remembers as much of the skipped work as the cache can, and plays it through the cache, without time and
/// without DRAM, when the cache is needed: what that costs does not grow with how much was skipped.
class SkippedWork {
 public:
  SkippedWork(Cache& cache, const config::CacheSpec& spec);

  /// `passes_cache` as for Segmenter::begin().
  void add(const std::vector<ThreadWork>& threads, bool passes_cache);
  /// The cache comes to hold what all that was added would have left there. Modified lines that this pushes
  /// out have been written in the time that was skipped.
  void catch_up();

 private:
  struct Work {
    std::vector<std::vector<trace::Extent>> threads;
    bool passes_cache = false;
    Bytes bytes;
  };
  [[nodiscard]] Work& next_work();
  void play(const Work& work);

  Cache& cache_;
  config::CacheSpec spec_;
  Bytes reach_;  ///< what lies further back has left the cache
  std::deque<Work> work_;
  std::vector<Work> spare_;  ///< for their vectors' room
  Bytes remembered_;
  Bytes forgotten_;  ///< before the work that is remembered
};

}  // namespace kvsim::model
