// SPDX-License-Identifier: Apache-2.0
// Eigenvalues and vectors of a small symmetric matrix.
#pragma once

#include <cstddef>
#include <vector>

namespace kvsim::model {

/// A square matrix, row by row.
class Matrix {
 public:
  explicit Matrix(std::size_t size) : size_(size), values_(size * size) {}

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] double& at(std::size_t row, std::size_t column) { return values_[row * size_ + column]; }
  [[nodiscard]] double at(std::size_t row, std::size_t column) const { return values_[row * size_ + column]; }

 private:
  std::size_t size_;
  std::vector<double> values_;
};

/// matrix = vectors x diagonal(values) x transposed vectors; each column of `vectors` has length 1.
struct Eigen {
  std::vector<double> values;
  Matrix vectors;
};

/// By Jacobi's rotations, which keep the relative accuracy of small eigenvalues of positive definite
/// matrices (Demmel and Veselic, 1992). Precondition: the matrix is symmetric.
[[nodiscard]] Eigen eigen_of(Matrix matrix);

}  // namespace kvsim::model
