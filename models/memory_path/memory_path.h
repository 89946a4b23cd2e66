// SPDX-License-Identifier: Apache-2.0
// The way from the engines' line streams through the interconnect to the DRAM channels and back.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "configs/spec/device_spec.h"
#include "models/dram/energy.h"
#include "models/stream/engine_stream.h"

namespace kvsim::model {

/// How requests travel: burst by burst, or as trains of bursts within a row.
enum class Granularity { burst, train };

/// What memory did so far, in bytes and column commands.
struct MemoryCounters {
  Bytes read;
  Bytes written;
  std::int64_t row_hits = 0;
  std::int64_t row_misses = 0;
  std::int64_t row_conflicts = 0;
  std::int64_t activates = 0;
  std::int64_t refreshes = 0;
};
[[nodiscard]] MemoryCounters operator-(const MemoryCounters& a, const MemoryCounters& b);

/// Streams and channels in plain C++. Time order holds across all streams and channels, so what a stream may
/// see never depends on how far another has been simulated (in trains: by more than a train's time).
class MemoryPath {
 public:
  static constexpr std::size_t kMaxStreams = 64;

  MemoryPath() = default;
  MemoryPath(const MemoryPath&) = delete;
  MemoryPath& operator=(const MemoryPath&) = delete;
  virtual ~MemoryPath() = default;

  /// A stream of this path's granularity; owned by the path.
  virtual EngineStream& add_stream(const StreamWindow& window) = 0;

  /// Simulates until a stream has used up a segment and every earlier event is done, or nothing is left to
  /// do, or `limit` is reached. Returns the time up to which everything is known, EngineStream::kNever if
  /// nothing is left.
  virtual Picoseconds run_until(Picoseconds limit) = 0;
  Picoseconds run() { return run_until(EngineStream::kNever); }

  [[nodiscard]] virtual MemoryCounters counters() const = 0;
  /// What cost energy until `now`, which no engine has passed: with the refreshes and the sleep of ranks that
  /// nothing was asked of.
  [[nodiscard]] virtual DramActivity activity(Picoseconds now) = 0;
  /// What the data buses did until now.
  [[nodiscard]] virtual BusTime bus_time() = 0;
};

/// What of a device trains do not know, as keys of it (N: of any cluster): empty if they know all.
[[nodiscard]] std::vector<std::string_view> unknown_to_trains(const config::DeviceSpec& device);
/// Trains where they know all that the controller does, else bursts.
[[nodiscard]] std::unique_ptr<MemoryPath> make_memory_path(const config::DeviceSpec& device,
                                                           Granularity granularity);

}  // namespace kvsim::model
