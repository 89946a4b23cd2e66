// SPDX-License-Identifier: Apache-2.0
// A server that passes one cache line at a time, in slots of a line's time: the interconnect.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvsim::model {

/// Lines may come out of order: each takes the first slot that is free from its own time on. Slots are as
/// fine as waits need to be: of two lines that come within a slot's time the second waits for half a slot on
/// average, as it would without slots.
class LineSlots {
 public:
  /// Times in picoseconds. Precondition: slot > 0.
  explicit LineSlots(std::int64_t slot) : slot_(slot), slots_per_ps_(1.0 / static_cast<double>(slot)) {}

  /// Passes a line that comes at `time`, and returns how long it waits. Lines further ahead than the ring
  /// reaches (65,536 slots) pass freely.
  std::int64_t pass(std::int64_t time) {
    const std::uint64_t wanted = std::max(slot_at(time), first_word_ * kBits);
    std::uint64_t word = wanted / kBits;
    std::uint64_t free = ~taken(word) & (~std::uint64_t{0} << (wanted % kBits));
    while (free == 0) {
      free = ~taken(++word);
    }
    if (word >= first_word_ + kWords) {
      return 0;
    }
    const auto bit = static_cast<std::uint64_t>(std::countr_zero(free));
    words_[word % kWords] |= std::uint64_t{1} << bit;
    return static_cast<std::int64_t>(word * kBits + bit - wanted) * slot_;
  }

  /// No line comes before `time` any more.
  void forget_before(std::int64_t time) {
    const std::uint64_t word = slot_at(time) / kBits;
    if (word > first_word_) {
      forget_words(word);
    }
  }

 private:
  static constexpr std::uint64_t kBits = 64;
  static constexpr std::uint64_t kWords = 1024;

  [[nodiscard]] std::uint64_t slot_at(std::int64_t time) const {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<double>(time) * slots_per_ps_));
  }
  [[nodiscard]] std::uint64_t taken(std::uint64_t word) const {
    return word < first_word_ + kWords ? words_[word % kWords] : 0;
  }
  void forget_words(std::uint64_t word) {
    const std::uint64_t end = std::min(word, first_word_ + kWords);
    for (; first_word_ < end; ++first_word_) {
      words_[first_word_ % kWords] = 0;
    }
    first_word_ = word;
  }

  std::int64_t slot_;
  double slots_per_ps_;
  std::uint64_t first_word_ = 0;                                           ///< what lies before is forgotten
  std::vector<std::uint64_t> words_ = std::vector<std::uint64_t>(kWords);  ///< bit per slot taken, a ring
};

}  // namespace kvsim::model
