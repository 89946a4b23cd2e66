// SPDX-License-Identifier: Apache-2.0
#include "models/dram/request_player.h"

#include <algorithm>
#include <bit>
#include <limits>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "configs/spec/dram_temperature.h"

namespace kvsim::model {

using config::QueueKind;
using trace::Access;

namespace {

constexpr std::uint16_t kWholeRow = std::numeric_limits<std::uint16_t>::max();
constexpr auto kLine = static_cast<std::uint64_t>(kRequestBytes);

std::uint64_t capacity_of(const config::DramPartSpec& part, const config::MemoryControllerSpec& controller) {
  return static_cast<std::uint64_t>(rank_bytes(part).count() * controller.ranks * controller.channels);
}

ClockTiming timing_of(config::DramPartSpec part, const config::MemoryControllerSpec& controller) {
  part.timing = config::timing_at(part, controller.temperature);
  return clock_timing(part, controller.turnaround);
}

}  // namespace

RequestPlayer::RequestPlayer(const config::DramPartSpec& part, const config::MemoryControllerSpec& controller,
                             Decisions decisions)
    : timing_(timing_of(part, controller)),
      clock_(command_clock(part)),
      map_(controller.mapping, part.banks),
      pooled_(controller.queue == QueueKind::bank),
      joins_(decisions == Decisions::rows),
      capacity_(capacity_of(part, controller)),
      burst_bytes_(static_cast<std::uint64_t>(burst_bytes(part).count())),
      granule_(static_cast<std::uint64_t>(map_.granule().count())),
      granule_rest_(((granule_ - 1) & ~(kLine - 1)) << 1),
      banks_(static_cast<std::uint16_t>(part.banks * controller.ranks)),
      column_shift_(std::countr_zero(static_cast<std::uint64_t>(part.width_bits / 8))) {
  check(granule_ >= burst_bytes_ && std::has_single_bit(burst_bytes_), "a burst lies in one row");
  burst_shift_ = std::countr_zero(burst_bytes_);
  for (std::int64_t c = 0; c < controller.channels; ++c) {
    channels_.push_back({.controller = ChannelController(part, controller, joins_ ? kWholeRow : 1),
                         .bus = BusAccount(timing_)});
    if (joins_) {
      channels_.back().controller.join_runs();
    }
  }
  places_.resize(channels_.size() * (pooled_ ? banks_ : 2));
  for (std::size_t queue = 0; queue < places_.size(); ++queue) {
    const bool writes = !pooled_ && queue % 2 == 1;
    places_[queue].push({.count = writes ? controller.write_queue : controller.read_queue});
  }
}

PlayResult RequestPlayer::play(RequestSource& source) {
  while (take_batch(source)) {
  }
  return result();
}

/// Plays the next batch until its last request has its place; at the end of the source, all that is queued.
bool RequestPlayer::take_batch(RequestSource& source) {
  batch_ = source.next();
  const bool more = !batch_.empty();
  while (!admit_all()) {
    check(advance(), "a full queue has something to serve");
  }
  while (!more && advance()) {
  }
  if (!more) {  // channels that were done before the last one stood idle
    take_samples(end());
    for (ChannelState& channel : channels_) {
      channel.controller.idle_until(end());
    }
  }
  return more;
}

std::size_t RequestPlayer::queue_of(std::size_t channel, std::uint16_t bank, Access access) const {
  return pooled_ ? channel * banks_ + bank : channel * 2 + (access == Access::read ? 0 : 1);
}

// --- requests and their pieces
// -----------------------------------------------------------------------------------------------

/// The bursts that [address, end) touches, all in one granule.
RequestPlayer::Piece RequestPlayer::piece(std::uint64_t address, std::uint64_t end,
                                          PackedRequest request) const {
  const std::uint64_t first = address & ~(burst_bytes_ - 1);
  const std::uint64_t bursts = (end - first + burst_bytes_ - 1) >> burst_shift_;
  const DramPlace place = map_.place(first);
  const bool write = (request & 1) != 0;
  return {.channel = place.channel.pos(),
          .run = {.row = place.row.value(),
                  .bank = static_cast<std::uint16_t>(place.bank),
                  .bursts = static_cast<std::uint16_t>(bursts),
                  .access = write ? Access::write : Access::read,
                  .masked = write && ((end - address) & (burst_bytes_ - 1)) != 0,
                  .column = place.column >> column_shift_}};
}

void RequestPlayer::split(PackedRequest request) {
  const std::uint64_t address = request >> 1;
  if (address > capacity_ - kLine) {
    throw UserError(fmt::format("request {}: address {:#x} lies beyond the memory's end, {:#x}", requests_,
                                address, capacity_));
  }
  pieces_.clear();
  next_piece_ = 0;
  request_ = request;
  const bool write = (request & 1) != 0;
  for (std::uint64_t at = address; at < address + kLine;) {
    std::uint64_t end = std::min(address + kLine, (at | (granule_ - 1)) + 1);
    // A burst that is written in part is a command of its own.
    const std::uint64_t burst_end = (at | (burst_bytes_ - 1)) + 1;
    if (write && ((at & (burst_bytes_ - 1)) != 0 || burst_end > end)) {
      end = std::min(end, burst_end);
    } else if (write) {
      end &= ~(burst_bytes_ - 1);
    }
    pieces_.push_back(piece(at, end, request));
    at = end;
  }
  ++requests_;
  reads_ += write ? 0 : 1;
}

// --- places in queues
// ----------------------------------------------------------------------------------------------------

/// Gives requests places as long as there are any. False if a request has to wait.
bool RequestPlayer::admit_all() {
  while (true) {
    if (next_piece_ == pieces_.size()) {
      if (batch_.empty()) {
        return true;
      }
      split(batch_.front());
      batch_ = batch_.subspan(1);
    }
    Piece& piece = pieces_[next_piece_];
    Fifo<FreePlaces>& free = places_[queue_of(piece.channel, piece.run.bank, piece.run.access)];
    if (free.empty()) {
      return false;
    }
    FreePlaces& places = free.front();
    if (joins_) {
      admit_rows(places, piece.run);
    } else {
      admit_burst(places, piece.run);
    }
    ChannelController& controller = channels_[piece.channel].controller;
    piece.run.arrival = std::max(piece.run.arrival, controller.last_command());
    controller.add(piece.run);
    places.first += places.spacing * piece.run.pieces;
    places.count -= piece.run.pieces;
    if (places.count == 0) {
      free.pop();
    }
    ++next_piece_;
  }
}

void RequestPlayer::admit_burst(const FreePlaces& places, RowRun& run) {
  accepted_ = std::max(accepted_, places.first);
  run.arrival = accepted_;
  if (next_piece_ == 0) {
    if (free_tags_.empty()) {
      free_tags_.push_back(static_cast<std::uint32_t>(in_flight_.size()));
      in_flight_.emplace_back();
    }
    tag_ = free_tags_.back();
    free_tags_.pop_back();
    in_flight_[tag_] = {.accepted = accepted_, .pieces = static_cast<int>(pieces_.size())};
  }
  run.tag = tag_;
}

/// Takes the requests that follow along, as far as they are for the same row and find places in the same
/// stretch of free ones.
void RequestPlayer::admit_rows(const FreePlaces& places, RowRun& run) {
  if (pieces_.size() == 1 && run.bursts * burst_bytes_ == kLine) {
    run.pieces = static_cast<std::uint16_t>(1 + take_alike(places.count - 1));
    run.bursts = static_cast<std::uint16_t>(run.bursts * run.pieces);
  }
  // One after the other, each when its place is free and the one before it has got its own.
  const Cycle late = accepted_ - places.first;
  const std::int64_t at_once =
      late <= 0 ? 0
                : (places.spacing == 0
                       ? run.pieces
                       : std::min<std::int64_t>(run.pieces, (late + places.spacing - 1) / places.spacing));
  const std::int64_t later = run.pieces - at_once;
  const Cycle first_later = places.first + at_once * places.spacing;
  run.arrival = std::max(accepted_, places.first);
  if (run.access == Access::read) {
    latency_sum_ -= at_once * accepted_ + later * first_later + places.spacing * later * (later - 1) / 2;
    read_pieces_ += run.pieces;
  }
  accepted_ = later > 0 ? first_later + (later - 1) * places.spacing : accepted_;
}

/// Requests that follow the one that was split last, of its direction, aligned and in its granule.
std::int64_t RequestPlayer::take_alike(std::int64_t most) {
  const std::uint64_t wanted = request_ & ~granule_rest_;
  const std::size_t limit = std::min(batch_.size(), static_cast<std::size_t>(most));
  std::size_t count = 0;
  while (count < limit && (batch_[count] & ~granule_rest_) == wanted) {
    ++count;
  }
  batch_ = batch_.subspan(count);
  requests_ += static_cast<std::int64_t>(count);
  reads_ += (request_ & 1) != 0 ? 0 : static_cast<std::int64_t>(count);
  return static_cast<std::int64_t>(count);
}

// --- service
// ----------------------------------------------------------------------------------------------------------

/// Serves one decision's bursts. False if nothing is queued.
bool RequestPlayer::advance() {
  while (true) {
    std::size_t first = 0;
    for (std::size_t c = 1; c < channels_.size(); ++c) {
      if (channels_[c].controller.next_time() < channels_[first].controller.next_time()) {
        first = c;
      }
    }
    ChannelController& controller = channels_[first].controller;
    if (controller.next_time() == ChannelController::kNever) {
      return false;
    }
    if (controller.next_time() > sample_due_) {
      take_samples(controller.next_time());
    }
    Served served;
    if (controller.step(served)) {
      note_served(first, served);
      return true;
    }
  }
}

void RequestPlayer::note_served(std::size_t channel, const Served& served) {
  channels_[channel].bus.add(served);
  const bool read = served.access == Access::read;
  if (served.pieces > 0) {
    // Each with its last burst; of the first piece some may have gone before.
    const Cycle each =
        served.pieces == 1 ? served.bursts : (served.bursts + served.pieces - 1) / served.pieces;
    const Cycle spacing = each * served.spacing;
    const Cycle last = served.column + (served.bursts - 1) * served.spacing;
    places_[queue_of(channel, served.bank, served.access)].push(
        {.first = last - (served.pieces - 1) * spacing, .spacing = spacing, .count = served.pieces});
    if (joins_ && read) {
      const Cycle first = served.data_end - (served.pieces - 1) * spacing;
      latency_sum_ += served.pieces * first + spacing * served.pieces * (served.pieces - 1) / 2;
    }
  }
  if (!joins_) {
    note_burst(served);
  }
}

/// What comes after a request's first burst counts as waiting for the bus.
void RequestPlayer::note_burst(const Served& served) {
  InFlight& request = in_flight_[served.tag];
  const bool read = served.access == Access::read;
  if (read && request.end == 0) {
    request.cycles = read_cycles(served, timing_);
    request.cycles.queue += served.data_end - request.accepted - request.cycles.total();
  } else {
    request.cycles.bus += std::max<Cycle>(0, served.data_end - request.end);
  }
  request.end = std::max(request.end, served.data_end);
  request.pieces -= served.last ? 1 : 0;
  if (request.pieces > 0) {
    return;
  }
  if (read) {
    latency_sum_ += request.end - request.accepted;
    ++read_pieces_;
    read_cycles_ += request.cycles;
    latencies_.add(request.end - request.accepted);
  }
  free_tags_.push_back(served.tag);
}

// --- results
// ----------------------------------------------------------------------------------------------------------

void RequestPlayer::sample_activity(Picoseconds interval, std::vector<DramActivity>* samples) {
  check(interval > Picoseconds(), "an interval takes time");
  samples_ = samples;
  sample_interval_ = next_sample_ = interval;
  sample_due_ = clock_.cycle_at(next_sample_);
}

/// Every channel has decided all that comes before `until`.
void RequestPlayer::take_samples(Cycle until) {
  for (; sample_due_ <= until; sample_due_ = clock_.cycle_at(next_sample_)) {
    for (ChannelState& channel : channels_) {
      channel.controller.idle_until(sample_due_);
    }
    samples_->push_back(activity(sample_due_));
    next_sample_ += sample_interval_;
  }
}

DramActivity RequestPlayer::activity(Cycle until) const {
  DramActivity sum;
  for (const ChannelState& channel : channels_) {
    sum += channel.controller.activity(until);
  }
  return sum;
}

Cycle RequestPlayer::end() const {
  Cycle end = 0;
  for (const ChannelState& channel : channels_) {
    end = std::max(end, channel.bus.end());
  }
  return end;
}

PlayResult RequestPlayer::result() const {
  PlayResult result{.requests = requests_,
                    .reads = reads_,
                    .moved = Bytes(requests_ * kRequestBytes),
                    .read_cycles = read_cycles_,
                    .latencies = latencies_};
  const Cycle end = this->end();
  for (const ChannelState& channel : channels_) {
    result.bus += channel.bus.cycles(end);
    result.counters += channel.controller.counters();
    for (std::uint16_t bank = 0; bank < banks_; ++bank) {
      result.banks.push_back(channel.controller.bank_counters(bank));
    }
  }
  result.activity = activity(end);
  result.elapsed = clock_.time(end);
  if (read_pieces_ > 0) {
    // In thousandths of a cycle, so that the mean is not rounded to a clock.
    result.mean_read_latency = Picoseconds(clock_.time(latency_sum_ * 1000 / read_pieces_).count() / 1000);
  }
  return result;
}

}  // namespace kvsim::model
