// SPDX-License-Identifier: Apache-2.0
// What an engine asks of memory, in order, and when it has used it: the side that the engine sees.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "configs/units/quantity.h"
#include "models/accounting/time_account.h"
#include "models/dram/fifo.h"
#include "traces/record/record.h"

namespace kvsim::model {

inline constexpr std::int64_t kLineBytes = 64;

/// What an engine may take at its port to the interconnect: a bucket of `burst` lines that fills by a line
/// each `interval`. Zero: all it can.
struct Regulation {
  Picoseconds interval{};
  Picoseconds burst{};  ///< the bucket, in the time that fills it
};

/// When a regulated line may go, and the bucket after it.
class Regulator {
 public:
  explicit Regulator(const Regulation& regulation)
      : interval_(regulation.interval), burst_(std::max(regulation.interval, regulation.burst)) {}
  [[nodiscard]] bool acts() const { return interval_ != Picoseconds(); }
  [[nodiscard]] Picoseconds earliest(Picoseconds time) const {
    return acts() ? std::max(time, full_ - burst_ + interval_) : time;
  }
  void pass(Picoseconds time) { full_ = std::max(full_, time) + interval_; }

 private:
  Picoseconds interval_;
  Picoseconds burst_;
  Picoseconds full_{};  ///< when the bucket is full again
};

/// How far an engine runs ahead of the line it is working on, in cache lines.
struct StreamWindow {
  std::int64_t in_flight = 1;  ///< asked for and not yet there
  std::int64_t ahead = 1;      ///< asked for and not yet used
  std::int64_t stores = 1;     ///< written and not yet taken by memory
  /// A hardware prefetcher starts anew at every page and needs `training` demand misses before it runs ahead;
  /// 0 is an engine that knows its addresses (DMA).
  std::int64_t training = 0;
  Bytes page{4096};
  std::uint8_t priority = 0;  ///< at the memory controllers: 3 goes first
  Regulation regulation{};
  Regulation promise{};  ///< the priority counts while its bucket is not empty; zero: always
};

/// A strided run of lines that an engine reads or writes in order, and what it does with each line.
struct Segment {
  trace::Address address = 0;
  Bytes row_bytes{};
  std::int64_t rows = 1;
  Bytes stride{};
  trace::Access access = trace::Access::read;
  Owner owner = Owner::other_data;  ///< of its data beats
  Picoseconds per_line{};           ///< work on one line
  std::int64_t demand_lines =
      1;                  ///< lines that loads reach ahead without the prefetcher, at this much work a line
  Picoseconds lead_in{};  ///< work on data at hand before the first line
  bool posted = false;    ///< a write-back: it leaves without waiting for the work before it
};

/// Lines are asked for in order while the window has room, and used in order, each after it arrived and the
/// one before was used. How that is simulated, line by line or in trains, is the derived class's business.
class EngineStream {
 public:
  static constexpr Picoseconds kNever{std::numeric_limits<std::int64_t>::max()};

  virtual ~EngineStream() = default;

  /// Starts at `now` with an empty window. Precondition: idle().
  virtual void begin(Picoseconds now) = 0;
  virtual void push(const Segment& segment) = 0;
  /// All that was pushed has been used.
  [[nodiscard]] virtual bool idle() const = 0;

  /// When each segment was used up that nobody has popped yet, in order.
  [[nodiscard]] Fifo<Picoseconds>& finished() { return finished_; }
  [[nodiscard]] const Fifo<Picoseconds>& finished() const { return finished_; }
  [[nodiscard]] Picoseconds used_until() const { return used_until_; }
  /// Where the engine's time since begin() went, besides its work.
  [[nodiscard]] const EngineTime& engine_time() const { return engine_time_; }

 protected:
  EngineStream() = default;
  EngineStream(const EngineStream&) = default;
  EngineStream(EngineStream&&) = default;
  EngineStream& operator=(const EngineStream&) = default;
  EngineStream& operator=(EngineStream&&) = default;

  Picoseconds used_until_;
  EngineTime engine_time_;
  Fifo<Picoseconds> finished_;
};

}  // namespace kvsim::model
