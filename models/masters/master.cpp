// SPDX-License-Identifier: Apache-2.0
#include "models/masters/master.h"

#include <algorithm>

namespace kvsim::model {
namespace {

/// Bursts that may wait: one under way, one behind it.
constexpr std::int64_t kBurstsWaiting = 2;

}  // namespace

Master::Master(const sc_core::sc_module_name& name, const config::MasterSpec& spec, const Place& place,
               std::uint64_t seed)
    : sc_module(name),
      spec_(spec),
      place_(place),
      source_(make_transfers(spec, seed)),
      buffer_(spec.radio ? spec.radio->ring : config::buffer_bytes(spec)) {
  SC_HAS_PROCESS(Master);
  SC_THREAD(run);
}

void Master::stop() {
  stopped_ = true;
  stop_.notify(sc_core::SC_ZERO_TIME);
}

void Master::run() {
  while (!stopped_) {
    const Transfer transfer = source_->next();
    if (transfer.at > now()) {
      wait(to_sc_time(transfer.at - now()), stop_);
    }
    if (!stopped_) {
      request(transfer);
    }
  }
}

/// What may wait: the ring, the FIFO, two bursts, or two of the largest transfers.
Bytes Master::room() const {
  if (spec_.radio) {
    return spec_.radio->ring;
  }
  if (spec_.scan) {
    return config::line_bytes(*spec_.scan) * spec_.scan->buffer_lines;
  }
  if (spec_.series) {
    return config::largest(*spec_.series) * kBurstsWaiting;
  }
  return spec_.burst ? spec_.burst->bytes * kBurstsWaiting : buffer_;
}

trace::Address Master::take(Bytes bytes) {
  if (at_ + bytes > buffer_) {
    at_ = Bytes();
  }
  const trace::Address address = place_.buffer + static_cast<trace::Address>(at_.count());
  at_ += bytes;
  return address;
}

void Master::request(const Transfer& transfer) {
  figures_.due += transfer.deadline ? 1 : 0;
  if (waiting_ + transfer.bytes > room()) {
    figures_.lost += transfer.bytes;
    figures_.missed += transfer.deadline ? 1 : 0;
    return;
  }
  if (spec_.load) {
    const Picoseconds stolen =
        Picoseconds(static_cast<std::int64_t>(spec_.load->slice.as_double() * spec_.load->share));
    place_.cpu.steal(spec_.load->core, stolen);
    figures_.stolen += stolen;
  }
  if (transfer.bytes == Bytes()) {
    return;
  }
  waiting_ += transfer.bytes;
  DmaJob job;
  const trace::Address address = take(transfer.bytes);
  add_pieces(job.pieces, address, transfer.bytes, transfer.access);
  job.done = [this, transfer, address] { finished(transfer, address); };
  place_.dma.submit(place_.channel, std::move(job));
}

void Master::finished(const Transfer& transfer, trace::Address address) {
  ++figures_.transfers;
  (transfer.access == trace::Access::read ? figures_.read : figures_.written) += transfer.bytes;
  figures_.latency.add((now() - transfer.at).count());
  figures_.delay.add((now() - transfer.born).count());
  figures_.missed += transfer.deadline && now() > *transfer.deadline ? 1 : 0;
  if (spec_.radio) {
    drive(transfer, address);
  } else {
    waiting_ -= transfer.bytes;
  }
}

/// The driver: an interrupt, each packet, and the copy, all on one core.
void Master::drive(const Transfer& transfer, trace::Address address) {
  const config::RadioSpec& radio = *spec_.radio;
  const std::int64_t packets = (transfer.bytes.count() + radio.packet.count() - 1) / radio.packet.count();
  const Picoseconds work = radio.interrupt + radio.per_packet * packets;
  place_.cpu.steal(radio.core, work);
  figures_.stolen += work;
  if (place_.copier == nullptr) {
    waiting_ -= transfer.bytes;
    return;
  }
  DmaJob copy;
  const trace::Address to = address + static_cast<trace::Address>(buffer_.count());
  for (std::int64_t done = 0; done < transfer.bytes.count(); done += radio.packet.count()) {
    const Bytes packet = std::min(radio.packet, transfer.bytes - Bytes(done));
    const auto offset = static_cast<trace::Address>(done);
    add_pieces(copy.pieces, address + offset, packet, trace::Access::read);
    add_pieces(copy.pieces, to + offset, packet, trace::Access::write);
  }
  copy.done = [this, transfer, began = now()] {
    place_.cpu.steal(spec_.radio->core, now() - began);
    figures_.stolen += now() - began;
    figures_.copied += transfer.bytes;
    waiting_ -= transfer.bytes;
  };
  place_.copier->submit(0, std::move(copy));
}

}  // namespace kvsim::model
