// SPDX-License-Identifier: Apache-2.0
// The jobs of fio on a storage device: so many requests in flight, each followed by the next.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/dram/play_statistics.h"
#include "models/storage/storage_device.h"
#include "traces/record/spread.h"

namespace kvsim::model {

enum class FioPattern : std::uint8_t { read, write, randread, randwrite };

struct FioSpec {
  FioPattern pattern = FioPattern::read;
  Bytes block{4096};
  std::int64_t depth = 1;    ///< requests in flight of each job
  std::int64_t jobs = 1;     ///< threads
  Bytes size = {};           ///< of the range; a job ends when all jobs have moved so much,
  Picoseconds runtime = {};  ///< or after so long
  Picoseconds ramp = {};     ///< what ends before it is not counted
  std::uint64_t seed = 1;
};

/// Times of one kind, in nanoseconds as fio has them.
struct FioLatency {
  Histogram histogram;
  std::int64_t least = 0;
  double sum = 0;
  double squares = 0;

  void add(Picoseconds time);
  [[nodiscard]] double mean() const;
  [[nodiscard]] double deviation() const;
};

struct FioResult {
  std::int64_t ios = 0;
  Bytes moved = {};
  Picoseconds elapsed;
  FioLatency submission;  ///< up to the issue; of one request in flight there is none,
  FioLatency completion;  ///< from there, or from the call
  FioLatency whole;
  StorageStatus status = StorageStatus::ok;  ///< the first that was not ok, with which the jobs end,
  Bytes place = {};                          ///< and where
};

class FioJob {
 public:
  /// The range must have been laid out if it is to be read.
  FioJob(StorageDevice& device, const FioSpec& spec);

  /// Goes on for a while. False when all is done.
  [[nodiscard]] bool take_batch();
  [[nodiscard]] const FioResult& result() const { return result_; }

 private:
  void submit(std::size_t job, Picoseconds when);
  void count(const StorageCompletion& done);
  [[nodiscard]] Bytes next_offset(std::size_t job);

  StorageDevice& device_;
  FioSpec spec_;
  std::int64_t blocks_;
  std::vector<std::int64_t> position_;  ///< of each job, in blocks
  trace::SplitMix64 random_;
  std::int64_t left_;  ///< requests to submit
  FioResult result_;
};

}  // namespace kvsim::model
