// SPDX-License-Identifier: Apache-2.0
#include "models/sram/sram_banks.h"

#include <algorithm>
#include <array>
#include <bit>

#include "configs/error/error.h"

namespace kvsim::model {

SramBanks::SramBanks(const config::SramSpec& spec)
    : size_(spec.size.count()),
      banks_(spec.banks),
      ports_(spec.ports),
      word_(spec.word.count()),
      interleave_(spec.interleave.count()),
      used_(static_cast<std::size_t>(spec.banks)) {
  check(banks_ >= 1 && ports_ >= 1 && word_ >= 1 && interleave_ % word_ == 0,
        "an SRAM has banks of whole words");
}

std::int64_t SramBanks::begin(const SramRun& run) {
  check(run.vectors >= 1 && run.lanes >= 1 && run.lanes <= kMaxLanes, "a run has vectors of lanes");
  const std::int64_t vectors = (run.vectors - 1) * run.vector_stride;
  const std::int64_t lanes = (run.lanes - 1) * run.lane_stride;
  const std::int64_t low =
      run.address + std::min<std::int64_t>(vectors, 0) + std::min<std::int64_t>(lanes, 0);
  const std::int64_t high =
      run.address + std::max<std::int64_t>(vectors, 0) + std::max<std::int64_t>(lanes, 0);
  check(low >= 0 && high < size_, "a run stays within the SRAM");
  active_.push_back({.run = run, .name = names_, .alone_is_free = conflict_free(run)});
  next_vector(active_.back());
  return names_++;
}

/// With words interleaved, another first word only turns the pattern of banks, so one vector tells of all.
bool SramBanks::conflict_free(const SramRun& run) const {
  if (interleave_ != word_ || run.address % word_ != 0 || run.vector_stride % word_ != 0 ||
      run.lane_stride % word_ != 0 || run.lane_stride == 0) {
    return false;
  }
  std::array<std::int64_t, kMaxLanes> banks{};
  for (std::int64_t lane = 0; lane < run.lanes; ++lane) {
    banks[static_cast<std::size_t>(lane)] = bank_of(
        run.address + std::max<std::int64_t>(0, -run.lane_stride) * run.lanes + lane * run.lane_stride);
  }
  const auto end = banks.begin() + run.lanes;
  std::sort(banks.begin(), end);
  for (std::int64_t lane = ports_; lane < run.lanes; ++lane) {
    if (banks[static_cast<std::size_t>(lane)] == banks[static_cast<std::size_t>(lane - ports_)]) {
      return false;
    }
  }
  return true;
}

void SramBanks::next_vector(Active& active) const {
  active.waiting =
      active.run.lanes == kMaxLanes ? ~std::uint64_t{0} : (std::uint64_t{1} << active.run.lanes) - 1;
  active.waited = false;
}

SramCycle SramBanks::earliest_end() const {
  SramCycle least = active_.front().run.vectors;
  for (const Active& a : active_) {
    least = std::min(least, a.run.vectors - a.vector);
  }
  return now_ + least;
}

void SramBanks::run_to(SramCycle now) {
  check(now >= now_, "time does not go back");
  while (now_ < now && !active_.empty()) {
    Active& only = active_.front();
    if (active_.size() == 1 && only.alone_is_free && !only.waited) {
      const std::int64_t vectors = std::min(now - now_, only.run.vectors - only.vector);
      only.vector += vectors;
      counters_.words += vectors * only.run.lanes;
      now_ += vectors;
    } else {
      cycle();
      ++now_;
    }
    retire();
  }
  now_ = now;
}

void SramBanks::cycle() {
  std::fill(used_.begin(), used_.end(), 0);
  ++turn_;
  for (std::size_t i = 0; i < active_.size(); ++i) {
    serve(active_[(turn_ + i) % active_.size()]);
  }
}

/// As many lanes as find a port. A word that one of them reads serves all that read it.
void SramBanks::serve(Active& a) {
  std::array<std::int64_t, kMaxLanes> read;
  std::size_t reads = 0;
  for (std::uint64_t left = a.waiting; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const std::int64_t word =
        (a.run.address + a.vector * a.run.vector_stride + lane * a.run.lane_stride) / word_;
    const std::uint64_t bit = std::uint64_t{1} << lane;
    const auto end = read.begin() + static_cast<std::ptrdiff_t>(reads);
    if (a.run.access == trace::Access::read && std::find(read.begin(), end, word) != end) {
      ++counters_.broadcasts;
    } else if (std::int64_t& used = used_[static_cast<std::size_t>(bank_of(word * word_))]; used < ports_) {
      ++used;
      read[reads++] = word;
    } else {
      continue;
    }
    a.waiting &= ~bit;
    ++counters_.words;
  }
  if (a.waiting == 0) {
    ++a.vector;
    next_vector(a);
    return;
  }
  counters_.conflicts += a.waited ? 0 : 1;
  ++counters_.conflict_cycles;
  a.waited = true;
}

void SramBanks::retire() {
  std::erase_if(active_, [&](const Active& a) {
    const bool ends = a.vector == a.run.vectors;
    if (ends) {
      ended_.push({a.name, now_});
    }
    return ends;
  });
}

}  // namespace kvsim::model
