// SPDX-License-Identifier: Apache-2.0
// The way from engines to DRAM and back, burst by burst.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "configs/spec/device_spec.h"
#include "configs/units/quantity.h"
#include "models/accounting/time_account.h"
#include "models/dram/address_map.h"
#include "models/dram/channel.h"
#include "models/memory_path/fabric_cap.h"
#include "models/memory_path/memory_path.h"
#include "models/stream/line_stream.h"

namespace kvsim::model {

/// Event loop over streams and channels in plain C++. It takes lines from the attached streams, carries
/// the requests to their channel and their data back, and notes what the buses did. Time order holds across
/// all streams and channels, so what a stream may see never depends on how far another has been simulated.
class BurstPath final : public MemoryPath {
 public:
  explicit BurstPath(const config::DeviceSpec& device);

  EngineStream& add_stream(const StreamWindow& window) override;
  Picoseconds run_until(Picoseconds limit) override;
  [[nodiscard]] MemoryCounters counters() const override;
  [[nodiscard]] DramActivity activity(Picoseconds now) override;
  [[nodiscard]] BusTime bus_time() override { return bus_time_; }
  /// Records the commands of `channel` into `log` (not owned; null stops it).
  void log_commands(Channel channel, std::vector<IssuedCommand>* log);

 private:
  struct InFlight {
    std::uint32_t stream = 0;
    std::uint32_t slot = 0;
    Owner owner = Owner::other_data;
    bool begun = false;    ///< some of its data beats have been
    Picoseconds waited{};  ///< in the controller, before its first beat,
    Picoseconds held{};    ///< and of that not behind others' data, but
    Owner held_by = Owner::queue;
  };
  struct ChannelState {
    ChannelController controller;
    Picoseconds bus_end{};  ///< of the last data beats
  };

  void look_at(std::size_t stream);
  void issue(std::size_t stream);
  void step(std::size_t channel);
  void deliver(const Served& served, ChannelState& channel);
  void note_gap(const Served& served, Picoseconds bus_end, Picoseconds start, Picoseconds gap);
  void note_wait(const Served& served, Picoseconds gap, InFlight& line) const;
  [[nodiscard]] Delivery delivery(const InFlight& line, Picoseconds end);

  config::InterconnectSpec interconnect_;
  CommandClock clock_;
  AddressMap map_;
  std::int64_t burst_bytes_;
  std::uint16_t line_bursts_;
  Picoseconds line_time_;         ///< data beats of a line on its channel
  Picoseconds fabric_line_time_;  ///< a line on the interconnect
  FabricCap fabric_;

  std::deque<LineStream> streams_;
  std::vector<ChannelState> channels_;
  std::vector<Picoseconds> next_issue_;  ///< by stream,
  std::vector<Picoseconds> next_step_;   ///< and by channel
  std::vector<InFlight> in_flight_;
  std::vector<std::uint32_t> free_tags_;
  std::uint64_t busy_ = 0;  ///< bit per stream that is not idle
  Picoseconds now_;         ///< latest event; refreshes of idle banks are caught up with behind it
  Picoseconds fabric_free_;
  Picoseconds horizon_ = LineStream::kNever;  ///< end of the earliest finished segment not yet reported
  BusTime bus_time_;
  Bytes read_;
  Bytes written_;
};

}  // namespace kvsim::model
