// SPDX-License-Identifier: Apache-2.0
#include "traces/attention/tile.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvsim::trace {

void OnlineSoftmax::start(std::size_t rows) {
  maximum_.assign(rows, -std::numeric_limits<float>::infinity());
  sum_.assign(rows, 0);
  weighted_.assign(rows * head_dim_, 0);
}

void OnlineSoftmax::add(std::span<float> scores, const simd::Rows& v) {
  weigh(scores, v.rows());
  simd::add_products({.numbers = scores, .columns = v.rows()}, v, weighted_);
}

void OnlineSoftmax::add(std::span<float> scores, const simd::HalfRows& v) {
  weigh(scores, v.rows);
  simd::add_products({.numbers = scores, .columns = v.rows}, v, weighted_);
}

void OnlineSoftmax::weigh(std::span<float> scores, std::size_t cells) {
  for (std::size_t row = 0; row < maximum_.size(); ++row) {
    const std::span<float> of_row = scores.subspan(row * cells, cells);
    const float maximum = std::max(maximum_[row], simd::maximum(of_row));
    if (std::isinf(maximum)) {  // it sees none of these cells, nor any before
      std::fill(of_row.begin(), of_row.end(), 0.0F);
      continue;
    }
    if (maximum > maximum_[row]) {
      const float rescale = std::exp(maximum_[row] - maximum);  // 0 for the first tile
      sum_[row] *= rescale;
      simd::scale(std::span(weighted_).subspan(row * head_dim_, head_dim_), rescale);
      maximum_[row] = maximum;
    }
    sum_[row] += simd::exponentials(of_row, maximum);
  }
}

void OnlineSoftmax::write(std::size_t row, std::span<float> out) const {
  const auto from = std::span(weighted_).subspan(row * head_dim_, head_dim_);
  std::transform(from.begin(), from.end(), out.begin(), [sum = sum_[row]](float w) { return w / sum; });
}

float OnlineSoftmax::weight(std::size_t row, float score) const {
  return std::exp(score - maximum_[row]) / sum_[row];
}

}  // namespace kvsim::trace
