// SPDX-License-Identifier: Apache-2.0
// First-in first-out queue on a ring that grows; no allocation once it has its size.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace kvsim::model {

template <class T>
class Fifo {
 public:
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] T& front() { return ring_[first_]; }
  [[nodiscard]] const T& front() const { return ring_[first_]; }

  void push(const T& value) {
    if (size_ == ring_.size()) {
      grow();
    }
    at(size_++) = value;
  }
  /// Puts `value` behind every element that it is not before, looking from the back.
  template <class Before>
  void insert(const T& value, Before before) {
    push(value);
    for (std::size_t i = size_ - 1; i > 0 && before(value, at(i - 1)); --i) {
      std::swap(at(i), at(i - 1));
    }
  }
  void pop() {
    first_ = (first_ + 1) & (ring_.size() - 1);
    --size_;
  }

 private:
  [[nodiscard]] T& at(std::size_t i) { return ring_[(first_ + i) & (ring_.size() - 1)]; }

  void grow() {
    std::vector<T> larger(ring_.size() * 2);
    for (std::size_t i = 0; i < size_; ++i) {
      larger[i] = at(i);
    }
    ring_.swap(larger);
    first_ = 0;
  }

  std::vector<T> ring_ = std::vector<T>(16);  ///< a power of two
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace kvsim::model
