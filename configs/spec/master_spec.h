// SPDX-License-Identifier: Apache-2.0
// Masters beside the cores that use the same memory: screens, cameras, radios, peripherals, other programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/units/quantity.h"

namespace kvsim::config {

enum class MasterAccess { read, write };

/// Lines at the pace of a screen (reads) or of a sensor (writes).
struct ScanSpec {
  std::int64_t width = 1;      ///< pixels of a line
  std::int64_t height = 1;     ///< lines of a frame
  double bytes_per_pixel = 1;  ///< of a plane
  std::int64_t planes = 1;
  Hertz rate;                     ///< frames
  double active = 1;              ///< share of a frame's time in which lines come; the rest is blanking
  std::int64_t buffer_lines = 1;  ///< of the FIFO between memory and the wire
  MasterAccess access = MasterAccess::read;

  bool operator==(const ScanSpec&) const = default;
};

/// Bursts of a network interface: aggregates of packets (A-MPDU), a ring in memory, a driver that copies.
struct RadioSpec {
  BytesPerSecond rate;                        ///< of payload, on average
  BytesPerSecond air;                         ///< on the air, within an aggregate
  Bytes aggregate;                            ///< payload that comes at once
  Bytes packet;                               ///< of it
  BytesPerSecond bus;                         ///< between the interface and memory: SDIO, PCIe
  MasterAccess access = MasterAccess::write;  ///< write: it receives
  bool copy = true;                           ///< the driver reads what came and writes it elsewhere
  std::int64_t core = 0;                      ///< which takes the interrupts and copies
  Picoseconds interrupt;                      ///< of that core for an aggregate,
  Picoseconds per_packet;                     ///< and for each packet of it, copy not counted
  Bytes ring;                                 ///< buffers: what comes while they are full is lost
  std::optional<Picoseconds> sleep{};  ///< frames wait at the access point for a beacon at multiples of this

  bool operator==(const RadioSpec&) const = default;
};

/// The same amount again and again: audio, USB, another model's weights.
struct BurstSpec {
  Bytes bytes;
  Picoseconds period;
  MasterAccess access = MasterAccess::read;
  std::optional<Picoseconds> deadline{};  ///< after it was asked for
  std::optional<Picoseconds> on{};        ///< bursts come for so long,
  Picoseconds off{};                      ///< and then do not

  bool operator==(const BurstSpec&) const = default;
};

/// So many bytes, so long after the start.
struct SeriesItem {
  Picoseconds at;
  Bytes bytes;

  bool operator==(const SeriesItem&) const = default;
};

/// What was captured of a real one: each of its transfers at its time.
struct SeriesSpec {
  std::string file{};             ///< that the items were read from; empty: they were given
  std::vector<SeriesItem> items;  ///< by time
  MasterAccess access = MasterAccess::write;
  std::optional<Picoseconds> deadline{};  ///< after it was asked for
  std::optional<Picoseconds> repeat{};    ///< it begins again so long after it began; none: it ends

  bool operator==(const SeriesSpec&) const = default;
};

/// Another program on a core: it takes a share of its time and reads memory.
struct CpuLoadSpec {
  std::int64_t core = 0;
  double share = 0;
  Picoseconds slice;       ///< how often the core changes over
  BytesPerSecond traffic;  ///< bytes read over all time

  bool operator==(const CpuLoadSpec&) const = default;
};

/// fixed: one priority. limiter: no more than `bandwidth`. regulator: the priority counts up to `bandwidth`,
/// above it the master has none.
enum class QosMode { fixed, limiter, regulator };

struct MasterSpec {
  std::string name;
  std::string description;
  std::optional<ScanSpec> scan{};  ///< one of these five
  std::optional<RadioSpec> radio{};
  std::optional<BurstSpec> burst{};
  std::optional<SeriesSpec> series{};
  std::optional<CpuLoadSpec> load{};
  std::int64_t lines = 16;  ///< cache lines in flight, reads and writes apart
  std::string engine;       ///< masters that name the same share one DMA engine; empty: its own

  bool operator==(const MasterSpec&) const = default;
};

/// A master on a device.
struct MasterUse {
  MasterSpec master;
  std::int64_t priority = 0;  ///< at the memory controllers: 3 goes first
  QosMode qos = QosMode::fixed;
  std::optional<BytesPerSecond> bandwidth{};
  Picoseconds window{};  ///< what the bandwidth allows for this long may be taken at once

  bool operator==(const MasterUse&) const = default;
};

/// What the master moves on average, of DMA alone: without its driver's copy.
[[nodiscard]] BytesPerSecond mean_rate(const MasterSpec& master);
/// How long its largest transfer takes of its deadline's time if it gets `bandwidth` and `at_once` bytes of
/// it without a wait; none if that is in time, or it has no deadline.
[[nodiscard]] std::optional<Picoseconds> overdue(const MasterSpec& master, BytesPerSecond bandwidth,
                                                 Bytes at_once);
/// The core that its driver, or the program itself, takes; none if it needs no core.
[[nodiscard]] std::optional<std::int64_t> core_of(const MasterSpec& master);
/// The largest of its transfers.
[[nodiscard]] Bytes largest(const SeriesSpec& series);
/// Bytes of a line of a scan, all planes.
[[nodiscard]] Bytes line_bytes(const ScanSpec& scan);
/// Time between two lines of a scan.
[[nodiscard]] Picoseconds line_time(const ScanSpec& scan);
/// What the master keeps in memory: two frames, a ring and as much for the copies, or some of its bursts
/// or transfers.
[[nodiscard]] Bytes buffer_bytes(const MasterSpec& master);

}  // namespace kvsim::config
