// SPDX-License-Identifier: Apache-2.0
#include "models/masters/dma_engine.h"

#include <algorithm>
#include <utility>

#include "configs/error/error.h"

namespace kvsim::model {
namespace {

/// A piece is a page: what an IOMMU maps as one.
constexpr std::int64_t kPiece = 4096;
/// Pieces outstanding, so that the window never runs dry between two.
constexpr std::size_t kOutstanding = 4;

}  // namespace

void add_pieces(std::vector<Segment>& pieces, trace::Address address, Bytes bytes, trace::Access access) {
  for (std::int64_t left = bytes.count(); left > 0;) {
    const std::int64_t piece = std::min(left, kPiece - static_cast<std::int64_t>(address % kPiece));
    pieces.push_back({.address = address,
                      .row_bytes = Bytes(piece),
                      .stride = Bytes(piece),
                      .access = access,
                      .owner = Owner::masters});
    address += static_cast<trace::Address>(piece);
    left -= piece;
  }
}

DmaEngine::DmaEngine(const sc_core::sc_module_name& name, const StreamWindow& window, MemoryPath& path)
    : sc_module(name), stream_(path.add_stream(window)) {
  socket.register_nb_transport_bw(this, &DmaEngine::respond);
}

std::size_t DmaEngine::add_channel(std::int64_t urgency) {
  channels_.push_back({.urgency = urgency, .jobs = {}});
  return channels_.size() - 1;
}

void DmaEngine::submit(std::size_t channel, DmaJob job) {
  check(!job.pieces.empty(), "a job moves something");
  channels_[channel].jobs.push_back({.job = std::move(job)});
  fill();
}

/// The channel whose piece goes next; the number of channels if none has one.
std::size_t DmaEngine::choose() const {
  std::size_t best = channels_.size();
  for (std::size_t i = 1; i <= channels_.size(); ++i) {
    const std::size_t candidate = (last_ + i) % channels_.size();
    const Queue& queue = channels_[candidate];
    if (queue.sending < queue.jobs.size() &&
        (best == channels_.size() || queue.urgency > channels_[best].urgency)) {
      best = candidate;
    }
  }
  return best;
}

void DmaEngine::fill() {
  while (outstanding_.size() < kOutstanding) {
    // A window that has used up what was sent begins anew; what it has used up is answered first.
    if (stream_.idle() && !outstanding_.empty()) {
      return;
    }
    const std::size_t channel = choose();
    if (channel == channels_.size()) {
      return;
    }
    last_ = channel;
    if (outstanding_.empty()) {
      stream_.begin(now());
    }
    Queue& queue = channels_[channel];
    Queued& queued = queue.jobs[queue.sending];
    outstanding_.push_back(channel);
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    tlm::tlm_generic_payload& payload = pool_.take(queued.job.pieces[queued.sent], stream_);
    if (++queued.sent == queued.job.pieces.size()) {
      ++queue.sending;
    }
    socket->nb_transport_fw(payload, phase, delay);
  }
}

tlm::tlm_sync_enum DmaEngine::respond(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                      sc_core::sc_time& delay) {
  if (phase == tlm::END_REQ) {
    return tlm::TLM_ACCEPTED;
  }
  check(phase == tlm::BEGIN_RESP && payload.is_response_ok(), "memory answers with BEGIN_RESP");
  Queue& queue = channels_[outstanding_.front()];
  outstanding_.pop_front();
  phase = tlm::END_RESP;
  delay = sc_core::SC_ZERO_TIME;
  payload.release();
  Queued& first = queue.jobs.front();
  if (++first.answered == first.job.pieces.size()) {
    const std::function<void()> done = std::move(first.job.done);
    queue.jobs.pop_front();
    --queue.sending;
    done();  // may submit, and so fill
  }
  fill();
  return tlm::TLM_COMPLETED;
}

}  // namespace kvsim::model
