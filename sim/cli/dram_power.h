// SPDX-License-Identifier: Apache-2.0
// `kvsim dram run --power-over-time`: the power of DRAM, interval by interval.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "models/dram/request_player.h"
#include "sim/cli/dram_setup.h"

namespace kvsim::sim {

/// CSV with a row per interval: its begin, and mW in all, by command, in the background, and by rail.
class PowerRecorder {
 public:
  /// Begins the file and has `player` sample. Throws UserError for a part without energy or a file that
  /// cannot be written.
  PowerRecorder(const DramSetup& setup, const std::string& path, Picoseconds interval,
                model::RequestPlayer& player);
  PowerRecorder(const PowerRecorder&) = delete;  // the player points to the samples
  PowerRecorder& operator=(const PowerRecorder&) = delete;
  ~PowerRecorder() = default;

  /// Writes what has been sampled.
  void flush();
  /// Writes the last, shorter interval.
  void finish(const model::PlayResult& result);

 private:
  void write(const model::DramActivity& until, Picoseconds time);

  const DramSetup& setup_;
  std::string path_;
  std::ofstream file_;
  Picoseconds interval_;
  std::vector<model::Rail> rails_;
  std::vector<model::DramActivity> samples_;
  model::DramActivity before_;
  Picoseconds from_;
};

}  // namespace kvsim::sim
