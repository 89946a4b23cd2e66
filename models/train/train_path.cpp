// SPDX-License-Identifier: Apache-2.0
#include "models/train/train_path.h"

#include <algorithm>
#include <utility>

#include "configs/error/error.h"
#include "models/dram/clock_timing.h"

namespace kvsim::model {

using trace::Access;

namespace {

/// How far an engine may run ahead of the one with the next earliest line: a few lines' time, so that most of
/// what is asked for before a line has been booked before it.
constexpr std::int64_t kAhead = 40'000;
/// Lines that travel together at most.
constexpr std::int64_t kGroupLines = 8;

std::vector<std::int64_t> distances(const TrainTiming& t, std::size_t ranks, std::size_t groups) {
  struct Lane {
    std::size_t rank, group;
    bool write;
  };
  std::vector<Lane> lanes;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (const bool write : {false, true}) {
      for (std::size_t group = 0; group < groups; ++group) {
        lanes.push_back({rank, group, write});
      }
    }
  }
  std::vector<std::int64_t> all;
  for (const Lane& a : lanes) {
    for (const Lane& b : lanes) {
      const bool same_group = a.rank == b.rank && a.group == b.group;
      std::int64_t gap = a.rank == b.rank ? 0 : t.rank_switch;
      if (a.write == b.write && same_group && groups > 1) {
        gap = std::max(gap, a.write ? t.group_gap_write : t.group_gap);
      } else if (!a.write && b.write) {
        gap = std::max(gap, t.read_to_write);
      } else if (a.write && !b.write && a.rank == b.rank) {
        gap = same_group ? std::max(t.write_to_read, t.write_to_read_L) : t.write_to_read;
      }
      all.push_back(gap);
    }
  }
  return all;
}

}  // namespace

TrainPath::TrainPath(const config::DeviceSpec& device)
    : interconnect_(device.interconnect),
      controller_(device.controller),
      t_(train_timing(device.dram, device.controller)),
      map_(device.controller.mapping, device.dram.banks),
      bursts_per_line_(std::max<std::int64_t>(1, kLineBytes / burst_bytes(device.dram).count())),
      line_time_(bursts_per_line_ * t_.burst),
      fabric_line_time_((Bytes(kLineBytes) / device.interconnect.bandwidth).count()),
      split_(device.dram.bank_groups > 1),
      fabric_({0}, 1, fabric_line_time_) {
  const auto ranks = static_cast<std::size_t>(device.controller.ranks);
  const auto groups = static_cast<std::size_t>(device.dram.bank_groups);
  const auto banks = static_cast<std::size_t>(device.dram.banks);
  for (std::size_t bank = 0; bank < ranks * banks; ++bank) {
    const std::size_t group = bank % banks / (banks / groups);
    for (const std::size_t direction : {0, 1}) {
      lanes_.push_back((bank / banks * 2 + direction) * groups + group);
    }
  }
  for (std::int64_t c = 0; c < device.controller.channels; ++c) {
    channels_.push_back({.rows = ChannelRows(t_, device.dram, device.controller),
                         .bus = SlotCalendar(distances(t_, ranks, groups), ranks * 2 * groups, t_.burst),
                         .writes = {}});
  }
}

EngineStream& TrainPath::add_stream(const StreamWindow& window) {
  check(streams_.size() < kMaxStreams, "at most 64 streams");
  next_.push_back(TrainStream::kNotYet);
  return streams_.emplace_back(window, TrainStream::Groups{.granule = map_.granule(),
                                                           .most_lines = split_ ? 1 : kGroupLines,
                                                           .spread = Picoseconds(line_time_)});
}

Picoseconds TrainPath::run() {
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    note(streams_[i]);
    next_[i] = streams_[i].next();
  }
  while (true) {
    std::size_t first = 0;
    std::int64_t second = TrainStream::kNotYet;
    for (std::size_t i = 1; i < next_.size(); ++i) {
      if (next_[i] < next_[first]) {
        second = next_[first];
        first = i;
      } else {
        second = std::min(second, next_[i]);
      }
    }
    const std::int64_t time = next_.empty() ? TrainStream::kNotYet : next_[first];
    if (drain_idle(time)) {
      continue;
    }
    if (time >= horizon_.count()) {
      return std::exchange(horizon_, EngineStream::kNever);
    }
    floor_ = time + interconnect_.request_latency.count();
    const bool writes =
        std::any_of(channels_.begin(), channels_.end(), [](const TrainChannel& c) { return c.queued > 0; });
    serve(first, writes ? time : second == TrainStream::kNotYet ? second : second + kAhead);
  }
}

/// Takes note of segments that the stream has finished.
void TrainPath::note(const TrainStream& stream) {
  if (!stream.finished().empty()) {
    horizon_ = std::min(horizon_, stream.finished().front());
  }
}

/// Serves the stream's lines that are asked for up to `limit`, or until it finishes a segment before.
void TrainPath::serve(std::size_t index, std::int64_t limit) {
  TrainStream& stream = streams_[index];
  do {
    const LineGroup group = stream.take();
    if (group.access == Access::read) {
      read(stream, group);
    } else {
      write(index, group);
    }
    note(stream);
  } while (stream.next() <= limit && stream.next() < horizon_.count());
  next_[index] = stream.next();
}

void TrainPath::read(TrainStream& stream, const LineGroup& group) {
  const DramPlace place = map_.place(group.address);
  TrainChannel& channel = channels_[place.channel.pos()];
  // A request waits for the next clock edge: half a clock on average.
  const std::int64_t asked = group.asked + interconnect_.request_latency.count() + t_.clock / 2;
  const Beats beats = book(channel, place, {group.lines, group.access, group.owner, asked});
  counters_.read += Bytes(group.lines * kLineBytes);

  // The interconnect passes data on as it comes, or when all that came before has been passed on.
  const std::int64_t begins = beats.start + interconnect_.response_latency.count();
  const std::int64_t ends = beats.end + interconnect_.response_latency.count();
  fabric_.forget_before(floor_ + t_.read_latency + interconnect_.response_latency.count());
  const std::int64_t passing = group.lines * fabric_line_time_;
  const std::int64_t arrival = std::max(ends, fabric_.book(begins, passing, 0, {}) + passing);
  const std::int64_t queued = arrival - ends;
  const bool fabric_holds = queued > beats.held;  // one owner for each delivery: what held it longest
  const std::int64_t spacing = split_ ? (beats.end - beats.start) / group.lines : line_time_;
  stream.deliver({.first = begins + spacing + queued,
                  .spacing = spacing,
                  .behind_data = beats.behind_data + (fabric_holds ? 0 : queued),
                  .held = fabric_holds ? queued : beats.held,
                  .held_by = fabric_holds ? Owner::queue : beats.held_by});
}

TrainPath::Beats TrainPath::book(TrainChannel& channel, const DramPlace& place, const Request& request) {
  const bool write = request.access == Access::write;
  const std::int64_t latency = write ? t_.write_latency : t_.read_latency;
  const std::size_t lane = lane_of(place.bank, request.access);
  const std::int64_t length = split_ ? t_.burst : request.lines * line_time_;
  channel.bus.forget_before(floor_ + std::min(t_.read_latency, t_.write_latency));
  channel.rows.forget_before(floor_);
  ChannelRows::Opening opening = channel.rows.open(place.bank, place.row.value(), request.asked);
  SlotCalendar::Slot slot = channel.bus.find(opening.ready + latency, length, lane);
  while (channel.rows.refresh_comes_before(place.bank, slot.start - latency)) {
    opening =
        channel.rows.refresh_and_open(place.bank, place.row.value(), request.asked, slot.start - latency);
    slot = channel.bus.find(opening.ready + latency, length, lane);
  }
  const std::int64_t unhindered = request.asked + latency;
  const Wait wait{.since = unhindered, .owner = opening.held_by};
  channel.bus.book(slot, length, lane, wait);
  Beats beats{.start = slot.start, .end = slot.start + length};
  for (std::int64_t i = 1; split_ && i < request.lines * bursts_per_line_; ++i) {
    beats.end =
        channel.bus.book(beats.end + (write ? t_.group_gap_write : t_.group_gap), t_.burst, lane, wait) +
        t_.burst;
  }
  channel.rows.use(place.bank, beats.end - t_.burst - latency,
                   write ? t_.write_to_precharge : t_.read_to_precharge);
  beats_.add(request.owner, Picoseconds(request.lines * line_time_));

  const std::int64_t waited = beats.start - unhindered;
  beats.held = std::min(waited, opening.ready - request.asked);
  beats.behind_data = waited - beats.held;
  beats.held_by = opening.held_by;
  return beats;
}

// --- writes
// -----------------------------------------------------------------------------------------------------

/// Writes wait in the controller until the bus has nothing else to do or too many of them wait.
void TrainPath::write(std::size_t stream, const LineGroup& group) {
  const DramPlace place = map_.place(group.address);
  TrainChannel& channel = channels_[place.channel.pos()];
  const std::int64_t arrival = group.asked + interconnect_.request_latency.count() + t_.clock / 2;
  channel.writes.push({.arrival = arrival,
                       .place = place,
                       .lines = group.lines,
                       .owner = group.owner,
                       .stream = stream,
                       .store = group.store});
  channel.queued += group.lines;
  if (channel.queued >= controller_.write_high) {
    drain(channel, controller_.write_low, arrival);
  }
}

/// Takes writes, the oldest first, until `lines` are left. None goes before `time`.
void TrainPath::drain(TrainChannel& channel, std::int64_t lines, std::int64_t time) {
  while (channel.queued > lines) {
    const Write write = channel.writes.front();
    channel.writes.pop();
    channel.queued -= write.lines;
    const Beats beats =
        book(channel, write.place, {write.lines, Access::write, write.owner, std::max(time, write.arrival)});
    counters_.written += Bytes(write.lines * kLineBytes);
    for (std::int64_t i = 0; i < write.lines; ++i) {
      streams_[write.stream].taken(write.store + static_cast<std::uint64_t>(i), beats.end);
    }
    next_[write.stream] = streams_[write.stream].next();
  }
}

/// Takes the writes that go before anything is asked for at `time`: reads go first, so that each has to find
/// its channel with nothing else to do. True if an engine may have waited for one of them.
bool TrainPath::drain_idle(std::int64_t time) {
  bool any = false;
  const bool waited = time == TrainStream::kNotYet;
  const std::int64_t until = waited ? time : time + interconnect_.request_latency.count();
  for (TrainChannel& channel : channels_) {
    while (channel.queued > 0) {
      const Write& write = channel.writes.front();
      const std::int64_t idle = std::max(channel.bus.end() - t_.burst - t_.read_latency, write.arrival);
      if (idle > until) {
        break;
      }
      // Its row is opened even if a read then comes first.
      const std::int64_t ready = channel.rows.open(write.place.bank, write.place.row.value(), idle).ready;
      const std::int64_t free =
          channel.bus.free_for(lane_of(write.place.bank, Access::write)) - t_.write_latency;
      if (std::max(ready, free) > until) {
        break;
      }
      drain(channel, channel.queued - write.lines, idle);
      any = true;
    }
  }
  return any;
}

// --- what became of it
// ------------------------------------------------------------------------------------------

MemoryCounters TrainPath::counters() const {
  MemoryCounters sum = counters_;
  for (const TrainChannel& channel : channels_) {
    sum.row_misses += channel.rows.misses();
    sum.row_conflicts += channel.rows.conflicts();
    sum.activates += channel.rows.activates();
    sum.refreshes += channel.rows.refreshes();
  }
  sum.row_hits =
      (sum.read + sum.written).count() / kLineBytes * bursts_per_line_ - sum.row_misses - sum.row_conflicts;
  return sum;
}

DramActivity TrainPath::activity(Picoseconds now) {
  const auto bursts = [this](Bytes moved) { return moved.count() / kLineBytes * bursts_per_line_; };
  DramActivity sum{.reads = bursts(counters_.read), .writes = bursts(counters_.written)};
  for (const TrainChannel& channel : channels_) {
    sum += channel.rows.activity(now);
  }
  return sum;
}

BusTime TrainPath::bus_time() {
  const bool busy =
      std::any_of(streams_.begin(), streams_.end(), [](const TrainStream& s) { return !s.idle(); });
  BusTime sum{.beats = beats_, .gaps = {}, .channels = static_cast<std::int64_t>(channels_.size())};
  for (TrainChannel& channel : channels_) {
    channel.bus.forget_before(busy ? floor_ : channel.bus.end());
    sum.gaps += channel.bus.idle();
  }
  return sum;
}

}  // namespace kvsim::model
