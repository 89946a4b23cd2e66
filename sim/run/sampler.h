// SPDX-License-Identifier: Apache-2.0
// Operators that are alike are measured a few times and then reused, each with its interval.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "sim/run/measurement.h"
#include "sim/run/operation.h"

namespace kvsim::sim {

/// What ran before an operator, as far back as the last-level cache remembers: the lines that this
/// has modified it pushes out.
enum class Before : std::uint8_t { this_step, another_step, another_phase };

/// Names operators that are alike: prefill or not, same work of every thread, wherever in memory, after work
/// of the same sort. `size` is what may differ: for operators that read the KV cache, the bytes they touch,
/// which grow with the context.
struct OperatorKind {
  std::uint64_t shape = 0;
  double size = 0;
  bool grows = false;
  bool rare = false;  ///< the first few of a step
};
[[nodiscard]] OperatorKind kind_of(const Operation& operation, Before before);

/// A mean with the half-width of its 95 % confidence interval (Student's t).
struct Estimate {
  Measurement mean;
  double half_width = 0;  ///< picoseconds
};

/// Measurements of operators of one kind and size.
class Samples {
 public:
  void add(const Measurement& m);
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] Estimate estimate() const;
  /// Enough of them for an interval of at most `relative_error` of the mean time, or of `floor` picoseconds
  /// if that is more; and for the owners' parts of the time a few times that.
  [[nodiscard]] bool settled(double relative_error, double floor) const;

 private:
  [[nodiscard]] double half_width(double squared_deviations) const;

  std::int64_t count_ = 0;
  Measurement sum_;
  Measurement mean_;
  Measurement squared_deviations_;  ///< their sums, by Welford's method
  double half_width_ = 0;           ///< of the time
};

class Sampler {
 public:
  explicit Sampler(double relative_error) : relative_error_(relative_error) {}

  /// A phase begins: operators take other times.
  void begin_phase() { phase_time_ = phase_operators_ = 0; }
  /// An operator of this kind passed; it was measured at some size.
  void saw(const OperatorKind& kind);
  /// Whether an operator of this kind has to be measured. At a `knot` also one that grows; between knots
  /// those are interpolated.
  [[nodiscard]] bool wants(const OperatorKind& kind, bool knot) const;
  void add(const OperatorKind& kind, const Measurement& m) { classes_[kind.shape][kind.size].add(m); }
  [[nodiscard]] std::int64_t count(const OperatorKind& kind) const;
  /// Precondition: the kind was measured at some size. Linear between the measured sizes next to its own, and
  /// beyond the outermost two.
  [[nodiscard]] Estimate estimate(const OperatorKind& kind) const;

 private:
  double relative_error_;
  double phase_time_ = 0;  ///< picoseconds of the operators of this phase so far,
  double phase_operators_ = 0;
  std::unordered_map<std::uint64_t, std::map<double, Samples>> classes_;
};

}  // namespace kvsim::sim
