// SPDX-License-Identifier: Apache-2.0
#include "traces/attention/online_softmax.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace kvsim::trace {
namespace {

/// In sixteen partial sums: compilers must not reorder a single one, and so could not use vector registers
/// for it.
float dot(std::span<const float> a, std::span<const float> b) {
  constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> sums{};
  std::size_t i = 0;
  for (; i + kLanes <= a.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += a[i + lane] * b[i + lane];
    }
  }
  for (; i < a.size(); ++i) {
    sums[0] += a[i] * b[i];
  }
  return std::accumulate(sums.begin(), sums.end(), 0.0F);
}

}  // namespace

void FloatTile::add(std::span<const Half> row) {
  const std::size_t at = numbers_.size();
  numbers_.resize(at + row.size());
  std::transform(row.begin(), row.end(), std::span(numbers_).subspan(at).begin(), to_float);
}

void OnlineSoftmax::add(std::span<const float> query, const FloatTile& k, const FloatTile& v,
                        std::size_t tokens) {
  scores_.resize(tokens);
  for (std::size_t t = 0; t < tokens; ++t) {
    scores_[t] = dot(query, k.row(t));
  }
  const float maximum = std::max(maximum_, *std::max_element(scores_.begin(), scores_.end()));
  const float rescale = std::exp(maximum_ - maximum);  // 0 for the first tile
  maximum_ = maximum;
  sum_ *= rescale;
  for (float& w : weighted_) {
    w *= rescale;
  }
  for (std::size_t t = 0; t < tokens; ++t) {
    const float weight = std::exp(scores_[t] - maximum);
    const std::span<const float> row = v.row(t);
    sum_ += weight;
    for (std::size_t i = 0; i < weighted_.size(); ++i) {
      weighted_[i] += weight * row[i];
    }
  }
}

void OnlineSoftmax::write(std::span<float> out) const {
  std::transform(weighted_.begin(), weighted_.end(), out.begin(), [this](float w) { return w / sum_; });
}

}  // namespace kvsim::trace
