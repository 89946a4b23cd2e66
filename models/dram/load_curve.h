// SPDX-License-Identifier: Apache-2.0
// A part by itself: request patterns, closed-form bounds of their bandwidth, and latency against load.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "configs/spec/dram_spec.h"
#include "configs/units/quantity.h"
#include "models/dram/address_map.h"
#include "models/dram/request_source.h"

namespace kvsim::model {

/// In order; anywhere; every 4 KiB; heads of a KV cache of 512 KiB each side by side; half in order, half
/// anywhere.
enum class Pattern : std::uint8_t { seq, random, stride, kv, mix };
inline constexpr int kPatterns = static_cast<int>(Pattern::mix) + 1;
[[nodiscard]] std::string_view to_string(Pattern pattern);

struct PatternSpec {
  Pattern pattern = Pattern::seq;
  std::int64_t requests = 1'000'000;
  double read_share = 1;
  std::int64_t streams = 1;  ///< that take turns line by line, each in a region of its own
  Bytes capacity = {};       ///< of the memory
};

/// The same numbers on every machine (splitmix64).
class PatternRandom {
 public:
  [[nodiscard]] std::uint64_t next();
  /// In [0, 1).
  [[nodiscard]] double unit();

 private:
  std::uint64_t state_ = 0x9E3779B97F4A7C15;
};

class PatternSource : public RequestSource {
 public:
  explicit PatternSource(const PatternSpec& spec);
  std::span<const PackedRequest> next() override;

 private:
  [[nodiscard]] std::uint64_t line();
  [[nodiscard]] std::uint64_t stream_line();

  PatternSpec spec_;
  std::uint64_t lines_;
  std::int64_t left_;
  std::uint64_t position_ = 0;  ///< of the reads in order,
  std::uint64_t written_ = 0;   ///< and of the writes
  PatternRandom random_;
  std::vector<PackedRequest> batch_;
};

struct BoundCase {
  const config::DramPartSpec& part;
  const config::MemoryControllerSpec& controller;
  Picoseconds elapsed;    ///< how long the pattern ran
  double read_share = 1;  ///< writes go in order, unless all is random
  std::int64_t streams = 1;
};
/// What no schedule of the pattern can exceed: its data beats between refreshes, and for patterns without row
/// hits its activates and row cycles. Sequential: the bus stands still from the last beat before a refresh to
/// the first one after it.
[[nodiscard]] BytesPerSecond bandwidth_bound(const BoundCase& c, Pattern pattern);

/// Requests that come by themselves, at random times.
struct LoadPoint {
  BytesPerSecond offered;
  BytesPerSecond served;
  Picoseconds mean_latency;  ///< of reads, from arrival to the last data beat
  Picoseconds p99_latency;
};
[[nodiscard]] LoadPoint load_point(const config::DramPartSpec& part,
                                   const config::MemoryControllerSpec& controller, RequestSource& source,
                                   BytesPerSecond offered);

}  // namespace kvsim::model
