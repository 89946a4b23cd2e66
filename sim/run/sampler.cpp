// SPDX-License-Identifier: Apache-2.0
#include "sim/run/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "configs/error/error.h"

namespace kvsim::sim {

namespace {

constexpr std::int64_t kFewest = 3;
constexpr std::int64_t kMost = 48;
/// The parts of an operator's time vary more than their sum, and average out over the operators of a token.
constexpr double kPartTolerance = 4;
/// Operators that take less than this share of the phase's mean operator need no closer interval than one
/// that takes this share: norms do not decide a token's time.
constexpr double kShort = 0.1;
/// Nor do the first operators of a step, which are few, decide it: their interval may be so many times wider.
constexpr double kRareTolerance = 4;

/// Quantile 0.975 of Student's t distribution for 1, 2, ... degrees of freedom; beyond the table 1.96 + 2.4 /
/// degrees, which is right to 0.001.
double student_t(std::int64_t degrees) {
  static constexpr std::array kTable = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                                        2.306,  2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
                                        2.131,  2.120, 2.110, 2.101, 2.093, 2.086};
  const auto i = static_cast<std::size_t>(degrees - 1);
  return i < kTable.size() ? kTable[i] : 1.96 + 2.4 / static_cast<double>(degrees);
}

/// Of whole numbers, each mixed in with a multiplication: 20 numbers of each extent go through it.
class Hash {
 public:
  Hash& operator<<(std::uint64_t value) {
    value_ = (value_ ^ value) * 0x9e3779b97f4a7c15ULL;  // odd: no two values meet
    value_ ^= value_ >> 32U;
    return *this;
  }
  Hash& operator<<(std::int64_t value) { return *this << static_cast<std::uint64_t>(value); }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

bool reads_kv(const Operation& operation) {
  return std::any_of(operation.threads.begin(), operation.threads.end(), [](const model::ThreadWork& thread) {
    return std::any_of(thread.extents.begin(), thread.extents.end(), [](const trace::Extent& e) {
      return e.kind == trace::Kind::kv && e.access == trace::Access::read;
    });
  });
}

}  // namespace

OperatorKind kind_of(const Operation& operation, Before before) {
  OperatorKind kind{.shape = 0, .size = 0, .grows = reads_kv(operation), .rare = before != Before::this_step};
  Hash hash;
  hash << static_cast<std::uint64_t>(before) << std::uint64_t{operation.mark.phase == trace::Phase::prefill}
       << std::uint64_t{kind.grows} << std::uint64_t{operation.threads.size()};
  if (kind.grows) {
    // The tiles of a longer context differ in number and in the size of the last: only who works is alike.
    hash << std::uint64_t{operation.mark.tokens};
    for (const model::ThreadWork& thread : operation.threads) {
      hash << std::uint64_t{!thread.extents.empty()};
    }
    kind.size = bytes_of(operation).as_double();
  } else {
    for (const model::ThreadWork& thread : operation.threads) {
      hash << thread.simd_operations << std::uint64_t{thread.extents.size()};
      for (const trace::Extent& e : thread.extents) {
        hash << e.row_bytes.count() << std::uint64_t{e.rows} << e.stride.count()
             << static_cast<std::uint64_t>(e.access) << static_cast<std::uint64_t>(e.kind);
      }
    }
  }
  kind.shape = hash.value();
  return kind;
}

void Samples::add(const Measurement& m) {
  ++count_;
  sum_ += m;
  const Measurement before = m + mean_ * -1.0;
  mean_ = sum_ * (1 / static_cast<double>(count_));
  squared_deviations_ += before.times(m + mean_ * -1.0);
  half_width_ = half_width(squared_deviations_.picoseconds());
}

double Samples::half_width(double squared_deviations) const {
  if (count_ < 2) {
    return 0;
  }
  const auto n = static_cast<double>(count_);
  return student_t(count_ - 1) * std::sqrt(squared_deviations / (n - 1) / n);
}

Estimate Samples::estimate() const {
  check(count_ > 0, "something was measured");
  return {.mean = mean_, .half_width = half_width_};
}

bool Samples::settled(double relative_error, double floor) const {
  if (count_ < kFewest) {
    return false;
  }
  if (count_ >= kMost) {
    return true;
  }
  const double allowed = relative_error * std::max(mean_.picoseconds(), floor);
  return half_width_ <= allowed && half_width(squared_deviations_.largest_part()) <= kPartTolerance * allowed;
}

bool Sampler::wants(const OperatorKind& kind, bool knot) const {
  const auto found = classes_.find(kind.shape);
  if (found == classes_.end()) {
    return true;
  }
  const auto samples = found->second.find(kind.size);
  if (samples == found->second.end()) {
    return knot || !kind.grows;
  }
  const double mean = phase_operators_ > 0 ? phase_time_ / phase_operators_ : 0;
  return !samples->second.settled(relative_error_ * (kind.rare ? kRareTolerance : 1), kShort * mean);
}

void Sampler::saw(const OperatorKind& kind) {
  phase_time_ += estimate(kind).mean.picoseconds();
  ++phase_operators_;
}

std::int64_t Sampler::count(const OperatorKind& kind) const {
  const auto found = classes_.find(kind.shape);
  if (found == classes_.end()) {
    return 0;
  }
  const auto samples = found->second.find(kind.size);
  return samples == found->second.end() ? 0 : samples->second.count();
}

Estimate Sampler::estimate(const OperatorKind& kind) const {
  const auto found = classes_.find(kind.shape);
  check(found != classes_.end(), "an operator of this kind was measured");
  const std::map<double, Samples>& sizes = found->second;
  auto above = sizes.lower_bound(kind.size);
  if (above != sizes.end() && above->first == kind.size) {
    return above->second.estimate();
  }
  if (sizes.size() == 1) {
    return sizes.begin()->second.estimate();
  }
  if (above == sizes.begin()) {
    ++above;
  } else if (above == sizes.end()) {
    --above;
  }
  const auto below = std::prev(above);
  const double at = (kind.size - below->first) / (above->first - below->first);
  const Estimate a = below->second.estimate();
  const Estimate b = above->second.estimate();
  return {.mean = Measurement::on_line(a.mean, b.mean, at),
          .half_width = std::abs(1 - at) * a.half_width + std::abs(at) * b.half_width};
}

}  // namespace kvsim::sim
