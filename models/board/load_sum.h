// SPDX-License-Identifier: Apache-2.0
// Loads of a clock domain, averaged over the time between two looks at them.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "configs/units/quantity.h"

namespace kvsim::model {

class LoadSum {
 public:
  void add_cores(double busy, double busiest, Picoseconds time) {
    busy_ += busy * seconds(time);
    busiest_ += busiest * seconds(time);
    time_ += time;
  }
  /// `peak` is what a channel can move.
  void add_channels(std::span<const double> loads, BytesPerSecond peak, Picoseconds time) {
    channels_.resize(std::max(channels_.size(), loads.size()));
    for (std::size_t i = 0; i < loads.size(); ++i) {
      channels_[i].busy += loads[i] * seconds(time);
      channels_[i].bytes += loads[i] * peak.count() * seconds(time);
    }
    time_ += time;
  }

  [[nodiscard]] double busy() const { return mean(busy_); }
  /// Of cores, or of channels.
  [[nodiscard]] double busiest() const {
    double most = busiest_;
    for (const Channel& channel : channels_) {
      most = std::max(most, channel.busy);
    }
    return mean(most);
  }
  [[nodiscard]] BytesPerSecond bandwidth() const {
    double most = 0;
    for (const Channel& channel : channels_) {
      most = std::max(most, channel.bytes);
    }
    return BytesPerSecond(mean(most));
  }
  void clear() { *this = LoadSum(); }

 private:
  struct Channel {
    double busy = 0;  ///< seconds
    double bytes = 0;
  };

  [[nodiscard]] double mean(double sum) const { return time_.count() == 0 ? 0 : sum / seconds(time_); }

  double busy_ = 0;
  double busiest_ = 0;
  std::vector<Channel> channels_;
  Picoseconds time_;
};

}  // namespace kvsim::model
