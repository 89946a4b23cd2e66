// SPDX-License-Identifier: Apache-2.0
#include "models/memory_path/burst_path.h"

#include <algorithm>
#include <utility>

#include "configs/error/error.h"

namespace kvsim::model {

using trace::Access;

BurstPath::BurstPath(const config::DeviceSpec& device)
    : interconnect_(device.interconnect),
      clock_(command_clock(device.dram)),
      map_(device.controller.mapping, device.dram.banks),
      burst_bytes_(burst_bytes(device.dram).count()),
      line_bursts_(static_cast<std::uint16_t>(kLineBytes / burst_bytes_)),
      line_time_(clock_.time(clock_timing(device.dram, true).burst * kLineBytes / burst_bytes_)),
      fabric_line_time_(Bytes(kLineBytes) / device.interconnect.bandwidth),
      fabric_(device.interconnect, line_time_.count()) {
  for (std::int64_t c = 0; c < device.controller.channels; ++c) {
    channels_.push_back({.controller = ChannelController(device.dram, device.controller, 1)});
    next_step_.push_back(LineStream::kNever);
    bus_time_.channels = device.controller.channels;
  }
}

EngineStream& BurstPath::add_stream(const StreamWindow& window) {
  check(streams_.size() < kMaxStreams, "at most 64 streams");
  next_issue_.push_back(LineStream::kNever);
  return streams_.emplace_back(window);
}

Picoseconds BurstPath::run_until(Picoseconds limit) {
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    look_at(i);
  }
  while (true) {
    const auto stream = std::min_element(next_issue_.begin(), next_issue_.end());
    const auto channel = std::min_element(next_step_.begin(), next_step_.end());
    const Picoseconds issue_time = stream == next_issue_.end() ? LineStream::kNever : *stream;
    const Picoseconds first = std::min(issue_time, *channel);
    // Stores that memory has yet to take keep no engine waiting: they go on when time does.
    const bool waited_for = busy_ != 0 || horizon_ != LineStream::kNever;
    if (!waited_for || first == LineStream::kNever || first >= horizon_) {
      return std::exchange(horizon_, LineStream::kNever);
    }
    if (first >= limit) {
      return limit;
    }
    now_ = std::max(now_, first);
    fabric_.forget_before(now_.count());
    if (*channel <= issue_time) {
      step(static_cast<std::size_t>(channel - next_step_.begin()));
    } else {
      issue(static_cast<std::size_t>(stream - next_issue_.begin()));
    }
  }
}

/// Takes note of when a stream goes on, and of segments that it has finished.
void BurstPath::look_at(std::size_t stream) {
  const LineStream& s = streams_[stream];
  next_issue_[stream] = s.next_issue();
  const std::uint64_t bit = std::uint64_t{1} << stream;
  busy_ = s.idle() ? busy_ & ~bit : busy_ | bit;
  if (!s.finished().empty()) {
    horizon_ = std::min(horizon_, s.finished().front());
  }
}

void BurstPath::issue(std::size_t stream) {
  const Cycle arrival = clock_.cycle_at(next_issue_[stream] + interconnect_.request_latency);
  const LineRequest request = streams_[stream].issue();
  look_at(stream);
  if (free_tags_.empty()) {
    free_tags_.push_back(static_cast<std::uint32_t>(in_flight_.size()));
    in_flight_.emplace_back();
  }
  const std::uint32_t tag = free_tags_.back();
  free_tags_.pop_back();
  in_flight_[tag] = {
      .stream = static_cast<std::uint32_t>(stream), .slot = request.slot, .owner = request.owner};
  const DramPlace place = map_.place(request.address);
  const std::size_t channel = place.channel.pos();
  channels_[channel].controller.add({.arrival = arrival,
                                     .tag = tag,
                                     .row = place.row.value(),
                                     .bank = static_cast<std::uint16_t>(place.bank),
                                     .bursts = line_bursts_,
                                     .access = request.access,
                                     .priority = streams_[stream].priority()});
  next_step_[channel] = clock_.time(channels_[channel].controller.next_time());
}

void BurstPath::step(std::size_t channel) {
  Served served;
  ChannelState& c = channels_[channel];
  if (c.controller.step(served)) {
    deliver(served, c);
  }
  const Cycle next = c.controller.next_time();
  next_step_[channel] = next == ChannelController::kNever ? LineStream::kNever : clock_.time(next);
}

void BurstPath::deliver(const Served& served, ChannelState& channel) {
  InFlight& line = in_flight_[served.tag];
  const Picoseconds start = clock_.time(served.data_start);
  const Picoseconds end = clock_.time(served.data_end);
  // The bus stood idle before these beats, while the line waited or before it came.
  const Picoseconds gap = start - std::max(channel.bus_end, std::min(start, clock_.time(served.unhindered)));
  bus_time_.beats.add(line.owner, end - start);
  note_gap(served, channel.bus_end, start, gap);
  channel.bus_end = end;
  if (!line.begun) {
    line.begun = true;
    note_wait(served, gap, line);
  }
  (served.access == Access::read ? read_ : written_) += Bytes(served.bursts * burst_bytes_);
  if (!served.last) {
    return;
  }
  free_tags_.push_back(served.tag);
  LineStream& stream = streams_[line.stream];
  if (served.access == Access::write) {
    stream.taken(line.slot, end + Picoseconds(fabric_.late((end - line_time_).count())));
  } else {
    stream.arrived(line.slot, delivery(line, end));
  }
  look_at(line.stream);
}

/// The bus stood idle for the sake of the oldest request that waited.
void BurstPath::note_gap(const Served& served, Picoseconds bus_end, Picoseconds start, Picoseconds gap) {
  if (served.older_unhindered != Served::kNoOlder) {
    const Picoseconds since = std::max(bus_end, std::min(start, clock_.time(served.older_unhindered)));
    if (start - since >= gap) {
      bus_time_.gaps.add(served.older_held_by, start - since);
      return;
    }
  }
  bus_time_.gaps.add(served.held_by, gap);
}

/// What the line waited for before its first beat: its bank until that was ready, then other data while the
/// bus was busy, or what kept the bus idle.
void BurstPath::note_wait(const Served& served, Picoseconds gap, InFlight& line) const {
  const Picoseconds unhindered = clock_.time(served.unhindered);
  line.waited = std::max(Picoseconds(), clock_.time(served.data_start) - unhindered);
  const Picoseconds bank = clock_.time(served.ready + served.data_start - served.column) - unhindered;
  line.held = std::min(line.waited, bank > Picoseconds() ? bank : gap);
  line.held_by = bank > Picoseconds() ? served.row_owner : served.held_by;
}

Delivery BurstPath::delivery(const InFlight& line, Picoseconds end) {
  // The interconnect passes data on as it comes: the last of it leaves when it has come, or when all that
  // came before has been passed on.
  const Picoseconds unqueued = end + interconnect_.response_latency;
  const Picoseconds begins = unqueued - line_time_;
  fabric_free_ = std::max(fabric_free_, begins) + fabric_line_time_;
  const Picoseconds arrival = std::max(unqueued, fabric_free_) + Picoseconds(fabric_.late(begins.count()));
  check(arrival >= now_, "data arrives after everything that was decided before it");

  const Picoseconds queued = arrival - unqueued;
  const bool fabric_holds = queued > line.held;  // one owner for each delivery: what held it longest

  return {.arrival = arrival,
          .behind_data = line.waited - line.held + (fabric_holds ? Picoseconds() : queued),
          .held = fabric_holds ? queued : line.held,
          .held_by = fabric_holds ? Owner::queue : line.held_by};
}

MemoryCounters BurstPath::counters() const {
  MemoryCounters sum{.read = read_, .written = written_};
  for (const ChannelState& channel : channels_) {
    const ChannelCounters& c = channel.controller.counters();
    sum.row_misses += c.row_misses;
    sum.row_conflicts += c.row_conflicts;
    sum.row_hits += c.reads + c.writes - c.row_misses - c.row_conflicts;
    sum.activates += c.activates;
    sum.refreshes += c.refreshes;
  }
  return sum;
}

DramActivity BurstPath::activity(Picoseconds now) {
  DramActivity sum;
  const Cycle until = clock_.cycle_at(now);
  for (ChannelState& channel : channels_) {
    channel.controller.idle_until(until - 1);
    sum += channel.controller.activity(until);
  }
  return sum;
}

void BurstPath::log_commands(Channel channel, std::vector<IssuedCommand>* log) {
  channels_[channel.pos()].controller.log_commands(log);
}

}  // namespace kvsim::model
