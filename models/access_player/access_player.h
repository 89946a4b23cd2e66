// SPDX-License-Identifier: Apache-2.0
// A core that plays single accesses, in order, through its private cache and the last-level cache to DRAM.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "configs/spec/device_spec.h"
#include "configs/units/quantity.h"
#include "models/accounting/time_account.h"
#include "models/cache/cache.h"
#include "models/memory_path/memory_path.h"
#include "models/stream/engine_stream.h"
#include "traces/record/record.h"

namespace kvsim::model {

/// What a level of cache did, in lines.
struct LevelCounts {
  std::int64_t hits = 0;
  std::int64_t fills = 0;        ///< fetched from the level behind
  std::int64_t write_backs = 0;  ///< modified lines handed to the level behind

  friend LevelCounts operator-(const LevelCounts& a, const LevelCounts& b) {
    return {a.hits - b.hits, a.fills - b.fills, a.write_backs - b.write_backs};
  }
  bool operator==(const LevelCounts&) const = default;
};

/// Plain C++: one engine needs no arbitration, so the path's event loop is called without a SystemC kernel.
class AccessPlayer {
 public:
  /// A line that DRAM was asked for, or was handed.
  struct Moved {
    trace::Address address = 0;
    trace::Access access = trace::Access::read;
  };
  struct Played {
    Picoseconds now;      ///< when all was used
    TimeAccount account;  ///< the time since the one before
  };
  /// The levels, nearest to the core first.
  static constexpr std::size_t kLevels = 2;

  /// The first core of the device, alone; caches empty, time 0.
  explicit AccessPlayer(const config::DeviceSpec& device);

  /// The core works before its next access; `instructions` of them tell how far its loads reach ahead.
  void work(Picoseconds time, std::int64_t instructions);
  /// The core touches bytes of the line at this physical address.
  void access(trace::Address line, trace::Access access, Owner owner);
  /// The core waits for all it has asked for, and ends its work.
  Played drain();

  [[nodiscard]] const std::array<LevelCounts, kLevels>& levels() const { return levels_; }
  [[nodiscard]] MemoryCounters memory() const { return path_->counters(); }
  /// Lines moved since the caller cleared them.
  [[nodiscard]] std::vector<Moved>& moved() { return moved_; }

 private:
  void fill(trace::Address line, Owner owner);
  void write_back(const WriteBack& line);
  void flush();
  void push(const Segment& segment);
  void run();

  config::CoreSpec core_;
  Picoseconds hit_time_;  ///< a line from the last-level cache
  std::unique_ptr<MemoryPath> path_;
  EngineStream& stream_;
  Cache private_;
  Cache llc_;
  std::array<LevelCounts, kLevels> levels_{};
  std::vector<Moved> moved_;
  std::vector<Segment> held_;      ///< the last line from DRAM, and write-backs since
  Picoseconds work_;               ///< since the last line from beyond the private cache,
  Picoseconds lead_in_;            ///< and since the last one from DRAM
  std::int64_t instructions_ = 0;  ///< since then
  std::int64_t outstanding_ = 0;   ///< segments
  BusTime bus_;                    ///< until the last drain,
  Picoseconds drained_;            ///< and when that was
};

}  // namespace kvsim::model
