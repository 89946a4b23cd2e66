// SPDX-License-Identifier: Apache-2.0
#include "models/psram/psram_player.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "configs/error/error.h"

namespace kvsim::model {

using trace::Access;

namespace {

constexpr auto kLine = static_cast<std::uint64_t>(kRequestBytes);

Access access_of(PackedRequest request) {
  return (request & 1) != 0 ? Access::write : Access::read;
}

}  // namespace

// --- the bus
// ------------------------------------------------------------------------------------------------

PsramBus::PsramBus(const config::DramPartSpec& part) : burst_(part.burst_length / part.transfers_per_clock) {
  check(part.psram.has_value(), "a serial PSRAM has its timings");
  const CommandClock clock(command_clock(part));
  const auto cycles = [&](const config::ClockedTime& t) { return std::max(clock.cycles(t.time), t.clocks); };
  const config::PsramTiming& t = *part.psram;
  command_ = cycles(t.command);
  read_latency_ = cycles(t.read_latency);
  write_latency_ = cycles(t.write_latency);
  refresh_latency_ = cycles(t.refresh_latency);
  tREFI_ = cycles(t.tREFI);
  setup_ = cycles(t.setup);
  hold_ = cycles(t.hold);
  tCPH_ = cycles(t.tCPH);
  controller_ = clock.cycles(t.controller);
  refresh_due_ = tREFI_;
}

PsramBus::Transfer PsramBus::transfer(Cycle asked, Access access) {
  Transfer t;
  t.select = std::max(asked, free_) + controller_;
  t.waited = refresh_wait(t.select);
  t.data_start =
      t.select + setup_ + command_ + (access == Access::read ? read_latency_ : write_latency_) + t.waited;
  t.data_end = t.data_start + burst_;
  selected_ = t.select;
  released_ = t.data_end + hold_;
  free_ = released_ + tCPH_;
  return t;
}

/// The chip refreshes itself when it is not selected: one that fell due during the last command has begun at
/// its end. A command that comes before it is done waits the whole additional latency.
Cycle PsramBus::refresh_wait(Cycle select) {
  if (tREFI_ == 0 || refresh_latency_ == 0) {
    return 0;
  }
  bool under_way = false;
  for (; refresh_due_ <= select; refresh_due_ += tREFI_) {
    const bool was_selected = refresh_due_ >= selected_ && refresh_due_ < released_;
    const Cycle begin = was_selected ? released_ : refresh_due_;
    under_way = select < begin + refresh_latency_;
  }
  return under_way ? refresh_latency_ : 0;
}

Cycle PsramBus::spacing(Access access) const {
  return controller_ + setup_ + command_ + (access == Access::read ? read_latency_ : write_latency_) +
         burst_ + hold_ + tCPH_;
}

// --- as fast as the queue takes them
// ------------------------------------------------------------------------

PsramPlayer::PsramPlayer(const config::DramPartSpec& part, const config::MemoryControllerSpec& controller)
    : clock_(command_clock(part)),
      bus_(part),
      capacity_(static_cast<std::uint64_t>(rank_bytes(part).count())),
      burst_bytes_(static_cast<std::uint64_t>(burst_bytes(part).count())),
      ends_(static_cast<std::size_t>(controller.read_queue)) {
  result_.banks.resize(1);
}

bool PsramPlayer::take_batch(RequestSource& source) {
  const std::span<const PackedRequest> batch = source.next();
  for (const PackedRequest request : batch) {
    serve(request);
  }
  return !batch.empty();
}

void PsramPlayer::serve(PackedRequest request) {
  const std::uint64_t address = request >> 1;
  if (address > capacity_ - kLine) {
    throw UserError(fmt::format("request {}: address {:#x} lies beyond the memory's end, {:#x}",
                                result_.requests, address, capacity_));
  }
  const Access access = access_of(request);
  Cycle& place = ends_[next_];
  next_ = (next_ + 1) % ends_.size();
  const Cycle accepted = place;
  PsramBus::Transfer t;
  ReadCycles cycles;
  for (std::uint64_t at = address & ~(burst_bytes_ - 1); at < address + kLine; at += burst_bytes_) {
    t = bus_.transfer(accepted, access);
    result_.bus.data += t.data_end - t.data_start;
    result_.bus.refresh += t.waited;
    result_.bus.command += t.data_start - t.waited - end_;
    cycles.bus += t.data_end - t.data_start;
    cycles.refresh += t.waited;
    cycles.column += t.data_start - t.waited - t.select;
    end_ = t.data_end;
    ++(access == Access::read ? result_.counters.reads : result_.counters.writes);
    ++result_.counters.row_misses;
    ++result_.banks[0].misses;
  }
  place = t.data_end;
  ++result_.requests;
  result_.moved += Bytes(kRequestBytes);
  if (access == Access::read) {
    ++result_.reads;
    cycles.queue = end_ - accepted - cycles.total();
    result_.read_cycles += cycles;
    result_.latencies.add(end_ - accepted);
    latency_sum_ += end_ - accepted;
  }
}

PlayResult PsramPlayer::result() const {
  PlayResult result = result_;
  result.elapsed = clock_.time(end_);
  if (result.reads > 0) {
    result.mean_read_latency = clock_.time(latency_sum_) / result.reads;
  }
  return result;
}

// --- bound and load
// -----------------------------------------------------------------------------------------

BytesPerSecond psram_bound(const config::DramPartSpec& part, double read_share) {
  const PsramBus bus(part);
  const double spacing = read_share * static_cast<double>(bus.spacing(Access::read)) +
                         (1 - read_share) * static_cast<double>(bus.spacing(Access::write));
  const double lines = std::max(1.0, static_cast<double>(kRequestBytes) / burst_bytes(part).as_double());
  return BytesPerSecond(static_cast<double>(kRequestBytes) / lines / spacing *
                        command_clock(part).as_double());
}

LoadPoint psram_load_point(const config::DramPartSpec& part, RequestSource& source, BytesPerSecond offered) {
  PsramBus bus(part);
  const CommandClock clock(command_clock(part));
  PatternRandom random;
  const double gap = static_cast<double>(kRequestBytes) / offered.count() * command_clock(part).as_double();
  const auto bursts = std::max<std::int64_t>(1, kRequestBytes / burst_bytes(part).count());
  double at = 0;
  double sum = 0;
  Cycle end = 0;
  std::int64_t requests = 0;
  Histogram latencies;
  for (std::span<const PackedRequest> batch = source.next(); !batch.empty(); batch = source.next()) {
    for (const PackedRequest request : batch) {
      at += -std::log1p(-random.unit()) * gap;
      const auto arrival = static_cast<Cycle>(at);
      for (std::int64_t i = 0; i < bursts; ++i) {
        end = bus.transfer(arrival, access_of(request)).data_end;
      }
      ++requests;
      if (access_of(request) == Access::read) {
        latencies.add(end - arrival);
        sum += static_cast<double>(end - arrival);
      }
    }
  }
  const double mean = latencies.count() == 0 ? 0 : sum / static_cast<double>(latencies.count());
  return {.offered = offered,
          .served = Bytes(requests * kRequestBytes) / clock.time(end),
          .mean_latency = Picoseconds(clock.time(static_cast<Cycle>(mean * 1000)).count() / 1000),
          .p99_latency = clock.time(latencies.quantile(0.99))};
}

}  // namespace kvsim::model
