// SPDX-License-Identifier: Apache-2.0
// Tables of masters beside the cores, and what must hold between their values.
#include <algorithm>

#include <fmt/format.h>

#include "configs/spec/master_series.h"
#include "configs/spec/schemas.h"

namespace kvsim::config {
namespace {

using namespace kvsim::literals;

constexpr BytesPerSecond kSlowest(1);
constexpr BytesPerSecond kFastest(1e14);
constexpr Picoseconds kLongest(100'000'000'000'000);
constexpr std::int64_t kMostCores = 64;

void check_radio(const RadioSpec& radio, const Place& place) {
  if (radio.rate.count() >= radio.air.count()) {
    place.error("air", fmt::format("{} on the air cannot carry {} of payload", to_text(radio.air),
                                   to_text(radio.rate)));
  }
  if (radio.rate.count() >= radio.bus.count()) {
    place.error("bus", fmt::format("{} to memory cannot carry {} of payload", to_text(radio.bus),
                                   to_text(radio.rate)));
  }
  if (radio.packet > radio.aggregate) {
    place.error("packet", fmt::format("{} is more than an aggregate of {}", to_text(radio.packet),
                                      to_text(radio.aggregate)));
  }
  if (radio.ring < radio.aggregate) {
    place.error("ring", fmt::format("{} cannot take an aggregate of {}", to_text(radio.ring),
                                    to_text(radio.aggregate)));
  }
}

void check_burst(const BurstSpec& burst, const Place& place) {
  if (burst.on && burst.off == Picoseconds()) {
    place.error("off", "is needed with 'on': for how long no bursts come");
  }
  if (!burst.on && burst.off != Picoseconds()) {
    place.error("off", "has no meaning without 'on'");
  }
  if (burst.on && *burst.on < burst.period) {
    place.error("on", fmt::format("{} is less than a period, {}: nothing would come", to_text(*burst.on),
                                  to_text(burst.period)));
  }
}

void check_series(const SeriesSpec& series, const Place& place) {
  if (series.items.empty()) {
    return place.error(series.file.empty() ? "items" : "file",
                       "has no transfers; a line is seconds after the start, a comma and bytes");
  }
  if (const auto problem = series_problem(series.items)) {
    place.error(fmt::format("items.{}", problem->item), problem->what);
  }
  if (series.repeat && *series.repeat < series.items.back().at) {
    place.error("repeat", fmt::format("{} is before its last transfer, at {}", to_text(*series.repeat),
                                      to_text(series.items.back().at)));
  }
}

void check_load(const CpuLoadSpec& load, const Place& place) {
  if (load.traffic.count() * seconds(load.slice) < 64 && load.traffic.count() > 0) {
    place.error("traffic", fmt::format("{} is less than a cache line in a slice of {}", to_text(load.traffic),
                                       to_text(load.slice)));
  }
}

void check_master(const MasterSpec& master, const Place& place) {
  const int kinds = static_cast<int>(master.scan.has_value()) + static_cast<int>(master.radio.has_value()) +
                    static_cast<int>(master.burst.has_value()) + static_cast<int>(master.series.has_value()) +
                    static_cast<int>(master.load.has_value());
  if (kinds != 1) {
    place.error(
        fmt::format("has {} of scan, radio, burst, series and load; a master is exactly one of them", kinds));
  }
}

void check_use(const MasterUse& use, const Place& place) {
  const bool bounded = use.qos != QosMode::fixed;
  if (bounded != use.bandwidth.has_value()) {
    return place.error("bandwidth",
                       bounded ? fmt::format("is needed for qos: {}", to_text(use.qos))
                               : std::string("has no effect with qos: fixed; use limiter or regulator"));
  }
  if (use.qos == QosMode::regulator && use.priority == 0) {
    place.error("priority", "of 0 is what a regulator falls back to; give 1 to 3");
  }
  if (use.qos == QosMode::limiter && mean_rate(use.master).count() > use.bandwidth->count()) {
    place.error("bandwidth",
                fmt::format("{} is less than the {} that {} moves: it can never keep up",
                            to_text(*use.bandwidth), to_text(mean_rate(use.master)), use.master.name));
  }
  if (use.qos == QosMode::limiter) {
    const Bytes at_once(static_cast<std::int64_t>(use.bandwidth->count() * seconds(use.window)));
    if (const auto needed = overdue(use.master, *use.bandwidth, at_once)) {
      place.error("bandwidth",
                  fmt::format("{}: the largest transfer of {} takes {} at that, longer than its deadline",
                              to_text(*use.bandwidth), use.master.name, to_text(*needed)));
    }
  }
}

}  // namespace

template <>
const Schema<ScanSpec>& schema<ScanSpec>() {
  using T = ScanSpec;
  static const Schema<T> kSchema{
      "lines at the pace of a screen or a sensor",
      {field("width", &T::width, "pixels of a line").between(1, 1 << 16),
       field("height", &T::height, "lines of a frame").between(1, 1 << 16),
       field("bytes_per_pixel", &T::bytes_per_pixel, "of a plane").between(0.125, 64),
       field("planes", &T::planes, "moved side by side").by_default(1).between(1, 16),
       field("rate", &T::rate, "frames a second").between(Hertz(1), Hertz(1000)),
       field("active", &T::active, "share of a frame's time in which lines come; the rest is blanking")
           .by_default(0.93)
           .between(0.01, 1),
       field("buffer_lines", &T::buffer_lines, "of the FIFO between memory and the wire")
           .by_default(4)
           .between(1, 1024),
       field("access", &T::access, "read: a screen; write: a sensor")}};
  return kSchema;
}

template <>
const Schema<RadioSpec>& schema<RadioSpec>() {
  using T = RadioSpec;
  static const Schema<T> kSchema{
      "a network interface: aggregates of packets, a ring in memory, a driver",
      {field("rate", &T::rate, "payload, on average").between(kSlowest, kFastest),
       field("air", &T::air, "payload on the air, within an aggregate").between(kSlowest, kFastest),
       field("aggregate", &T::aggregate, "payload that comes at once (A-MPDU)").between(64_B, 16_MiB),
       field("packet", &T::packet, "of it").by_default(1500_B).between(64_B, 64_KiB),
       field("bus", &T::bus, "between the interface and memory").between(kSlowest, kFastest),
       field("access", &T::access, "write: it receives; read: it sends").by_default(MasterAccess::write),
       field("copy", &T::copy, "the driver copies what came").by_default(true),
       field("core", &T::core, "takes the interrupts, and copies").between(0, kMostCores - 1),
       field("interrupt", &T::interrupt, "that core's time for an aggregate")
           .by_default(5_us)
           .between(0_ps, 100_ms),
       field("per_packet", &T::per_packet, "that core's time for a packet, the copy not counted")
           .by_default(1_us)
           .between(0_ps, 100_ms),
       field("ring", &T::ring, "buffers; what comes while they are full is lost")
           .by_default(4_MiB)
           .between(64_B, 1_GiB),
       field("sleep", &T::sleep,
             "frames wait at the access point for a beacon at multiples of this; none: power save is off")
           .between(1_us, kLongest)
           .optional()},
      check_radio};
  return kSchema;
}

template <>
const Schema<BurstSpec>& schema<BurstSpec>() {
  using T = BurstSpec;
  static const Schema<T> kSchema{
      "the same amount again and again",
      {field("bytes", &T::bytes, "of a burst").between(1_B, 16_GiB),
       field("period", &T::period, "from one burst to the next").between(1_ns, kLongest),
       field("access", &T::access, "direction").by_default(MasterAccess::read),
       field("deadline", &T::deadline, "after a burst was asked for; none: any time is right")
           .between(1_ns, kLongest)
           .optional(),
       field("on", &T::on, "bursts come for so long; none: always").between(1_ns, kLongest).optional(),
       field("off", &T::off, "and then do not for so long").by_default(0_ps).between(0_ps, kLongest)},
      check_burst};
  return kSchema;
}

template <>
const Schema<SeriesSpec>& schema<SeriesSpec>() {
  using T = SeriesSpec;
  static const Schema<T> kSchema{
      "a captured series of transfers",
      {field("file", &T::file,
             "CSV of its transfers, sorted by time: seconds after the start, a comma, bytes; not read if "
             "items are given")
           .by_default(""),
       field("items", &T::items, "the same as texts, such as \"0.0125,1500\"; what was read from the file")
           .optional(),
       field("access", &T::access, "direction").by_default(MasterAccess::write),
       field("deadline", &T::deadline, "after a transfer was asked for; none: any time is right")
           .between(1_ns, kLongest)
           .optional(),
       field("repeat", &T::repeat, "it begins again so long after it began; none: it ends")
           .between(1_ns, kLongest)
           .optional()},
      check_series};
  return kSchema;
}

template <>
const Schema<CpuLoadSpec>& schema<CpuLoadSpec>() {
  using T = CpuLoadSpec;
  static const Schema<T> kSchema{
      "another program on a core",
      {field("core", &T::core, "in the order of the device's clusters").between(0, kMostCores - 1),
       field("share", &T::share, "of the core's time").between(0, 0.99),
       field("slice", &T::slice, "how often the core changes over").by_default(4_ms).between(10_us, kLongest),
       field("traffic", &T::traffic, "bytes it reads from memory, over all time")
           .between(BytesPerSecond(0), kFastest)},
      check_load};
  return kSchema;
}

template <>
const Schema<MasterSpec>& schema<MasterSpec>() {
  using T = MasterSpec;
  static const Schema<T> kSchema{
      "a master beside the cores: one of scan, radio, burst, series and load",
      {field("name", &T::name, "what reports call it").by_default("custom"),
       field("description", &T::description, "one line about it").by_default(""),
       field("scan", &T::scan, "a screen or a sensor").optional(),
       field("radio", &T::radio, "a network interface").optional(),
       field("burst", &T::burst, "the same amount again and again").optional(),
       field("series", &T::series, "what was captured of a real one").optional(),
       field("load", &T::load, "another program on a core").optional(),
       field("lines", &T::lines, "cache lines in flight, reads and writes apart")
           .by_default(16)
           .between(1, 1024),
       field("engine", &T::engine, "masters that name the same share one DMA engine").by_default("")},
      check_master};
  return kSchema;
}

template <>
const Schema<MasterUse>& schema<MasterUse>() {
  using T = MasterUse;
  static const Schema<T> kSchema{
      "a master on this device, and what it may take",
      {field("master", &T::master, "what it is").entry_of("masters"),
       field("priority", &T::priority, "of its requests at the memory controllers: 3 goes first")
           .by_default(0)
           .between(0, 3),
       field("qos", &T::qos,
             "fixed: the priority; limiter: no more than bandwidth; regulator: the priority counts up to "
             "bandwidth")
           .by_default(QosMode::fixed),
       field("bandwidth", &T::bandwidth, "for limiter and regulator").between(kSlowest, kFastest).optional(),
       field("window", &T::window, "what bandwidth allows for this long may be taken at once")
           .by_default(1_us)
           .between(1_ns, 1000_ms)},
      check_use};
  return kSchema;
}

}  // namespace kvsim::config
