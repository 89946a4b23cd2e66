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

/// Idle time between neighbours on the data bus: lanes are ranks x (read, write) x bank groups. That bursts
/// of one bank group keep a distance is the bank group's business.
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
    : controller_(device.controller),
      t_(train_timing(device.dram, device.controller)),
      map_(device.controller.mapping, device.dram.banks),
      bursts_per_line_(std::max<std::int64_t>(1, kLineBytes / burst_bytes(device.dram).count())),
      line_time_(bursts_per_line_ * t_.burst),
      request_latency_(device.interconnect.request_latency.count() + t_.clock / 2),
      response_latency_(device.interconnect.response_latency.count()),
      fabric_line_time_((Bytes(kLineBytes) / device.interconnect.bandwidth).count()),
      split_(device.dram.bank_groups > 1),
      lengths_(command_lengths(device.dram.standard)),
      directions_{Direction{t_.read_latency, t_.read_to_precharge, t_.group_gap},
                  Direction{t_.write_latency, t_.write_to_precharge, t_.group_gap_write}},
      fabric_holds_(device.controller.channels * fabric_line_time_ > line_time_),
      fabric_(fabric_line_time_),
      clocked_fabric_(device.interconnect, line_time_) {
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
                         .commands = LineSlots(t_.clock),
                         .writes = {}});
  }
}

EngineStream& TrainPath::add_stream(const StreamWindow& window) {
  check(streams_.size() < kMaxStreams, "at most 64 streams");
  next_.push_back(TrainStream::kNotYet);
  const TrainStream::Groups groups{
      .granule = map_.granule(), .most_lines = split_ ? 1 : kGroupLines, .spread = Picoseconds(line_time_)};
  return streams_.emplace_back(Stream{.window = TrainStream(window, groups), .page = {}}).window;
}

Picoseconds TrainPath::run_until(Picoseconds limit) {
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    note(streams_[i].window);
    next_[i] = streams_[i].window.next();
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
    if (writes_ > 0 && drain_idle(time)) {
      continue;
    }
    if (time >= horizon_.count()) {
      return std::exchange(horizon_, EngineStream::kNever);
    }
    if (time >= limit.count()) {
      return limit;
    }
    floor_ = time + request_latency_;
    clocked_fabric_.forget_before(floor_);
    const std::int64_t ahead = second == TrainStream::kNotYet ? second : second + kAhead;
    serve(first, writes_ > 0 ? time : std::min(ahead, limit.count()));
  }
}

/// Takes note of segments that the stream has finished.
void TrainPath::note(const TrainStream& stream) {
  if (!stream.finished().empty()) {
    horizon_ = std::min(horizon_, stream.finished().front());
  }
}

/// How much later than at `column` a line's bursts go because the command bus is taken, by them and by the
/// commands that opened their row. Where a line takes several bursts with a distance, the bus of data has
/// room for other lines' while that of commands may be full.
std::int64_t TrainPath::pass_commands(TrainChannel& channel, std::int64_t column, bool opens) const {
  channel.commands.forget_before(floor_);
  const auto pass = [&](Cycle clocks, std::int64_t time) {
    std::int64_t late = 0;
    for (Cycle i = 0; i < clocks; ++i) {
      late = std::max(late, channel.commands.pass(time));
    }
    return std::max<std::int64_t>(0, late - (clocks - 1) * t_.clock);
  };
  std::int64_t late = 0;
  if (opens) {
    pass(lengths_.other, column - t_.tRCD - t_.tRPpb);
    late = pass(lengths_.activate * (lengths_.split_activate ? 2 : 1), column - t_.tRCD);
  }
  for (std::int64_t i = 0; i < bursts_per_line_; ++i) {
    late = std::max(late, pass(lengths_.column, column + i * (t_.burst + t_.group_gap)));
  }
  // Commands here are on no clock edge and take no turns: some clocks of each wait are chance, not a full
  // bus.
  return std::max<std::int64_t>(0, late - 3 * t_.clock);
}

/// Inlined by decree: with the copies of a call it takes a quarter longer.
[[gnu::always_inline]] inline TrainPath::Beats TrainPath::book(TrainChannel& channel, const DramPlace& place,
                                                               const Request& request) {
  const Direction& d = directions_[request.access == Access::write ? 1 : 0];
  const std::size_t lane = lane_of(place.bank, request.access);
  const std::int64_t length = booked_at_once(request.lines);
  channel.bus.forget_before(floor_ + std::min(t_.read_latency, t_.write_latency));
  channel.rows.forget_before(floor_);
  const std::int64_t activates = channel.rows.activates();
  ChannelRows::Opening opening = channel.rows.open(place.bank, place.row.value(), request.asked);
  SlotCalendar::Slot slot = channel.bus.find(opening.ready + d.latency, length, lane);
  while (channel.rows.refresh_comes_before(place.bank, slot.start - d.latency)) {
    opening =
        channel.rows.refresh_and_open(place.bank, place.row.value(), request.asked, slot.start - d.latency);
    slot = channel.bus.find(opening.ready + d.latency, length, lane);
  }
  if (split_) {
    const std::int64_t late =
        pass_commands(channel, slot.start - d.latency, channel.rows.activates() != activates);
    slot = late == 0 ? slot : channel.bus.find(slot.start + late, length, lane);
  }
  const std::int64_t unhindered = request.asked + d.latency;
  const Wait wait{.since = unhindered, .owner = opening.held_by};
  channel.bus.book(slot, length, lane, wait);
  Beats beats{.start = slot.start, .end = slot.start + length};
  for (std::int64_t i = 1; split_ && i < request.lines * bursts_per_line_; ++i) {
    beats.end = channel.bus.book(beats.end + d.group_gap, t_.burst, lane, wait) + t_.burst;
  }
  channel.rows.use(place.bank, beats.end - t_.burst - d.latency, d.to_precharge);
  beats_.add(request.owner, Picoseconds(request.lines * line_time_));

  const std::int64_t waited = beats.start - unhindered;
  beats.held = std::min(waited, opening.ready - request.asked);
  beats.behind_data = waited - beats.held;
  beats.held_by = opening.held_by;
  return beats;
}

inline void TrainPath::read(Stream& stream, const LineGroup& group) {
  const DramPlace place = map_.place_of_line(group.address, stream.page);
  const std::int64_t lines = group.lines;
  TrainChannel& channel = channels_[place.channel.pos()];
  const Beats beats = book(channel, place, {lines, Access::read, group.owner, at_controller(group)});
  counters_.read += Bytes(lines * kLineBytes);
  channel.last_read = std::max(channel.last_read, beats.end - t_.burst - t_.read_latency);

  GroupDelivery delivery{.first = beats.start + response_latency_ + line_time_,
                         .spacing = line_time_,
                         .behind_data = beats.behind_data,
                         .held = beats.held,
                         .held_by = beats.held_by};
  if (split_) {
    delivery.spacing = (beats.end - beats.start) / lines;
    delivery.first = beats.start + response_latency_ + delivery.spacing;
  }
  if (fabric_holds_ || clocked_fabric_.acts()) {
    clocked_fabric_.forget_before(group.asked);  // an engine that is alone is served far beyond the floor
    pass(lines, delivery);
  }
  stream.window.deliver(delivery);
}

/// The interconnect passes data on as it comes, or when all that came before has been passed on: a line that
/// waits for less time than its own beats take is not late. So none is late on an interconnect that takes
/// what all channels can give.
void TrainPath::pass(std::int64_t lines, GroupDelivery& delivery) {
  const std::int64_t hidden = line_time_ - fabric_line_time_;
  const auto late = [&](std::int64_t line) {
    const std::int64_t begins = delivery.first - line_time_ + line * delivery.spacing;
    return std::max<std::int64_t>(0, fabric_.pass(begins) - hidden) + clocked_fabric_.late(begins);
  };
  fabric_.forget_before(floor_ + t_.read_latency + response_latency_);
  const std::int64_t queued = late(0);
  std::int64_t last = queued;
  for (std::int64_t i = 1; i < lines; ++i) {
    last = late(i);
  }
  delivery.first += queued;
  if (lines > 1) {
    delivery.spacing = std::max<std::int64_t>(0, delivery.spacing + (last - queued) / (lines - 1));
  }
  if (queued > delivery.held) {  // one owner for each delivery: what held it longest
    delivery.held = queued;
    delivery.held_by = Owner::queue;
  } else {
    delivery.behind_data += queued;
  }
}

/// Serves the stream's lines that are asked for up to `limit`, or until it finishes a segment before.
void TrainPath::serve(std::size_t index, std::int64_t limit) {
  Stream& stream = streams_[index];
  TrainStream& window = stream.window;
  do {
    const LineGroup& group = window.take();
    if (group.access == Access::read) {
      read(stream, group);
    } else {
      write(index, group);
    }
    note(window);
  } while (window.next() <= limit && window.next() < horizon_.count());
  next_[index] = window.next();
}

// --- writes
// -----------------------------------------------------------------------------------------------------

/// Writes wait in the controller until the bus has nothing else to do or too many of them wait.
void TrainPath::write(std::size_t stream, const LineGroup& group) {
  const DramPlace place = map_.place_of_line(group.address, streams_[stream].page);
  TrainChannel& channel = channels_[place.channel.pos()];
  channel.writes.push_back({.arrival = at_controller(group),
                            .place = place,
                            .lines = group.lines,
                            .owner = group.owner,
                            .stream = stream,
                            .store = group.store});
  channel.queued += group.lines;
  writes_ += group.lines;
  if (channel.queued >= controller_.write_high) {
    drain(channel, controller_.write_low, at_controller(group));
  }
}

/// The write that a scheduler would take next at `time`: the one whose data can go first, the older of two. A
/// bank's oldest write and those that hit its open row come into question.
TrainPath::Choice TrainPath::first_ready(const TrainChannel& channel, std::int64_t time) const {
  Choice best{.index = 0, .time = TrainStream::kNotYet};
  std::uint64_t banks = 0;  // that an older write wants
  for (std::size_t i = 0; i < channel.writes.size(); ++i) {
    const Write& write = channel.writes[i];
    const std::uint32_t bank = write.place.bank;
    const std::uint64_t bit = std::uint64_t{1} << bank;
    if ((banks & bit) != 0 && !channel.rows.is_open(bank, write.place.row.value())) {
      continue;
    }
    banks |= bit;
    const std::int64_t ready =
        channel.rows.ready(bank, write.place.row.value(), std::max(time, write.arrival));
    const std::int64_t column =
        channel.bus.find(ready + t_.write_latency, booked_at_once(write.lines), lane_of(bank, Access::write))
            .start -
        t_.write_latency;
    if (column < best.time) {
      best = {.index = i, .time = column};
    }
  }
  return best;
}

/// Takes writes until `lines` are left. None goes before `time`.
void TrainPath::drain(TrainChannel& channel, std::int64_t lines, std::int64_t time) {
  while (channel.queued > lines) {
    take(channel, first_ready(channel, time).index, time);
  }
}

void TrainPath::take(TrainChannel& channel, std::size_t index, std::int64_t time) {
  const Write write = channel.writes[index];
  channel.writes.erase(channel.writes.begin() + static_cast<std::ptrdiff_t>(index));
  channel.queued -= write.lines;
  writes_ -= write.lines;
  const Beats beats =
      book(channel, write.place, {write.lines, Access::write, write.owner, std::max(time, write.arrival)});
  counters_.written += Bytes(write.lines * kLineBytes);
  TrainStream& window = streams_[write.stream].window;
  for (std::int64_t i = 0; i < write.lines; ++i) {
    const std::int64_t begins = beats.start + i * line_time_;
    window.taken(write.store + static_cast<std::uint64_t>(i), beats.end + clocked_fabric_.late(begins));
  }
  next_[write.stream] = window.next();
}

/// Takes the writes that go before anything is asked for at `time`: reads go first, so that each has to find
/// its channel with nothing else to do. True if an engine may have waited for one of them.
bool TrainPath::drain_idle(std::int64_t time) {
  bool any = false;
  for (TrainChannel& channel : channels_) {
    any = drain_idle(channel, time == TrainStream::kNotYet ? time : time + request_latency_) || any;
  }
  return any;
}

bool TrainPath::drain_idle(TrainChannel& channel, std::int64_t until) {
  bool any = false;
  while (channel.queued > 0) {
    const std::int64_t idle = std::max(channel.last_read, channel.writes.front().arrival);
    if (idle > until) {
      break;
    }
    open_for_writes(channel, idle, until);
    const Choice choice = first_ready(channel, idle);
    if (choice.time > until) {
      break;
    }
    take(channel, choice.index, idle);
    any = true;
  }
  return any;
}

/// Rows are opened for the oldest write of each bank from `time` on, even if a read then comes first.
void TrainPath::open_for_writes(TrainChannel& channel, std::int64_t time, std::int64_t until) {
  std::uint64_t banks = 0;
  for (const Write& write : channel.writes) {
    const std::uint64_t bit = std::uint64_t{1} << write.place.bank;
    if (write.arrival > until) {
      break;
    }
    if ((banks & bit) == 0) {
      channel.rows.open(write.place.bank, write.place.row.value(), std::max(time, write.arrival));
    }
    banks |= bit;
  }
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
      std::any_of(streams_.begin(), streams_.end(), [](const Stream& s) { return !s.window.idle(); });
  BusTime sum{.beats = beats_, .gaps = {}, .channels = static_cast<std::int64_t>(channels_.size())};
  for (TrainChannel& channel : channels_) {
    channel.bus.forget_before(busy ? floor_ + std::min(t_.read_latency, t_.write_latency)
                                   : channel.bus.end());
    sum.gaps += channel.bus.idle();
  }
  return sum;
}

}  // namespace kvsim::model
