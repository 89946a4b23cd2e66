// SPDX-License-Identifier: Apache-2.0
// Weights that the engine reads from storage itself, past the page cache: a layer on its way while another
// one is computed.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "configs/spec/weight_stream_spec.h"
#include "configs/spec/weight_units.h"
#include "models/storage/storage_device.h"

namespace kvsim::model {

/// What was asked for and what that cost: asked = read - rounding.
struct LayerReads {
  Bytes asked;
  Bytes read;      ///< by the device, in whole blocks
  Bytes rounding;  ///< of it, what the blocks hold of others
  std::int64_t requests = 0;
  Picoseconds stall;
};

/// Units are used in their order, step after step; the last one, the output, only in steps that need it. A
/// unit is read into a buffer of its own, which is free again when the next unit is begun. Reads are made in
/// order, over the ends of units and steps, as far as there are buffers.
class LayerStream {
 public:
  /// `units` without what stays in memory. `device` holds the file at its beginning and is nobody else's.
  LayerStream(StorageDevice& device, const config::WeightStream& how, std::vector<config::WeightUnit> units);

  /// All units of the step before have been used.
  void begin_step(bool with_output, Picoseconds now);
  /// The unit is begun, or worked with on: waits until it is there. Precondition: it is the one in hand, or
  /// the next in order.
  [[nodiscard]] LayerReads use(std::size_t unit, Picoseconds now);
  /// Ranges that are in no unit, read on the spot.
  [[nodiscard]] LayerReads read(std::span<const config::FileRange> ranges, Picoseconds now);

 private:
  /// A unit that has a buffer.
  struct Ahead {
    std::size_t unit = 0;
    std::int64_t left = 0;  ///< requests not done
    Picoseconds there;      ///< when the last of them was
  };
  struct Read {
    std::uint64_t unit = 0;  ///< counted from the first one read; kDemand: of none
    Bytes offset;
    Bytes bytes;
  };
  struct Open {
    std::uint64_t id = 0;
    std::uint64_t unit = 0;
  };

  [[nodiscard]] bool is_streamed(std::size_t unit) const { return !units_[unit].empty(); }
  [[nodiscard]] bool skip_to_streamed();
  void plan(Picoseconds now);
  std::int64_t cut(const config::FileRange& range, std::uint64_t unit, std::deque<Read>& out) const;
  void submit(const Read& read, std::int64_t lane, Picoseconds now);
  void start(Picoseconds now);
  void finish(const StorageCompletion& done);

  StorageDevice& device_;
  config::WeightStream how_;
  std::vector<config::WeightUnit> units_;
  std::size_t most_ahead_;
  std::deque<Ahead> ahead_;         ///< the one in hand first, if it is streamed
  std::uint64_t first_ = 0;         ///< number of ahead_'s first
  std::deque<Read> reads_;          ///< not begun
  std::vector<Open> open_;          ///< at the device
  std::vector<std::int64_t> idle_;  ///< lanes
  std::int64_t demanded_ = 0;       ///< open reads of no unit,
  Picoseconds demand_there_;        ///< and when the last was done
  std::size_t next_ = 0;            ///< unit to be planned
  bool in_next_step_ = false;       ///< that one is
  bool with_output_ = false;        ///< this step
  bool held_ = false;               ///< ahead_'s first is in hand
  std::size_t in_hand_;             ///< unit; that behind the last: none
};

}  // namespace kvsim::model
