// SPDX-License-Identifier: Apache-2.0
// softmax(scores) x V, one tile of cells at a time (Milakov, Gimelshein 2018; Dao et al. 2022).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "traces/simd/simd.h"

namespace kvsim::trace {

/// Running results of some rows, a row per query and query head. Every exponential is relative to the largest
/// score of its row so far, so none overflows; what was summed before is rescaled when a larger score comes.
class OnlineSoftmax {
 public:
  explicit OnlineSoftmax(std::size_t head_dim) : head_dim_(head_dim) {}

  /// Forgets everything; `rows` rows come next.
  void start(std::size_t rows);
  /// Takes in a tile: `scores` is [row][cell] with -infinity where a row does not see a cell, and is used up;
  /// `v` is [cell][head_dim].
  void add(std::span<float> scores, const simd::Rows& v);
  void add(std::span<float> scores, const simd::HalfRows& v);
  /// The attention output of a row. Precondition: it saw a cell.
  void write(std::size_t row, std::span<float> out) const;

  /// The softmax weight of a score of a row, once all tiles are in.
  [[nodiscard]] float weight(std::size_t row, float score) const;

 private:
  /// Scores of `cells` cells become weights, relative to the largest so far.
  void weigh(std::span<float> scores, std::size_t cells);

  std::size_t head_dim_;
  std::vector<float> maximum_;   // [row]
  std::vector<float> sum_;       // [row], of exp(score - maximum)
  std::vector<float> weighted_;  // [row][head_dim], sum of exp(score - maximum) x V
};

}  // namespace kvsim::trace
