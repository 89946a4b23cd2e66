// SPDX-License-Identifier: Apache-2.0
// The few loops over numbers that decide the functional model's speed, in vector registers of whatever width
// the machine has (Highway, chosen when the program starts).
#pragma once

#include <cstddef>
#include <span>

namespace kvsim::trace::simd {

/// Rows of numbers, one after another: numbers.size() = rows x columns.
struct Rows {
  std::span<const float> numbers;
  std::size_t columns = 0;

  [[nodiscard]] std::size_t rows() const { return numbers.size() / columns; }
  [[nodiscard]] const float* row(std::size_t i) const { return numbers.data() + i * columns; }
};

/// Rows of IEEE 754 half-precision numbers, two bytes each in the machine's order, at equal distances.
struct HalfRows {
  const std::byte* first = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t stride = 0;  ///< from row to row, in numbers
};

/// out[i][j] = sum over c of a[i][c] x b[j][c]; out is [a.rows()][b.rows()]. Sums are in FP32, in an order
/// that depends on the machine's vector width. Precondition: a.columns = b.columns.
void products(const Rows& a, const Rows& b, std::span<float> out);

/// out[i][c] += sum over j of a[i][j] x b[j][c]; out is [a.rows()][b.columns]. Precondition: a.columns =
/// b.rows().
void add_products(const Rows& a, const Rows& b, std::span<float> out);

/// The same, bit for bit, as with b widened before: worth it where each of its numbers is used a few times
/// only.
void products(const Rows& a, const HalfRows& b, std::span<float> out);
void add_products(const Rows& a, const HalfRows& b, std::span<float> out);

/// The largest, or -infinity of none.
[[nodiscard]] float maximum(std::span<const float> numbers);

/// Replaces each number x by e^(x - shift) and returns their sum. e^-infinity is 0. Precondition: `shift` is
/// finite and no number is larger.
float exponentials(std::span<float> numbers, float shift);

/// numbers[i] *= factor.
void scale(std::span<float> numbers, float factor);

/// Reads IEEE 754 half-precision numbers, two bytes each in the machine's order. Exact. Precondition: as many
/// go in as come out.
void widen(std::span<const std::byte> halves, std::span<float> to);

/// The instruction set in use, such as "AVX3".
[[nodiscard]] const char* instruction_set();

}  // namespace kvsim::trace::simd
