// SPDX-License-Identifier: Apache-2.0
// Plays a raw request stream on the channels of a part as fast as their queues take it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "configs/spec/dram_spec.h"
#include "models/dram/address_map.h"
#include "models/dram/channel.h"
#include "models/dram/fifo.h"
#include "models/dram/play_statistics.h"
#include "models/dram/request_source.h"

namespace kvsim::model {

/// What a scheduling decision covers.
enum class Decisions : std::uint8_t {
  bursts,  ///< one burst
  rows,    ///< all bursts that are queued for a row
};

struct PlayResult {
  std::int64_t requests = 0;
  std::int64_t reads = 0;
  Bytes moved;                         ///< that were asked for
  Picoseconds elapsed = {};            ///< from 0 to the last data beat
  Picoseconds mean_read_latency = {};  ///< from a place in the queue to the last data beat
  ChannelCounters counters = {};
  std::vector<BankCounters> banks = {};  ///< channel by channel
  BusCycles bus = {};                    ///< of all channels together
  DramActivity activity = {};            ///< until `elapsed`
  // Of reads, where every burst is a decision; else empty:
  ReadCycles read_cycles = {};
  Histogram latencies = {};  ///< in cycles
};

/// Requests enter in order, each when the queue of its channel and direction (or of its bank) has room; one
/// that has to wait keeps back those behind it. A request that is not aligned takes as many bursts as it
/// touches, and writes parts of bursts masked.
class RequestPlayer {
 public:
  RequestPlayer(const config::DramPartSpec& part, const config::MemoryControllerSpec& controller,
                Decisions decisions);

  /// Plays all of `source`. Throws UserError for a request beyond the memory's end.
  [[nodiscard]] PlayResult play(RequestSource& source);
  /// Records the commands of `channel` into `log` (not owned; null stops it).
  void log_commands(std::size_t channel, std::vector<IssuedCommand>* log) {
    channels_[channel].controller.log_commands(log);
  }
  /// From now on what cost energy until every `interval` is added to `samples` (not owned).
  void sample_activity(Picoseconds interval, std::vector<DramActivity>* samples);
  /// Plays the next batch of `source`, for callers that do something between batches. False after the last.
  [[nodiscard]] bool take_batch(RequestSource& source);
  [[nodiscard]] PlayResult result() const;

 private:
  /// Places in a queue that became free one after the other.
  struct FreePlaces {
    Cycle first = 0;
    Cycle spacing = 0;
    std::int64_t count = 0;
  };
  /// The part of a request that lies in one row of one channel.
  struct Piece {
    std::size_t channel = 0;
    RowRun run;
  };
  struct InFlight {
    Cycle accepted = 0;
    int pieces = 0;  ///< not yet served
    Cycle end = 0;   ///< of the data so far
    ReadCycles cycles = {};
  };
  struct ChannelState {
    ChannelController controller;
    BusAccount bus;
  };

  void split(PackedRequest request);
  [[nodiscard]] Piece piece(std::uint64_t address, std::uint64_t end, PackedRequest request) const;
  [[nodiscard]] std::size_t queue_of(std::size_t channel, std::uint16_t bank, trace::Access access) const;
  [[nodiscard]] std::int64_t take_alike(std::int64_t most);
  void admit_burst(const FreePlaces& places, RowRun& run);
  void admit_rows(const FreePlaces& places, RowRun& run);
  [[nodiscard]] bool admit_all();
  [[nodiscard]] bool advance();
  void note_served(std::size_t channel, const Served& served);
  void note_burst(const Served& served);
  void take_samples(Cycle until);
  [[nodiscard]] Cycle end() const;
  [[nodiscard]] DramActivity activity(Cycle until) const;

  ClockTiming timing_;
  CommandClock clock_;
  AddressMap map_;
  bool pooled_;
  bool joins_;
  std::uint64_t capacity_;
  std::uint64_t burst_bytes_;
  std::uint64_t granule_;
  std::uint64_t granule_rest_;  ///< bits in which aligned requests of one granule may differ
  std::uint16_t banks_;
  int column_shift_;
  int burst_shift_ = 0;

  std::vector<ChannelState> channels_;
  std::vector<Fifo<FreePlaces>> places_;  ///< by queue
  Cycle accepted_ = 0;                    ///< clock of the last request that got a place

  std::span<const PackedRequest> batch_;  ///< not yet split
  PackedRequest request_ = 0;             ///< split last
  std::vector<Piece> pieces_;             ///< of the request that waits for its place,
  std::size_t next_piece_ = 0;            ///< from here on
  std::vector<InFlight> in_flight_;
  std::vector<std::uint32_t> free_tags_;
  std::uint32_t tag_ = 0;

  Picoseconds sample_interval_;
  Picoseconds next_sample_;
  Cycle sample_due_ = ChannelController::kNever;
  std::vector<DramActivity>* samples_ = nullptr;

  std::int64_t requests_ = 0;
  std::int64_t reads_ = 0;
  std::int64_t read_pieces_ = 0;
  std::int64_t latency_sum_ = 0;  ///< of reads in cycles
  ReadCycles read_cycles_;
  Histogram latencies_;
};

}  // namespace kvsim::model
