// SPDX-License-Identifier: Apache-2.0
// The way from engines to DRAM and back in row trains.
#pragma once

#include <array>
#include <deque>
#include <vector>

#include "models/dram/address_map.h"
#include "models/dram/clock_timing.h"
#include "models/memory_path/fabric_cap.h"
#include "models/memory_path/memory_path.h"
#include "models/train/line_slots.h"
#include "models/train/row_state.h"
#include "models/train/slot_calendar.h"
#include "models/train/train_stream.h"
#include "models/train/train_timing.h"

namespace kvsim::model {

/// Books each group of lines on its channel's rows and data bus and on the interconnect when the engine asks
/// for it, and tells the engine at once when its lines arrive. The engine whose next line is the earliest
/// goes first, and goes on until it is a little ahead of the next one.
class TrainPath final : public MemoryPath {
 public:
  explicit TrainPath(const config::DeviceSpec& device);

  EngineStream& add_stream(const StreamWindow& window) override;
  Picoseconds run_until(Picoseconds limit) override;
  [[nodiscard]] MemoryCounters counters() const override;
  [[nodiscard]] DramActivity activity(Picoseconds now) override;
  [[nodiscard]] BusTime bus_time() override;

 private:
  /// Stores in the controller's write queue.
  struct Write {
    std::int64_t arrival = 0;
    DramPlace place;
    std::int64_t lines = 0;
    Owner owner = Owner::other_data;
    std::size_t stream = 0;
    std::uint64_t store = 0;
  };
  struct TrainChannel {
    ChannelRows rows;
    SlotCalendar bus;
    LineSlots commands;          ///< command bus, in clocks; of parts with bank groups
    std::vector<Write> writes;   ///< by age
    std::int64_t queued = 0;     ///< lines of writes
    std::int64_t last_read = 0;  ///< its last column command
  };
  /// Of reads, or of writes.
  struct Direction {
    std::int64_t latency = 0;
    std::int64_t to_precharge = 0;
    std::int64_t group_gap = 0;  ///< between bursts of one bank group
  };
  struct Stream {
    TrainStream window;
    AddressMap::Page page;
  };
  /// Where the beats of some lines lie.
  struct Beats {
    std::int64_t start = 0;
    std::int64_t end = 0;
    std::int64_t behind_data = 0;
    std::int64_t held = 0;
    Owner held_by = Owner::queue;
  };
  struct Request {
    std::int64_t lines = 0;
    trace::Access access = trace::Access::read;
    Owner owner = Owner::other_data;
    std::int64_t asked = 0;  ///< at the controller
  };
  void note(const TrainStream& stream);
  void serve(std::size_t index, std::int64_t limit);
  void read(Stream& stream, const LineGroup& group);
  void pass(std::int64_t lines, GroupDelivery& delivery);
  Beats book(TrainChannel& channel, const DramPlace& place, const Request& request);

  void write(std::size_t stream, const LineGroup& group);
  void drain(TrainChannel& channel, std::int64_t lines, std::int64_t time);
  bool drain_idle(std::int64_t time);
  bool drain_idle(TrainChannel& channel, std::int64_t until);
  void open_for_writes(TrainChannel& channel, std::int64_t time, std::int64_t until);
  struct Choice {
    std::size_t index = 0;
    std::int64_t time = 0;  ///< of its column command
  };
  [[nodiscard]] Choice first_ready(const TrainChannel& channel, std::int64_t time) const;
  void take(TrainChannel& channel, std::size_t index, std::int64_t time);

  [[nodiscard]] std::int64_t pass_commands(TrainChannel& channel, std::int64_t column, bool opens) const;
  [[nodiscard]] std::size_t lane_of(std::uint32_t bank, trace::Access access) const {
    return lanes_[2 * bank + (access == trace::Access::write ? 1 : 0)];
  }
  [[nodiscard]] std::int64_t booked_at_once(std::int64_t lines) const {
    return split_ ? t_.burst : lines * line_time_;
  }
  [[nodiscard]] std::int64_t at_controller(const LineGroup& group) const {
    return group.asked + request_latency_;
  }

  config::MemoryControllerSpec controller_;
  TrainTiming t_;
  AddressMap map_;
  std::int64_t bursts_per_line_;
  std::int64_t line_time_;        ///< data beats of a line
  std::int64_t request_latency_;  ///< half a clock longer than the interconnect's: the wait for a clock edge
  std::int64_t response_latency_;
  std::int64_t fabric_line_time_;  ///< a line on the interconnect
  bool split_;                     ///< bursts are booked one by one: other bank groups' come between
  CommandLengths lengths_;
  std::array<Direction, 2> directions_;
  std::vector<std::size_t> lanes_;  ///< of the data bus, by bank and direction

  std::deque<Stream> streams_;
  std::vector<std::int64_t> next_;  ///< by stream
  std::vector<TrainChannel> channels_;
  bool fabric_holds_;  ///< the interconnect passes less than the channels can give
  LineSlots fabric_;
  FabricCap clocked_fabric_;
  Picoseconds horizon_ = EngineStream::kNever;  ///< end of the earliest finished segment not yet reported
  std::int64_t floor_ = 0;                      ///< nothing reaches a controller before this any more
  std::int64_t writes_ = 0;                     ///< lines that wait in the controllers
  TimeAccount beats_;
  MemoryCounters counters_;
};

}  // namespace kvsim::model
