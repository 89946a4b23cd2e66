// SPDX-License-Identifier: Apache-2.0
// What the data buses and the reads spent their time on.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "models/dram/channel_types.h"

namespace kvsim::model {

/// Cycles of a data bus by use. Together they are all cycles there were.
struct BusCycles {
  std::int64_t data = 0;
  std::int64_t turnaround = 0;  ///< changing direction or rank,
  std::int64_t refresh = 0;     ///< waiting for a bank that refreshes or opens its row again after that,
  std::int64_t activate = 0;    ///< for a row to be closed and opened, activate windows included,
  std::int64_t command = 0;     ///< for the command bus or the bank group
  std::int64_t idle = 0;        ///< nothing was asked for

  BusCycles& operator+=(const BusCycles& other);
};

/// Cycles of a read from its place in the queue to its last beat; their sum is its latency.
struct ReadCycles {
  std::int64_t queue = 0;
  std::int64_t refresh = 0;    ///< waiting for its bank's refresh to end
  std::int64_t precharge = 0;  ///< its row's opening
  std::int64_t activate = 0;
  std::int64_t column = 0;  ///< read latency
  std::int64_t bus = 0;     ///< open row to read command, and the data beats

  ReadCycles& operator+=(const ReadCycles& other) {
    queue += other.queue;
    refresh += other.refresh;
    precharge += other.precharge;
    activate += other.activate;
    column += other.column;
    bus += other.bus;
    return *this;
  }
  [[nodiscard]] std::int64_t total() const { return queue + refresh + precharge + activate + column + bus; }
};

/// The parts of the read that `served` describes. Its row's opening counts from when its bank was asked.
[[nodiscard]] ReadCycles read_cycles(const Served& served, const ClockTiming& timing);

/// Counts of values in buckets a thirty-second of their value wide.
class Histogram {
 public:
  void add(std::int64_t value);
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] std::int64_t max() const { return max_; }
  /// Upper end of the bucket in which this share of all values is reached; 0 if there are none.
  [[nodiscard]] std::int64_t quantile(double share) const;

  struct Bucket {
    std::int64_t from;
    std::int64_t to;  ///< past the last value
    std::int64_t count;
  };
  /// By powers of two, the empty ones at both ends left out.
  [[nodiscard]] std::vector<Bucket> octaves() const;

 private:
  static constexpr int kFineBits = 5;
  static constexpr std::size_t kBuckets = (64 - kFineBits) << kFineBits;
  [[nodiscard]] static std::size_t bucket_of(std::int64_t value);
  [[nodiscard]] static std::int64_t lower_end(std::size_t bucket);

  std::array<std::int64_t, kBuckets> counts_{};
  std::int64_t count_ = 0;
  std::int64_t max_ = 0;
};

/// Keeps the account of one channel's data bus.
class BusAccount {
 public:
  explicit BusAccount(const ClockTiming& timing) : timing_(timing) {}
  void add(const Served& served);
  [[nodiscard]] Cycle end() const { return end_; }
  /// All cycles up to `until`.
  [[nodiscard]] BusCycles cycles(Cycle until) const;

 private:
  ClockTiming timing_;
  Cycle end_ = 0;
  BusCycles cycles_;
};

}  // namespace kvsim::model
