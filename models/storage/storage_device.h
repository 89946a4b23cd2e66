// SPDX-License-Identifier: Apache-2.0
// A storage device and its host's share of each request, on a calendar of its own: requests in, completions
// out in order of time. The same requests with the same seed give the same times.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "configs/spec/storage_spec.h"
#include "models/dram/fifo.h"
#include "models/storage/flash_array.h"
#include "models/storage/ftl.h"
#include "models/storage/map_cache.h"
#include "models/storage/read_ahead.h"

namespace kvsim::model {

enum class StorageOp : std::uint8_t { read, write, discard };

/// What can become of a request. None is a failure of the simulation.
enum class StorageStatus : std::uint8_t {
  ok,
  beyond_capacity,  ///< it begins or, if it reads, ends past the capacity
  read_only,
  device_full,  ///< a write that passes the capacity, or finds no free block
  misaligned,   ///< not whole sectors, or empty
};

struct StorageRequest {
  StorageOp op = StorageOp::read;
  Bytes offset = {};
  Bytes bytes = {};
  Picoseconds when = {};  ///< not before the last completion taken
  std::int64_t lane = 0;  ///< the thread that asks; one does its share of one request at a time
};

struct StorageCompletion {
  std::uint64_t id = 0;
  StorageRequest request;
  StorageStatus status = StorageStatus::ok;
  Bytes place = {};         ///< where it went wrong: bytes before it are done
  Picoseconds issued = {};  ///< the thread had done its share
  Picoseconds done = {};
};

struct StorageCounters {
  Bytes host_read, host_written;
  Bytes slc_programmed;     ///< data written into blocks of one bit per cell,
  Bytes native_programmed;  ///< and into others, the collector's included
  Bytes map_programmed;     ///< mapping pages, with one bit per cell
  Bytes collected;          ///< copied by the collector
  std::int64_t page_reads = 0;
  std::int64_t map_hits = 0, map_misses = 0;
  std::int64_t map_flushes = 0;
  std::int64_t retries = 0, suspends = 0;
  std::int64_t erases = 0;  ///< of superblocks
};

[[nodiscard]] StorageCounters operator-(StorageCounters a, const StorageCounters& b);

struct StorageWear {
  double write_amplification = 0;  ///< bytes programmed for each byte that the host wrote; 0: it wrote none
  double cycles = 0;               ///< program and erase cycles used, mean over all blocks
  EraseCounts erases;
  /// Until the rated cycles are used, if so much is written each day as was here. None: nothing was written.
  std::optional<double> days_to_endurance;
};

class StorageDevice {
 public:
  struct Setup {
    std::uint64_t seed = 1;
    Celsius temperature{40};
  };
  explicit StorageDevice(const config::StoragePartSpec& part) : StorageDevice(part, Setup{}) {}
  StorageDevice(const config::StoragePartSpec& part, const Setup& setup);
  StorageDevice(const StorageDevice&) = delete;
  StorageDevice& operator=(const StorageDevice&) = delete;

  /// The id of its completion.
  std::uint64_t submit(const StorageRequest& request);
  /// The next completion; none if no request is left.
  [[nodiscard]] std::optional<StorageCompletion> next();
  /// The same, of those up to `until`.
  [[nodiscard]] std::optional<StorageCompletion> next_until(Picoseconds until);
  /// When something happens next, for those who drive it along with a clock of their own.
  [[nodiscard]] std::optional<Picoseconds> next_event() const;

  /// Fills a range as if it had been written in order long ago: takes no time and is not counted. False if it
  /// does not fit.
  [[nodiscard]] bool lay_out(Bytes offset, Bytes bytes);

  [[nodiscard]] const config::StoragePartSpec& part() const { return part_; }
  [[nodiscard]] const Ftl& ftl() const { return ftl_; }
  [[nodiscard]] StorageCounters counters() const;
  /// `bytes_per_day` is what the host writes.
  [[nodiscard]] StorageWear wear(BytesPerSecond written) const;
  /// Of `bytes` on the wires to the host.
  [[nodiscard]] Picoseconds link_time(Bytes bytes) const;
  /// Memory of the simulator that grows with what is written: tables of the mapping.
  [[nodiscard]] std::size_t memory() const { return ftl_.memory(); }

 private:
  using Event = StorageCalendar::Event;
  using Index = std::uint32_t;
  struct Request {
    StorageRequest asked;
    std::uint64_t id = 0;
    std::int64_t commands_left = 0;
    StorageStatus status = StorageStatus::ok;
    Bytes place = {};
    Picoseconds issued = {};
  };
  struct Command {
    Index request = 0;
    StorageOp op = StorageOp::read;
    Bytes offset = {};
    Bytes bytes = {};
    Bytes left = {};          ///< of a write, to come from the host
    Picoseconds linked = {};  ///< the last of what has been sent to the host arrives
    std::int64_t pieces = 0;  ///< under way
    bool has_map = false;
  };

  // storage_device.cpp: what requests have in common.
  std::optional<StorageCompletion> handle(const Event& event);
  void issue(Index request, Picoseconds now);
  void dispatch(Picoseconds now);
  void arrive(Index command, Picoseconds now);
  void begin(Index command, Picoseconds now);
  void finish(Index command, Picoseconds now);
  StorageCompletion complete(Index request, Picoseconds now);
  void end_operation(OpIndex op, Picoseconds now);
  [[nodiscard]] StorageStatus examine(const StorageRequest& request, Bytes& place) const;
  Picoseconds reserve_link(bool to_host, Bytes bytes, Picoseconds now);
  [[nodiscard]] Unit unit_of(Bytes offset) const;
  void drop_piece(Index command, Picoseconds now);

  // device_read.cpp
  void begin_read(Index command, Picoseconds now);
  void read_data(Index command, Picoseconds now);
  void read_run(Index command, UnitRun run, Picoseconds now);
  void read_set(FlashOp op, Unit physical, Unit units, Picoseconds now);
  void to_host(Index command, Bytes bytes, Picoseconds now);
  void read_map_page(std::uint32_t page, FlashOp op, Picoseconds now);
  void run_ahead(Bytes end, Picoseconds now);
  void fetch_ahead(Unit set, Picoseconds now);
  void end_ahead(Index entry, Picoseconds now);

  // device_write.cpp
  void begin_write(Index command, Picoseconds now);
  void begin_discard(Index command, Picoseconds now);
  void receive(Index command, Picoseconds now);
  void receive_end(Index command, Bytes bytes, Picoseconds now);
  void place(Index command, Unit first, Unit count, Picoseconds now);
  void program_full_sets(Unit physical, Unit count, OpPurpose purpose, Picoseconds now);
  [[nodiscard]] OpIndex program_set(Unit physical, OpPurpose purpose);
  bool collect(Picoseconds now);
  void collect_while_idle(Picoseconds gap);
  void note_changes(Unit logical, Unit count);
  void begin_flush(Picoseconds now);
  void program_map(Picoseconds now);
  void end_flush_operation(Picoseconds now);
  void unblock(Picoseconds now);

  config::StoragePartSpec part_;
  double stretch_;
  StorageCalendar calendar_;
  FlashArray flash_;
  Ftl ftl_;
  MapCache map_cache_;
  ReadAhead ahead_;
  StorageCounters counters_;
  std::vector<Request> requests_;
  std::vector<Index> spare_requests_;
  std::vector<Command> commands_;
  std::vector<Index> spare_commands_;
  Fifo<Index> waiting_;  ///< commands for which the device's queue has no place
  Fifo<Index> blocked_;  ///< writes for which the buffer has none
  std::int64_t in_flight_ = 0;
  std::int64_t open_requests_ = 0;
  std::uint64_t next_id_ = 0;
  std::vector<Picoseconds> lane_free_;
  Picoseconds firmware_free_;
  std::array<Picoseconds, 2> link_free_{};
  Picoseconds last_done_;
  Unit buffered_ = 0;
  Unit buffer_units_;
  std::int64_t flush_left_ = 0;
  std::int64_t flush_pages_ = 0;
  bool flush_programs_ = false;
  std::uint32_t map_die_ = 0;  ///< that the next mapping pages are programmed into
  std::vector<UnitMove> moves_;
};

/// What `counters` mean for the part if the host writes so much; erase counts are left out.
[[nodiscard]] StorageWear wear_of(const config::StoragePartSpec& part, const StorageCounters& counters,
                                  BytesPerSecond written);

[[nodiscard]] const char* to_string(StorageStatus status);

}  // namespace kvsim::model
