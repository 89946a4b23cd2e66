// SPDX-License-Identifier: Apache-2.0
// The way from engines to a serial PSRAM and back: one command for each line, in the order in which they
// come.
#pragma once

#include <cstdint>
#include <deque>

#include "configs/spec/device_spec.h"
#include "models/dram/clock_timing.h"
#include "models/memory_path/fabric_cap.h"
#include "models/memory_path/memory_path.h"
#include "models/psram/psram_player.h"
#include "models/stream/line_stream.h"

namespace kvsim::model {

/// As the controller serves lines in the order of their arrival, what becomes of one is known when it leaves
/// its engine. Priorities have no effect: there is nothing to choose from.
class PsramPath final : public MemoryPath {
 public:
  explicit PsramPath(const config::DeviceSpec& device);

  EngineStream& add_stream(const StreamWindow& window) override;
  Picoseconds run_until(Picoseconds limit) override;
  [[nodiscard]] MemoryCounters counters() const override { return counters_; }
  /// No states: no source tells a PSRAM's power.
  [[nodiscard]] DramActivity activity(Picoseconds now) override;
  [[nodiscard]] BusTime bus_time() override { return bus_time_; }

 private:
  void note(const LineStream& stream);
  void serve(LineStream& stream);

  config::InterconnectSpec interconnect_;
  CommandClock clock_;
  PsramBus bus_;
  std::int64_t bursts_;    ///< commands of a line
  Picoseconds line_time_;  ///< data of a line,
  Cycle read_lead_;        ///< from asking to the first data on an idle bus,
  Cycle write_lead_;       ///< and of a write
  FabricCap fabric_;

  std::deque<LineStream> streams_;
  Picoseconds bus_end_;                         ///< of the last data
  Picoseconds horizon_ = EngineStream::kNever;  ///< end of the earliest finished segment not yet reported
  BusTime bus_time_;
  MemoryCounters counters_;
};

}  // namespace kvsim::model
