// SPDX-License-Identifier: Apache-2.0
// `kvsim dram run --power-over-time`: the power of DRAM, interval by interval.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/dram/request_player.h"
#include "sim/cli/dram_setup.h"
#include "traces/codec/output_file.h"

namespace kvsim::sim {

/// Below it an interval holds less than a burst, and its power says more of where commands are counted.
inline constexpr Picoseconds kShortestPowerInterval(10'000);

/// CSV with a row per interval: its begin, and mW in all, by command, in the background, and by rail. The
/// file is there when finish() has succeeded; without that nothing is left behind.
class PowerRecorder {
 public:
  /// Begins the file and has `player` sample. Throws UserError for a part without energy or a file that
  /// cannot be written.
  PowerRecorder(const DramSetup& setup, const std::string& path, Picoseconds interval,
                model::RequestPlayer& player);
  PowerRecorder(const PowerRecorder&) = delete;  // the player points to the samples
  PowerRecorder& operator=(const PowerRecorder&) = delete;
  ~PowerRecorder() = default;

  /// Writes what has been sampled. Throws UserError when that makes more rows than anything shows.
  void flush();
  /// Writes the last, shorter interval.
  void finish(const model::PlayResult& result);

 private:
  void write(const model::DramActivity& until, Picoseconds time);
  void write_text();

  const DramSetup& setup_;
  trace::OutputFile file_;
  std::string text_;  ///< not yet in the file
  std::int64_t rows_ = 0;
  Picoseconds interval_;
  std::vector<model::Rail> rails_;
  std::vector<model::DramActivity> samples_;
  model::DramActivity before_;
  Picoseconds from_;
};

}  // namespace kvsim::sim
