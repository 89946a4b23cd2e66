// SPDX-License-Identifier: Apache-2.0
#include "models/testing/channel_bench.h"

#include <algorithm>

#include "configs/error/error.h"

namespace kvsim::model::testing {

ChannelBench::ChannelBench(const config::DeviceSpec& device, std::uint16_t max_bursts)
    : timing_(clock_timing(device.dram, device.controller.turnaround)),
      controller_(device.dram, device.controller, max_bursts) {
  controller_.log_commands(&log_);
}

std::uint32_t ChannelBench::add(RowRun run) {
  run.tag = runs_++;
  controller_.add(run);
  return run.tag;
}

std::uint32_t ChannelBench::read(Cycle arrival, std::uint16_t bank, std::uint32_t row, std::uint16_t bursts) {
  return add({.arrival = arrival, .row = row, .bank = bank, .bursts = bursts, .access = trace::Access::read});
}

std::uint32_t ChannelBench::write(Cycle arrival, std::uint16_t bank, std::uint32_t row,
                                  std::uint16_t bursts) {
  return add(
      {.arrival = arrival, .row = row, .bank = bank, .bursts = bursts, .access = trace::Access::write});
}

void ChannelBench::run() {
  constexpr int kStuck = 1000;  // steps without a command
  int steps = 0;
  std::size_t commands = log_.size();
  while (controller_.next_time() != ChannelController::kNever) {
    Served served;
    if (controller_.step(served)) {
      served_.push_back(served);
    }
    steps = log_.size() == commands ? steps + 1 : 0;
    commands = log_.size();
    check(steps < kStuck, "the controller makes progress");
  }
}

const Served& ChannelBench::served(std::uint32_t tag) const {
  const auto found =
      std::find_if(served_.begin(), served_.end(), [&](const Served& served) { return served.tag == tag; });
  check(found != served_.end(), "the run was served");
  return *found;
}

std::vector<std::uint32_t> ChannelBench::order() const {
  std::vector<std::uint32_t> tags;
  for (const Served& served : served_) {
    if (served.last) {
      tags.push_back(served.tag);
    }
  }
  return tags;
}

std::vector<Cycle> ChannelBench::clocks(Command command) const {
  std::vector<Cycle> clocks;
  for (const IssuedCommand& issued : log_) {
    if (issued.command == command) {
      clocks.push_back(issued.clock);
    }
  }
  return clocks;
}

config::DeviceSpec without_refresh(config::DeviceSpec device) {
  device.controller.refresh = config::RefreshMode::none;
  return device;
}

}  // namespace kvsim::model::testing
