// SPDX-License-Identifier: Apache-2.0
#include "models/dram/load_curve.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "configs/error/error.h"
#include "models/dram/channel.h"
#include "models/dram/play_statistics.h"

namespace kvsim::model {

namespace {

constexpr std::uint64_t kLine = static_cast<std::uint64_t>(kRequestBytes);
constexpr std::uint64_t kStride = 4096 / kLine;
constexpr std::uint64_t kHead = (std::uint64_t{512} << 10) / kLine;  ///< 2048 tokens of 256 B
constexpr std::int64_t kBatch = 4096;

}  // namespace

std::string_view to_string(Pattern pattern) {
  static constexpr std::array<std::string_view, kPatterns> kNames = {"seq", "random", "stride", "kv", "mix"};
  return kNames.at(static_cast<std::size_t>(pattern));
}

std::uint64_t PatternRandom::next() {
  std::uint64_t z = (state_ += 0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

double PatternRandom::unit() {
  return static_cast<double>(next() >> 11) * 0x1p-53;
}

// --- patterns
// -----------------------------------------------------------------------------------------------------

PatternSource::PatternSource(const PatternSpec& spec)
    : spec_(spec), lines_(static_cast<std::uint64_t>(spec.capacity.count()) / kLine), left_(spec.requests) {
  check(spec.streams > 0 && lines_ >= 2 * static_cast<std::uint64_t>(spec.streams), "every stream has lines");
}

std::span<const PackedRequest> PatternSource::next() {
  batch_.clear();
  for (; left_ > 0 && static_cast<std::int64_t>(batch_.size()) < kBatch; --left_) {
    if (random_.unit() >= spec_.read_share) {  // writes go through the upper half in order
      const std::uint64_t at =
          spec_.pattern == Pattern::random ? random_.next() % lines_ : lines_ / 2 + written_++ % (lines_ / 2);
      batch_.push_back(pack(at * kLine, true));
    } else {
      batch_.push_back(pack(line() * kLine, false));
    }
  }
  return batch_;
}

std::uint64_t PatternSource::line() {
  switch (spec_.pattern) {
    case Pattern::random:
      return random_.next() % lines_;
    case Pattern::stride: {
      const std::uint64_t at = position_++ * kStride;
      return at % lines_ + at / lines_ % kStride;
    }
    case Pattern::mix:
      return random_.unit() < 0.5 ? random_.next() % lines_ : stream_line();
    case Pattern::seq:
    case Pattern::kv:
      break;
  }
  return stream_line();
}

/// Streams take turns. Those of a KV cache read heads that lie one after the other, then the next ones.
std::uint64_t PatternSource::stream_line() {
  const auto streams = static_cast<std::uint64_t>(spec_.streams);
  const std::uint64_t stream = position_ % streams;
  const std::uint64_t step = position_++ / streams;
  if (spec_.pattern == Pattern::kv) {
    return ((step / kHead * streams + stream) * kHead + step % kHead) % (lines_ / 2);
  }
  const std::uint64_t region = lines_ / streams;
  return stream * region + step % region;
}

// --- bounds
// -------------------------------------------------------------------------------------------------------

namespace {

/// Share of the time that refreshes of all banks leave, of which each costs `lost` clocks. The one that is
/// due when the run ends may not have come.
double refresh_leaves(const ClockTiming& t, const BoundCase& c, Cycle lost) {
  if (c.controller.refresh != config::RefreshMode::all_bank) {
    return 1;  // refreshes of one bank can hide behind the other banks
  }
  const CommandClock clock(command_clock(c.part));
  const auto elapsed = static_cast<double>(clock.cycles(c.elapsed));
  const auto interval = static_cast<double>(t.tREFI);
  const double refreshes = std::max(0.0, elapsed / interval - 1) / elapsed;
  return 1 - static_cast<double>(lost) * refreshes;
}

/// Whether a stream in order can use all of the bus: some of the lines that the scheduler chooses from lie in
/// other bank groups. These are as many as the queue holds and as may pass an old one up to the age cap.
bool rotates_groups(const BoundCase& c, const ClockTiming& t) {
  const AddressMap map(c.controller.mapping, c.part.banks);
  const auto step = std::max(kLine, static_cast<std::uint64_t>(burst_bytes(c.part).count()));
  const Cycle cap = CommandClock(command_clock(c.part)).cycles(c.controller.age_cap);
  const auto reach =
      static_cast<std::uint64_t>(c.controller.read_queue + c.controller.write_queue + cap / t.tCCD);
  const auto group = [&](std::uint64_t line) {
    return map.place(line * step).bank / static_cast<std::uint32_t>(c.part.banks / c.part.bank_groups);
  };
  for (std::uint64_t line = 1; line <= reach; ++line) {
    if (group(line) != group(0)) {
      return true;
    }
  }
  return false;
}

/// What the command bus has: clocks for each activate with its precharge, if that is a command of its own,
/// and for each burst; and the clocks of it that can be used, of each.
struct CommandBus {
  Cycle opening;
  Cycle burst;
  double usable;

  CommandBus(const BoundCase& c, const ClockTiming& t, double rows) : usable(rows) {
    const CommandLengths length = command_lengths(c.part.standard);
    const bool by_itself = c.controller.page_policy == config::PagePolicy::closed;
    opening = length.activate + (length.split_activate ? 1 : 0) + (by_itself ? 0 : length.other);
    burst = length.column;
    if (c.controller.ranks > 1) {
      usable = 1;  // the other ranks' commands go while one refreshes
    }
    // Banks are closed at first, and all by one command before a refresh of all.
    const auto elapsed = static_cast<double>(CommandClock(command_clock(c.part)).cycles(c.elapsed));
    const double intervals = elapsed / static_cast<double>(t.tREFI);
    const auto ranks = static_cast<double>(c.controller.ranks);
    const bool all = c.controller.refresh == config::RefreshMode::all_bank;
    double saved = static_cast<double>(c.part.banks) * (all ? 1 + intervals : 1);
    if (c.controller.refresh == config::RefreshMode::per_bank) {
      saved -= static_cast<double>(bank_refreshes(c.part)) * std::max(0.0, intervals - 1);
    }
    usable += saved * ranks * static_cast<double>(length.other) / elapsed;
  }
};

/// A bank's clocks for a line of a row of its own.
Cycle row_cycle(const BoundCase& c, const ClockTiming& t, Cycle bursts) {
  const bool reads = c.read_share > 0;
  const Cycle last = (bursts - 1) * (reads ? t.tCCD_L : t.tCCD_L_WR);
  const Cycle used = t.tRCD + last + (reads ? t.read_to_precharge : t.write_to_precharge);
  return std::max(t.tRAS, used) + t.tRPpb;
}

/// Clocks that the requests of a walk through the map take at least, for each.
double walk_bound(const BoundCase& c, const ClockTiming& t, std::uint64_t stride) {
  constexpr std::uint64_t kWalk = 1 << 14;
  const AddressMap map(c.controller.mapping, c.part.banks);
  const auto banks = static_cast<std::size_t>(c.part.banks * c.controller.ranks);
  const auto bursts = std::max<Cycle>(1, kRequestBytes / burst_bytes(c.part).count());
  std::vector<std::optional<Row>> open(banks);
  std::vector<Cycle> activates(banks);
  std::vector<Cycle> columns(banks * static_cast<std::size_t>(c.part.bank_groups));
  Cycle all = 0;
  for (std::uint64_t i = 0; i < kWalk; ++i) {
    const DramPlace place = map.place(i * stride);
    const bool opens = open[place.bank] != place.row;
    open[place.bank] = place.row;
    activates[place.bank] += opens;
    all += opens;
    columns[place.bank / static_cast<std::uint32_t>(c.part.banks / c.part.bank_groups)] += bursts;
  }
  const Cycle bus = static_cast<Cycle>(kWalk) * bursts * t.tCCD;
  const Cycle group = *std::max_element(columns.begin(), columns.end()) * t.tCCD_L;
  const Cycle bank = *std::max_element(activates.begin(), activates.end()) * (t.tRAS + t.tRPpb);
  const Cycle window = all * std::max(t.tFAW, 4 * t.tRRD) / 4 / c.controller.ranks;
  const CommandBus commands(c, t, 1);
  const auto command = static_cast<Cycle>(
      static_cast<double>(all * commands.opening + static_cast<Cycle>(kWalk) * bursts * commands.burst) /
      commands.usable);
  return static_cast<double>(std::max({bus, group, bank, window, command})) / static_cast<double>(kWalk);
}

/// Lines for each clock, each of a row of its own, if refresh leaves `rows` of the time for activates. Where
/// a per-bank refresh is an activate to tFAW, it takes the place of one; else it keeps all from the rank for
/// tpbR2act, of which the gap after four activates is free anyway.
double random_rate(const BoundCase& c, const ClockTiming& t, double rows) {
  const auto ranks = static_cast<double>(c.controller.ranks);
  const Cycle bursts = std::max<Cycle>(1, kRequestBytes / burst_bytes(c.part).count());
  const CommandBus commands(c, t, rows);
  const Cycle four = std::max(t.tFAW, 4 * t.tRRD);
  const double refreshes = c.controller.refresh != config::RefreshMode::per_bank
                               ? 0
                               : static_cast<double>(bank_refreshes(c.part)) / static_cast<double>(t.tREFI);
  const auto kept = static_cast<double>(std::max<Cycle>(0, t.tpbR2act - (four - 3 * t.tRRD)));
  const double activates = 4 / static_cast<double>(four);
  const double window = t.refresh_activates ? activates - refreshes : activates * (1 - refreshes * kept);
  const double banks = static_cast<double>(c.part.banks) / static_cast<double>(row_cycle(c, t, bursts));
  const double command = commands.usable / static_cast<double>(commands.opening + bursts * commands.burst);
  const double opened = std::min(std::min(window, banks) * ranks * rows, command);
  // By chance a line is in a row that is open or queued for.
  const double places = static_cast<double>(c.part.rows * c.part.banks) * ranks;
  const auto queued = static_cast<double>(c.controller.read_queue + c.controller.write_queue);
  return opened / (1 - std::min(0.5, (queued + static_cast<double>(c.part.banks) * ranks) / places));
}

}  // namespace

BytesPerSecond bandwidth_bound(const BoundCase& c, Pattern pattern) {
  const ClockTiming t = clock_timing(c.part, c.controller.turnaround);
  const double clock = command_clock(c.part).as_double() * static_cast<double>(c.controller.channels);
  const double burst = burst_bytes(c.part).as_double();
  const bool one_way = c.read_share == 0 || c.read_share == 1;
  const bool one_group = pattern == Pattern::seq && c.streams == 1 && one_way && !rotates_groups(c, t);
  const Cycle spacing = !one_group ? t.tCCD : c.read_share > 0 ? t.tCCD_L : t.tCCD_L_WR;
  const Cycle closing = c.read_share > 0 ? t.read_to_precharge : t.write_to_precharge;
  const Cycle silent = closing + t.tRPab + t.tRFCab + t.tRCD - t.burst;
  const double bus = burst / static_cast<double>(spacing) * refresh_leaves(t, c, silent);
  // Before a refresh no row can be opened that cannot be closed in time; but four may be right before that.
  const Cycle window = std::max(t.tFAW, 4 * t.tRRD);
  const double rows = refresh_leaves(t, c, std::min(silent, t.tRAS + t.tRPab + t.tRFCab - window));
  const double line = std::max(burst, static_cast<double>(kRequestBytes));
  if (pattern == Pattern::stride) {
    const double strided = line / walk_bound(c, t, kStride * kLine) * rows;
    return BytesPerSecond((c.read_share > 0 ? std::min(bus, strided / c.read_share) : bus) * clock);
  }
  if (pattern == Pattern::random) {  // each line is a row of its own
    return BytesPerSecond(std::min(bus, line * random_rate(c, t, rows)) * clock);
  }
  return BytesPerSecond(bus * clock);
}

// --- load
// ---------------------------------------------------------------------------------------------------------

namespace {

/// Channels that requests arrive at by themselves.
class OpenLoop {
 public:
  OpenLoop(const config::DramPartSpec& part, const config::MemoryControllerSpec& controller)
      : map_(controller.mapping, part.banks), clock_(command_clock(part)) {
    for (std::int64_t c = 0; c < controller.channels; ++c) {
      channels_.emplace_back(part, controller, std::uint16_t{1});
    }
    bursts_ =
        static_cast<std::uint16_t>(std::max<std::int64_t>(1, kRequestBytes / burst_bytes(part).count()));
  }

  void arrive(PackedRequest request, Cycle at) {
    serve_until(at);
    const DramPlace place = map_.place(request >> 1);
    const bool write = (request & 1) != 0;
    ChannelController& channel = channels_[place.channel.pos()];
    channel.add({.arrival = std::max(at, channel.last_command()),
                 .tag = static_cast<std::uint32_t>(arrivals_.size()),
                 .row = place.row.value(),
                 .bank = static_cast<std::uint16_t>(place.bank),
                 .bursts = bursts_,
                 .access = write ? trace::Access::write : trace::Access::read});
    arrivals_.push_back(at);
  }
  void serve_until(Cycle until) {
    for (ChannelController& channel : channels_) {
      Served served;
      while (channel.next_time() < until) {
        if (channel.step(served) && served.last) {
          note(served);
        }
      }
    }
  }

  [[nodiscard]] Cycle end() const { return end_; }
  [[nodiscard]] const Histogram& latencies() const { return latencies_; }
  [[nodiscard]] double mean() const {
    return latencies_.count() == 0 ? 0 : sum_ / static_cast<double>(latencies_.count());
  }
  [[nodiscard]] std::size_t requests() const { return arrivals_.size(); }
  [[nodiscard]] const CommandClock& clock() const { return clock_; }

 private:
  void note(const Served& served) {
    end_ = std::max(end_, served.data_end);
    if (served.access == trace::Access::read) {
      const Cycle latency = served.data_end - arrivals_[served.tag];
      latencies_.add(latency);
      sum_ += static_cast<double>(latency);
    }
  }

  AddressMap map_;
  CommandClock clock_;
  std::uint16_t bursts_ = 1;
  std::vector<ChannelController> channels_;
  std::vector<Cycle> arrivals_;  ///< by tag
  Cycle end_ = 0;
  Histogram latencies_;
  double sum_ = 0;
};

}  // namespace

LoadPoint load_point(const config::DramPartSpec& part, const config::MemoryControllerSpec& controller,
                     RequestSource& source, BytesPerSecond offered) {
  OpenLoop loop(part, controller);
  PatternRandom random;
  const double gap = static_cast<double>(kRequestBytes) / offered.count() * command_clock(part).as_double();
  double at = 0;
  for (std::span<const PackedRequest> batch = source.next(); !batch.empty(); batch = source.next()) {
    for (const PackedRequest request : batch) {
      at += -std::log1p(-random.unit()) * gap;
      loop.arrive(request, static_cast<Cycle>(at));
    }
  }
  loop.serve_until(ChannelController::kNever);
  return {
      .offered = offered,
      .served =
          Bytes(static_cast<std::int64_t>(loop.requests()) * kRequestBytes) / loop.clock().time(loop.end()),
      .mean_latency = Picoseconds(loop.clock().time(static_cast<Cycle>(loop.mean() * 1000)).count() / 1000),
      .p99_latency = loop.clock().time(loop.latencies().quantile(0.99))};
}

}  // namespace kvsim::model
