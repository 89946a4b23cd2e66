// SPDX-License-Identifier: Apache-2.0
// The cache lines one engine keeps in flight: which it may ask for next, and when it has used them.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "configs/units/quantity.h"
#include "models/accounting/time_account.h"
#include "models/dram/fifo.h"
#include "models/stream/engine_stream.h"
#include "traces/record/record.h"

namespace kvsim::model {

/// A request to memory: consecutive lines within one row of one channel.
struct Piece {
  trace::Address address = 0;
  std::int64_t lines = 0;
  trace::Access access = trace::Access::read;
  Owner owner = Owner::other_data;
  std::uint32_t slot = 0;  ///< the stream's name for it
  Picoseconds first;  ///< when its first line is asked for; the last is at next_issue(), the others between
};

/// What comes back for a piece that was read.
struct Delivery {
  Picoseconds first{};        ///< its first line arrives,
  Picoseconds last{};         ///< and its last
  Picoseconds behind_data{};  ///< it waited for others' data beats,
  Picoseconds held{};         ///< and for something else:
  Owner held_by = Owner::queue;
};

/// A line may be asked for while fewer than `in_flight` are on their way and fewer than `ahead` wait to be
/// used; lines are used in order, each after it arrived and the one before was used. The same rules hold line
/// by line in a piece.
class LineStream final : public EngineStream {
 public:
  /// Pieces stay within blocks of `granule` and hold at most `max_lines` lines, which are asked for within
  /// `spread`.
  struct Pieces {
    Bytes granule;
    std::int64_t max_lines = 1;
    Picoseconds spread;
  };
  LineStream(const StreamWindow& window, const Pieces& pieces);

  void begin(Picoseconds now) override;
  void push(const Segment& segment) override;
  [[nodiscard]] bool idle() const override { return segments_.empty() && used_ == issued_; }

  /// When all of the next piece is asked for: kNever while that hangs on a piece in flight or nothing is
  /// queued.
  [[nodiscard]] Picoseconds next_issue() const { return issue_; }
  Piece issue();
  /// The piece in `slot` arrives.
  void arrived(std::uint32_t slot, const Delivery& delivery);
  /// Memory has taken the store in `slot` at `time`.
  void taken(std::uint32_t slot, Picoseconds time);

 private:
  /// What is known of a piece that was issued.
  struct Slot {
    std::int64_t line_end = 0;  ///< lines issued up to and including this piece
    std::int64_t lines = 0;
    Picoseconds first_arrived = kNever;  ///< first line,
    Picoseconds arrived = kNever;        ///< last line
    Picoseconds first_used = kNever;
    Picoseconds used = kNever;
    Picoseconds per_line;
    Picoseconds lead_in;
    Picoseconds behind_data;
    Picoseconds held;
    Owner held_by = Owner::queue;
    bool ends_segment = false;
  };
  /// Reads arrive in the order in which arrived() is called, which need not be the order of issue.
  struct Arrival {
    std::int64_t line_end = 0;  ///< lines arrived up to and including this piece
    std::uint32_t slot = 0;
  };
  struct StoreSlot {
    std::int64_t line_end = 0;  ///< lines stored up to and including this piece
    Picoseconds taken = kNever;
  };
  static constexpr std::uint32_t kStore = 1u << 31;  ///< marks a piece's slot as a store's

  [[nodiscard]] Slot& slot(std::uint64_t sequence) { return slots_[sequence & (slots_.size() - 1)]; }
  [[nodiscard]] Arrival& arrival(std::uint64_t sequence) {
    return arrivals_[sequence & (arrivals_.size() - 1)];
  }
  [[nodiscard]] StoreSlot& store(std::uint64_t sequence) { return stores_[sequence & (stores_.size() - 1)]; }

  void enter_row();
  [[nodiscard]] std::int64_t cut_lines();
  void consume_lines(std::int64_t lines);

  void plan_issue();
  void plan_read();
  void plan_store();
  [[nodiscard]] bool hold_read(std::int64_t line, Picoseconds& time);
  [[nodiscard]] bool hold_for_arrivals(std::int64_t lines, Picoseconds& time);
  [[nodiscard]] bool hold_for_use(std::uint64_t& pointer, std::int64_t line, Picoseconds& time);
  void note_store(Piece& piece);
  void use_arrived();
  void use(Slot& slot);
  void account_stall(const Slot& slot, Picoseconds stall);

  StreamWindow window_;
  std::int64_t granule_;
  std::int64_t max_lines_;
  Picoseconds spread_;

  Fifo<Segment> segments_;
  std::int64_t row_ = 0;         ///< of the front segment,
  std::int64_t row_at_ = 0;      ///< its next line,
  std::int64_t row_end_ = 0;     ///< and the end of its last; equal to row_at_ before the segment has begun
  std::int64_t page_ = -1;       ///< of the reads
  std::int64_t page_lines_ = 0;  ///< lines read since the page began

  std::vector<Slot> slots_;
  std::uint64_t issued_ = 0;  ///< pieces
  std::uint64_t used_ = 0;
  std::uint64_t ahead_at_ = 0;   ///< piece that the ahead rule waits for,
  std::uint64_t demand_at_ = 0;  ///< and the demand rule
  std::int64_t lines_ = 0;       ///< issued
  std::int64_t lines_at_begin_ = 0;

  std::vector<Arrival> arrivals_;
  std::uint64_t arrived_ = 0;     ///< pieces
  std::uint64_t arrival_at_ = 0;  ///< arrival that the in-flight rule waits for
  std::int64_t lines_arrived_ = 0;

  std::vector<StoreSlot> stores_;
  std::uint64_t stores_issued_ = 0;
  std::uint64_t stores_at_ = 0;
  std::int64_t store_lines_ = 0;

  std::int64_t piece_lines_ = 0;  ///< of the next piece
  Picoseconds first_;             ///< its first line can be asked for,
  Picoseconds issue_ = kNever;    ///< and its last
  Picoseconds last_issue_;
};

}  // namespace kvsim::model
