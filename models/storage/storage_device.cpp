// SPDX-License-Identifier: Apache-2.0
#include "models/storage/storage_device.h"

#include <algorithm>
#include <cmath>

#include "configs/error/error.h"

namespace kvsim::model {

namespace {

constexpr std::int64_t kHostPage = 4096;
constexpr std::int64_t kMapPageBytes = 4096;
constexpr double kSecondsPerDay = 86'400;

double stretch_of(const config::StoragePartSpec& part, Celsius temperature) {
  return part.thermal && temperature >= part.thermal->above ? part.thermal->stretch : 1;
}

std::uint32_t map_pages(const config::StoragePartSpec& part) {
  const std::int64_t units = part.capacity.count() / part.flash.unit.count();
  return static_cast<std::uint32_t>((units + kMapPageUnits - 1) / kMapPageUnits);
}

std::size_t ahead_sets(const config::StoragePartSpec& part) {
  // Twice what is read ahead: what is being used beside what comes.
  const std::int64_t set = page_set(part.flash).count();
  return static_cast<std::size_t>(2 * ((part.controller.read_ahead.count() + set - 1) / set));
}

}  // namespace

StorageDevice::StorageDevice(const config::StoragePartSpec& part, const Setup& setup)
    : part_(part),
      stretch_(stretch_of(part, setup.temperature)),
      flash_(part.flash, stretch_, setup.seed, calendar_),
      ftl_(part),
      map_cache_(map_pages(part),
                 static_cast<std::uint32_t>(part.controller.map_cache.count() / kMapPageBytes),
                 part.controller.journal),
      ahead_(ahead_sets(part)),
      buffer_units_(static_cast<Unit>(part.controller.write_buffer.count() / part.flash.unit.count())) {}

Unit StorageDevice::unit_of(Bytes offset) const {
  return static_cast<Unit>(offset.count() / part_.flash.unit.count());
}

StorageStatus StorageDevice::examine(const StorageRequest& request, Bytes& place) const {
  place = request.offset;
  const std::int64_t sector = config::sector(part_.interface).count();
  if (request.offset.count() < 0 || request.bytes.count() <= 0 || request.offset.count() % sector != 0 ||
      request.bytes.count() % sector != 0) {
    return StorageStatus::misaligned;
  }
  if (part_.read_only && request.op != StorageOp::read) {
    return StorageStatus::read_only;
  }
  if (request.bytes > part_.capacity - std::min(request.offset, part_.capacity)) {
    place = std::min(request.offset, part_.capacity);
    return request.op == StorageOp::write ? StorageStatus::device_full : StorageStatus::beyond_capacity;
  }
  return StorageStatus::ok;
}

std::uint64_t StorageDevice::submit(const StorageRequest& asked) {
  check(asked.lane >= 0, "a lane has a number");
  if (open_requests_ == 0) {
    collect_while_idle(asked.when - last_done_);
  }
  ++open_requests_;
  Index index = static_cast<Index>(requests_.size());
  if (spare_requests_.empty()) {
    requests_.emplace_back();
  } else {
    index = spare_requests_.back();
    spare_requests_.pop_back();
  }
  Request& request = requests_[index];
  request = {.asked = asked, .id = next_id_++};
  request.status = examine(asked, request.place);
  const auto lane = static_cast<std::size_t>(asked.lane);
  lane_free_.resize(std::max(lane_free_.size(), lane + 1));
  const std::int64_t pages =
      request.status == StorageStatus::ok ? (asked.bytes.count() + kHostPage - 1) / kHostPage : 0;
  lane_free_[lane] = std::max(lane_free_[lane], asked.when) + part_.host.request + part_.host.page * pages;
  calendar_.add(lane_free_[lane], StorageEvent::request_issued, index);
  return request.id;
}

std::optional<StorageCompletion> StorageDevice::next() {
  while (!calendar_.empty()) {
    if (std::optional<StorageCompletion> done = handle(calendar_.take())) {
      return done;
    }
  }
  return std::nullopt;
}

std::optional<StorageCompletion> StorageDevice::next_until(Picoseconds until) {
  while (!calendar_.empty() && calendar_.next_time() <= until) {
    if (std::optional<StorageCompletion> done = handle(calendar_.take())) {
      return done;
    }
  }
  return std::nullopt;
}

std::optional<Picoseconds> StorageDevice::next_event() const {
  return calendar_.empty() ? std::nullopt : std::optional(calendar_.next_time());
}

std::optional<StorageCompletion> StorageDevice::handle(const Event& event) {
  switch (event.kind) {
    case StorageEvent::request_issued:
      issue(event.index, event.time);
      break;
    case StorageEvent::command_arrived:
      arrive(event.index, event.time);
      break;
    case StorageEvent::command_started:
      begin(event.index, event.time);
      break;
    case StorageEvent::link_read:
      counters_.host_read += commands_[event.index].bytes;
      finish(event.index, event.time);
      break;
    case StorageEvent::link_written:
      receive_end(event.index, Bytes(event.stamp), event.time);
      break;
    case StorageEvent::completed:
      return complete(event.index, event.time);
    case StorageEvent::array_end:
    case StorageEvent::transfer_end:
      if (const std::optional<OpIndex> op = flash_.handle(event)) {
        end_operation(*op, event.time);
      }
      break;
  }
  return std::nullopt;
}

void StorageDevice::issue(Index index, Picoseconds now) {
  Request& request = requests_[index];
  request.issued = now;
  if (request.status != StorageStatus::ok) {
    calendar_.add(now, StorageEvent::completed, index);
    return;
  }
  // A discard carries no data, and is one command whatever its length.
  const StorageRequest& asked = request.asked;
  const Bytes longest = asked.op == StorageOp::discard ? asked.bytes : part_.link.max_request;
  for (Bytes done; done < asked.bytes; done += longest) {
    const Bytes bytes = std::min(longest, asked.bytes - done);
    const Command command{
        .request = index, .op = asked.op, .offset = asked.offset + done, .bytes = bytes, .left = bytes};
    ++request.commands_left;
    if (spare_commands_.empty()) {
      commands_.push_back(command);
      waiting_.push(static_cast<Index>(commands_.size() - 1));
    } else {
      commands_[spare_commands_.back()] = command;
      waiting_.push(spare_commands_.back());
      spare_commands_.pop_back();
    }
  }
  dispatch(now);
}

void StorageDevice::dispatch(Picoseconds now) {
  while (!waiting_.empty() && in_flight_ < part_.link.queue_depth) {
    ++in_flight_;
    calendar_.add(now + part_.host.command + part_.link.command, StorageEvent::command_arrived,
                  waiting_.front());
    waiting_.pop();
  }
}

void StorageDevice::arrive(Index command, Picoseconds now) {
  const bool reads = commands_[command].op == StorageOp::read;
  firmware_free_ = std::max(firmware_free_, now) +
                   (reads ? part_.controller.read_command : part_.controller.write_command);
  calendar_.add(firmware_free_, StorageEvent::command_started, command);
}

void StorageDevice::begin(Index command, Picoseconds now) {
  switch (commands_[command].op) {
    case StorageOp::read:
      return begin_read(command, now);
    case StorageOp::write:
      return begin_write(command, now);
    case StorageOp::discard:
      return begin_discard(command, now);
  }
}

void StorageDevice::finish(Index command, Picoseconds now) {
  --in_flight_;
  const Index request = commands_[command].request;
  spare_commands_.push_back(command);
  if (--requests_[request].commands_left == 0) {
    calendar_.add(now + part_.host.completion, StorageEvent::completed, request);
  }
  dispatch(now);
}

StorageCompletion StorageDevice::complete(Index index, Picoseconds now) {
  const Request& request = requests_[index];
  const StorageCompletion done{.id = request.id,
                               .request = request.asked,
                               .status = request.status,
                               .place = request.status == StorageStatus::ok
                                            ? request.asked.offset + request.asked.bytes
                                            : request.place,
                               .issued = request.issued,
                               .done = now};
  spare_requests_.push_back(index);
  --open_requests_;
  last_done_ = now;
  return done;
}

/// The last piece of a command's stage is there.
void StorageDevice::drop_piece(Index index, Picoseconds now) {
  Command& command = commands_[index];
  if (--command.pieces > 0) {
    return;
  }
  if (command.op == StorageOp::write) {
    receive(index, now);
  } else if (!command.has_map) {
    command.has_map = true;
    read_data(index, now);
  } else {
    calendar_.add(std::max(now, command.linked), StorageEvent::link_read, index);
  }
}

void StorageDevice::end_operation(OpIndex index, Picoseconds now) {
  const FlashOp op = flash_.op(index);
  switch (op.purpose) {
    case OpPurpose::data:
      to_host(op.owner, op.wanted, now);
      drop_piece(op.owner, now);
      break;
    case OpPurpose::read_ahead:
      end_ahead(op.owner, now);
      break;
    case OpPurpose::old_data:
    case OpPurpose::map:
      drop_piece(op.owner, now);
      break;
    case OpPurpose::map_flush:
      end_flush_operation(now);
      break;
    case OpPurpose::destage:
      buffered_ -= ftl_.set_units();
      unblock(now);
      break;
    case OpPurpose::collect:
    case OpPurpose::erase:
      break;
  }
  flash_.release(index, now);
}

Picoseconds StorageDevice::link_time(Bytes bytes) const {
  const config::StorageLink& link = part_.link;
  const std::int64_t packets = (bytes.count() + link.packet.count() - 1) / link.packet.count();
  const double bits = 8.0 * (bytes + link.packet_overhead * packets).as_double() *
                      static_cast<double>(link.line_bits) / static_cast<double>(link.payload_bits);
  const double seconds = bits / (link.data_rate.as_double() * static_cast<double>(link.lanes));
  return Picoseconds(static_cast<std::int64_t>(seconds * stretch_ * kPicosecondsPerSecond + 0.5));
}

Picoseconds StorageDevice::reserve_link(bool to_host, Bytes bytes, Picoseconds now) {
  Picoseconds& free = link_free_.at(part_.link.duplex && to_host ? 1 : 0);
  free = std::max(free, now) + link_time(bytes);
  return free;
}

bool StorageDevice::lay_out(Bytes offset, Bytes bytes) {
  if (offset.count() < 0 || bytes > part_.capacity - std::min(offset, part_.capacity)) {
    return false;
  }
  if (bytes.count() <= 0) {
    return true;
  }
  Unit unit = unit_of(offset);
  const Unit end = unit_of(offset + bytes - Bytes(1)) + 1;
  while (unit < end) {
    const std::optional<UnitRun> run = ftl_.write_native(unit, end - unit);
    if (!run && !ftl_.collect(moves_)) {
      return false;
    }
    for (Unit page = unit / kMapPageUnits; run && page <= (unit + run->count - 1) / kMapPageUnits; ++page) {
      map_cache_.use(page);
    }
    unit += run ? run->count : 0;
    static_cast<void>(ftl_.take_erased());
  }
  return true;
}

StorageCounters StorageDevice::counters() const {
  StorageCounters counters = counters_;
  counters.retries = flash_.retries();
  counters.suspends = flash_.suspends();
  return counters;
}

StorageWear StorageDevice::wear(BytesPerSecond written) const {
  StorageWear wear = wear_of(part_, counters_, written);
  wear.erases = ftl_.erase_counts();
  return wear;
}

StorageCounters operator-(StorageCounters a, const StorageCounters& b) {
  a.host_read -= b.host_read;
  a.host_written -= b.host_written;
  a.slc_programmed -= b.slc_programmed;
  a.native_programmed -= b.native_programmed;
  a.map_programmed -= b.map_programmed;
  a.collected -= b.collected;
  a.page_reads -= b.page_reads;
  a.map_hits -= b.map_hits;
  a.map_misses -= b.map_misses;
  a.map_flushes -= b.map_flushes;
  a.retries -= b.retries;
  a.suspends -= b.suspends;
  a.erases -= b.erases;
  return a;
}

StorageWear wear_of(const config::StoragePartSpec& part, const StorageCounters& counters,
                    BytesPerSecond written) {
  StorageWear wear;
  const Bytes slc = counters.slc_programmed + counters.map_programmed;
  // A block with one bit per cell holds so much less for the same cycle.
  const double worn = counters.native_programmed.as_double() +
                      slc.as_double() * static_cast<double>(part.flash.bits_per_cell);
  const double physical = superblock(part.flash).as_double() * static_cast<double>(superblocks(part));
  wear.cycles = worn / physical;
  const double host = counters.host_written.as_double();
  if (host > 0) {
    wear.write_amplification = (counters.native_programmed + slc).as_double() / host;
    const double per_second = wear.cycles / host * written.count();
    if (per_second > 0) {
      wear.days_to_endurance = static_cast<double>(part.flash.endurance) / per_second / kSecondsPerDay;
    }
  }
  return wear;
}

const char* to_string(StorageStatus status) {
  switch (status) {
    case StorageStatus::ok:
      return "ok";
    case StorageStatus::beyond_capacity:
      return "beyond the capacity";
    case StorageStatus::read_only:
      return "read-only";
    case StorageStatus::device_full:
      return "device full";
    case StorageStatus::misaligned:
      return "not whole sectors";
  }
  return "";
}

}  // namespace kvsim::model
