// SPDX-License-Identifier: Apache-2.0
// One channel on the bench: row runs in, commands and data out.
#pragma once

#include <cstdint>
#include <vector>

#include "configs/spec/device_spec.h"
#include "models/dram/channel.h"

namespace kvsim::model::testing {

class ChannelBench {
 public:
  explicit ChannelBench(const config::DeviceSpec& device, std::uint16_t max_bursts = 1);
  ChannelBench(const ChannelBench&) = delete;  // the controller points to the log
  ChannelBench& operator=(const ChannelBench&) = delete;
  ~ChannelBench() = default;

  /// Adds a run and returns its tag: runs are numbered in the order of their adding.
  std::uint32_t add(RowRun run);
  std::uint32_t read(Cycle arrival, std::uint16_t bank, std::uint32_t row, std::uint16_t bursts = 1);
  std::uint32_t write(Cycle arrival, std::uint16_t bank, std::uint32_t row, std::uint16_t bursts = 1);
  /// Serves all that was added. A controller that stops making progress fails a check.
  void run();
  /// What ranks do by themselves until then, after all that was added.
  void idle_until(Cycle time) { controller_.idle_until(time); }

  [[nodiscard]] DramActivity activity(Cycle until) const { return controller_.activity(until); }
  [[nodiscard]] const ClockTiming& timing() const { return timing_; }
  [[nodiscard]] const ChannelCounters& counters() const { return controller_.counters(); }
  [[nodiscard]] const std::vector<Served>& served() const { return served_; }
  [[nodiscard]] const std::vector<IssuedCommand>& log() const { return log_; }
  /// The first service of the run with this tag.
  [[nodiscard]] const Served& served(std::uint32_t tag) const;
  /// Tags in the order in which their runs were served to the end.
  [[nodiscard]] std::vector<std::uint32_t> order() const;
  /// Clocks of all commands of a kind.
  [[nodiscard]] std::vector<Cycle> clocks(Command command) const;

 private:
  ClockTiming timing_;
  ChannelController controller_;
  std::vector<Served> served_;
  std::vector<IssuedCommand> log_;
  std::uint32_t runs_ = 0;
};

/// `device` without refresh.
[[nodiscard]] config::DeviceSpec without_refresh(config::DeviceSpec device);

}  // namespace kvsim::model::testing
