// SPDX-License-Identifier: Apache-2.0
#include "models/thermal/eigen.h"

#include <cmath>
#include <limits>

namespace kvsim::model {
namespace {

constexpr int kMostSweeps = 60;

struct Rotation {
  double cosine;
  double sine;
};

/// The rotation of axes p and q that makes their element of the matrix 0.
Rotation annihilate(const Matrix& m, std::size_t p, std::size_t q) {
  const double theta = (m.at(q, q) - m.at(p, p)) / (2 * m.at(p, q));
  const double tangent = (theta >= 0 ? 1 : -1) / (std::abs(theta) + std::hypot(theta, 1.0));
  const double cosine = 1 / std::hypot(tangent, 1.0);
  return {cosine, tangent * cosine};
}

void rotate_columns(Matrix& m, std::size_t p, std::size_t q, const Rotation& r) {
  for (std::size_t i = 0; i < m.size(); ++i) {
    const double a = m.at(i, p);
    const double b = m.at(i, q);
    m.at(i, p) = r.cosine * a - r.sine * b;
    m.at(i, q) = r.sine * a + r.cosine * b;
  }
}

void rotate_rows(Matrix& m, std::size_t p, std::size_t q, const Rotation& r) {
  for (std::size_t i = 0; i < m.size(); ++i) {
    const double a = m.at(p, i);
    const double b = m.at(q, i);
    m.at(p, i) = r.cosine * a - r.sine * b;
    m.at(q, i) = r.sine * a + r.cosine * b;
  }
}

/// Small beside its diagonal elements, so that these no longer change.
bool is_negligible(const Matrix& m, std::size_t p, std::size_t q) {
  const double scale = std::sqrt(std::abs(m.at(p, p) * m.at(q, q)));
  return std::abs(m.at(p, q)) <= 0.01 * std::numeric_limits<double>::epsilon() * scale;
}

/// True if something was left to rotate.
bool sweep(Matrix& m, Matrix& vectors) {
  bool rotated = false;
  for (std::size_t p = 0; p + 1 < m.size(); ++p) {
    for (std::size_t q = p + 1; q < m.size(); ++q) {
      if (m.at(p, q) == 0 || is_negligible(m, p, q)) {
        continue;
      }
      const Rotation rotation = annihilate(m, p, q);
      rotate_columns(m, p, q, rotation);
      rotate_rows(m, p, q, rotation);
      rotate_columns(vectors, p, q, rotation);
      m.at(p, q) = 0;
      m.at(q, p) = 0;
      rotated = true;
    }
  }
  return rotated;
}

}  // namespace

Eigen eigen_of(Matrix matrix) {
  const std::size_t size = matrix.size();
  Eigen result{std::vector<double>(size), Matrix(size)};
  for (std::size_t i = 0; i < size; ++i) {
    result.vectors.at(i, i) = 1;
  }
  for (int i = 0; i < kMostSweeps && sweep(matrix, result.vectors); ++i) {
  }
  for (std::size_t i = 0; i < size; ++i) {
    result.values[i] = matrix.at(i, i);
  }
  return result;
}

}  // namespace kvsim::model
