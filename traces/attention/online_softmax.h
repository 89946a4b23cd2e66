// SPDX-License-Identifier: Apache-2.0
// softmax(scores) x V, one tile of cached tokens at a time (Milakov, Gimelshein 2018; Dao et al. 2022).
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "traces/number/half.h"

namespace kvsim::trace {

/// K or V of a tile as floats: converted once, used by every query that sees the tile.
class FloatTile {
 public:
  explicit FloatTile(std::size_t head_dim) : head_dim_(head_dim) {}

  void clear() { numbers_.clear(); }
  void add(std::span<const Half> row);
  [[nodiscard]] std::span<const float> row(std::size_t i) const {
    return std::span(numbers_).subspan(i * head_dim_, head_dim_);
  }

 private:
  std::size_t head_dim_;
  std::vector<float> numbers_;
};

/// Running result of one query and head. Every exponential is relative to the largest score so far, so none
/// overflows; what was summed before is rescaled when a larger score comes.
class OnlineSoftmax {
 public:
  explicit OnlineSoftmax(std::size_t head_dim) : weighted_(head_dim) {}

  /// Takes in the first `tokens` rows of the tile. `query` is already scaled.
  void add(std::span<const float> query, const FloatTile& k, const FloatTile& v, std::size_t tokens);
  /// The attention output. Precondition: a token was added.
  void write(std::span<float> out) const;

 private:
  float maximum_ = -std::numeric_limits<float>::infinity();
  float sum_ = 0;                // of exp(score - maximum_)
  std::vector<float> weighted_;  // sum of exp(score - maximum_) x V
  std::vector<float> scores_;    // of the tile in hand
};

}  // namespace kvsim::trace
