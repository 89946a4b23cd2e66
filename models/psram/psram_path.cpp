// SPDX-License-Identifier: Apache-2.0
#include "models/psram/psram_path.h"

#include <algorithm>
#include <utility>

#include "configs/error/error.h"

namespace kvsim::model {

using trace::Access;

namespace {

/// What a command takes before its first data.
Cycle lead(const config::DramPartSpec& part, Access access) {
  const PsramBus::Transfer first = PsramBus(part).transfer(0, access);
  return first.data_start - first.waited;
}

}  // namespace

PsramPath::PsramPath(const config::DeviceSpec& device)
    : interconnect_(device.interconnect),
      clock_(command_clock(device.dram)),
      bus_(device.dram),
      bursts_(std::max<std::int64_t>(1, kLineBytes / burst_bytes(device.dram).count())),
      line_time_(clock_.time(bursts_ * device.dram.burst_length / device.dram.transfers_per_clock)),
      read_lead_(lead(device.dram, Access::read)),
      write_lead_(lead(device.dram, Access::write)),
      fabric_(device.interconnect, line_time_.count()) {}

EngineStream& PsramPath::add_stream(const StreamWindow& window) {
  check(streams_.size() < kMaxStreams, "at most 64 streams");
  return streams_.emplace_back(window);
}

/// Takes note of segments that the stream has finished.
void PsramPath::note(const LineStream& stream) {
  if (!stream.finished().empty()) {
    horizon_ = std::min(horizon_, stream.finished().front());
  }
}

Picoseconds PsramPath::run_until(Picoseconds limit) {
  for (const LineStream& stream : streams_) {
    note(stream);
  }
  while (true) {
    const auto first = std::ranges::min_element(streams_, {}, &LineStream::next_issue);
    const Picoseconds time = first == streams_.end() ? EngineStream::kNever : first->next_issue();
    if (time == EngineStream::kNever || time >= horizon_) {
      return std::exchange(horizon_, EngineStream::kNever);
    }
    if (time >= limit) {
      return limit;
    }
    fabric_.forget_before(time.count());
    serve(*first);
    note(*first);
  }
}

/// Sends the stream's next line on its way, and tells at once what becomes of it.
void PsramPath::serve(LineStream& stream) {
  const Cycle asked = clock_.cycle_at(stream.next_issue() + interconnect_.request_latency);
  const LineRequest request = stream.issue();
  const bool reads = request.access == Access::read;
  const Picoseconds unhindered = clock_.time(asked + (reads ? read_lead_ : write_lead_));
  Delivery delivery;
  Picoseconds end;
  for (std::int64_t i = 0; i < bursts_; ++i) {
    const PsramBus::Transfer t = bus_.transfer(asked, request.access);
    const Picoseconds start = clock_.time(t.data_start);
    const Picoseconds refreshing = clock_.time(t.waited);
    end = clock_.time(t.data_end);
    const Picoseconds gap = start - std::max(bus_end_, std::min(start, unhindered));
    bus_time_.beats.add(request.owner, end - start);
    bus_time_.gaps.add(Owner::refresh, std::min(gap, refreshing));
    bus_time_.gaps.add(Owner::row, gap - std::min(gap, refreshing));
    if (i == 0) {
      delivery.held = refreshing;
      delivery.held_by = Owner::refresh;
      delivery.behind_data = std::max(Picoseconds(), start - unhindered - refreshing);
    }
    bus_end_ = end;
    ++counters_.row_misses;
  }
  (reads ? counters_.read : counters_.written) += Bytes(kLineBytes);
  if (!reads) {
    stream.taken(request.slot, end + Picoseconds(fabric_.late((end - line_time_).count())));
    return;
  }
  const Picoseconds there = end + interconnect_.response_latency;
  const Picoseconds late(fabric_.late((there - line_time_).count()));
  delivery.arrival = there + late;
  if (late > delivery.held) {  // one owner for each delivery: what held it longest
    delivery.held = late;
    delivery.held_by = Owner::queue;
  } else {
    delivery.behind_data += late;
  }
  stream.arrived(request.slot, delivery);
}

DramActivity PsramPath::activity(Picoseconds) {
  return {.reads = counters_.read.count() / kLineBytes * bursts_,
          .writes = counters_.written.count() / kLineBytes * bursts_};
}

}  // namespace kvsim::model
