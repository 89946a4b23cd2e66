// SPDX-License-Identifier: Apache-2.0
// Draws by popularity: of the experts that a token takes, of the pages that it reads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "configs/error/error.h"
#include "traces/record/spread.h"

namespace kvsim::trace {

/// Another seed that follows from this one.
[[nodiscard]] inline std::uint64_t next_seed(std::uint64_t seed) {
  return spread(seed + 0x9e3779b97f4a7c15ULL);
}

/// Two numbers in one, so that draws of one seed at different places have nothing to do with each other.
[[nodiscard]] inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  return next_seed(a ^ next_seed(b));
}

template <class Id>
[[nodiscard]] bool contains(const std::vector<Id>& list, Id value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

/// Zipf's law: the one at rank r, counted from 1, is drawn in proportion to 1 / r^exponent.
class Popularity {
 public:
  explicit Popularity(double exponent) : exponent_(exponent) {}

  /// One of `by_rank`, the most popular first, that is not in `taken`. Precondition: there is one.
  template <class Id>
  [[nodiscard]] Id draw(const std::vector<Id>& by_rank, const std::vector<Id>& taken, SplitMix64& draws) {
    while (cumulative_.size() < by_rank.size()) {
      const double last = cumulative_.empty() ? 0 : cumulative_.back();
      cumulative_.push_back(last + std::pow(static_cast<double>(cumulative_.size() + 1), -exponent_));
    }
    const auto ranks = static_cast<std::ptrdiff_t>(by_rank.size());
    const auto end = cumulative_.begin() + ranks;
    for (int i = 0; i < kMostDraws && ranks > 0; ++i) {
      const auto at = std::upper_bound(cumulative_.begin(), end, draws.unit() * *std::prev(end));
      const auto rank = std::min(at - cumulative_.begin(), ranks - 1);
      if (const Id id = by_rank[static_cast<std::size_t>(rank)]; !contains(taken, id)) {
        return id;
      }
    }
    const auto free =
        std::find_if(by_rank.begin(), by_rank.end(), [&](Id id) { return !contains(taken, id); });
    check(free != by_rank.end(), "no more are drawn than there are");
    return *free;
  }

 private:
  /// Draws that may hit what is taken, before the most popular that is not is taken.
  static constexpr int kMostDraws = 64;

  double exponent_;
  std::vector<double> cumulative_;  ///< up to each rank
};

}  // namespace kvsim::trace
