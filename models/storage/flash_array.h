// SPDX-License-Identifier: Apache-2.0
// Dies on channels: a die does one array operation at a time, a channel moves one page at a time. Time is an
// argument.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "configs/spec/storage_spec.h"
#include "models/dram/fifo.h"
#include "models/storage/calendar.h"
#include "traces/record/spread.h"

namespace kvsim::model {

enum class StorageEvent : std::uint8_t {
  request_issued,   ///< the job's thread has done its share
  command_arrived,  ///< at the firmware
  command_started,  ///< by the firmware
  link_read,        ///< data has reached the host,
  link_written,     ///< or the device
  completed,        ///< the thread knows
  array_end,
  transfer_end,
};

using StorageCalendar = Calendar<StorageEvent>;
using OpIndex = std::uint32_t;
inline constexpr OpIndex kNoOp = 0xffff'ffff;

/// What an operation is for.
enum class OpPurpose : std::uint8_t { data, read_ahead, old_data, map, map_flush, collect, destage, erase };
enum class OpKind : std::uint8_t { read, program, erase };

struct FlashOp {
  OpKind kind = OpKind::read;
  OpPurpose purpose = OpPurpose::data;
  std::uint32_t die = 0;
  std::uint64_t set = 0;       ///< page set, which stays in the die's register after a read
  Picoseconds array = {};      ///< time of the array
  Bytes moved = {};            ///< on the channel
  std::uint32_t owner = 0;     ///< command, read-ahead entry
  Bytes wanted = {};           ///< by the host, of what is moved
  OpIndex next = kNoOp;        ///< may begin after this one,
  std::uint32_t blockers = 0;  ///< or rather after so many
};

class FlashArray {
 public:
  FlashArray(const config::StorageFlash& flash, double stretch, std::uint64_t seed,
             StorageCalendar& calendar);

  /// A place for an operation; it begins when enqueue() is called, or when those that name it as `next` are
  /// done.
  [[nodiscard]] OpIndex make(const FlashOp& op);
  void enqueue(OpIndex op, Picoseconds now);
  [[nodiscard]] const FlashOp& op(OpIndex index) const { return ops_[index]; }
  /// `op` begins after `before`.
  void chain(OpIndex before, OpIndex op);

  /// Takes an event of this array. Returns the operation that is done with it, which release() gives back.
  [[nodiscard]] std::optional<OpIndex> handle(const StorageCalendar::Event& event);
  void release(OpIndex op, Picoseconds now);

  [[nodiscard]] std::int64_t retries() const { return retries_; }
  [[nodiscard]] std::int64_t suspends() const { return suspends_; }
  [[nodiscard]] std::int64_t pending() const { return pending_; }
  /// Of `bytes` of a page set on a channel.
  [[nodiscard]] Picoseconds transfer_time(Bytes bytes) const;

 private:
  static constexpr std::uint64_t kNoSet = ~std::uint64_t{0};
  struct Die {
    OpIndex array = kNoOp;  ///< in the array, a program also while its data comes in
    bool array_runs = false;
    bool waits = false;  ///< the array has read, and the register is not free
    Picoseconds array_end;
    std::uint32_t stamp = 0;
    OpIndex moving = kNoOp;  ///< in the register, on its way out
    OpIndex suspended = kNoOp;
    Picoseconds left = {};  ///< of the suspended one
    std::uint64_t set = kNoSet;
    int reads_in_row = 0;
    Fifo<OpIndex> urgent;  ///< reads that somebody waits for
    Fifo<OpIndex> other;
  };

  void start(std::uint32_t die, Picoseconds now);
  void start_read(Die& die, OpIndex op, Picoseconds begin);
  void start_other(Die& die, OpIndex op, Picoseconds now);
  void run_array(Die& die, OpIndex op, Picoseconds end);
  void move_out(Die& die, OpIndex op, Picoseconds now);
  [[nodiscard]] std::optional<OpIndex> end_array(Die& die, Picoseconds now);
  [[nodiscard]] Picoseconds reserve_channel(std::uint32_t die, Bytes bytes, Picoseconds now);
  [[nodiscard]] int retry_steps();

  config::StorageFlash flash_;
  double stretch_;
  trace::SplitMix64 random_;
  StorageCalendar& calendar_;
  std::vector<Die> dies_;
  std::vector<Picoseconds> channel_free_;
  std::vector<FlashOp> ops_;
  std::vector<OpIndex> spare_;
  std::int64_t retries_ = 0;
  std::int64_t suspends_ = 0;
  std::int64_t pending_ = 0;
};

}  // namespace kvsim::model
