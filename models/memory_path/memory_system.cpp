// SPDX-License-Identifier: Apache-2.0
#include "models/memory_path/memory_system.h"

#include <algorithm>

#include "configs/error/error.h"

namespace kvsim::model {
namespace {

/// Masters send when their time has come, whatever the cores are at: what is simulated already they cannot
/// change any more.
constexpr Picoseconds kAhead{500'000};

}  // namespace

MemorySystem::MemorySystem(const sc_core::sc_module_name& name, const config::DeviceSpec& device,
                           Granularity granularity)
    : sc_module(name),
      path_(make_memory_path(device, granularity)),
      ahead_(device.masters.empty() ? EngineStream::kNever : kAhead) {
  socket.register_nb_transport_fw(this, &MemorySystem::transport);
  SC_HAS_PROCESS(MemorySystem);
  SC_METHOD(advance);
  sensitive << wake_;
  dont_initialize();
}

MemorySystem::Initiator& MemorySystem::initiator_of(EngineStream& stream) {
  const auto found = std::find_if(initiators_.begin(), initiators_.end(),
                                  [&](const Initiator& initiator) { return initiator.stream == &stream; });
  return found != initiators_.end() ? *found : initiators_.emplace_back(Initiator{&stream, {}});
}

tlm::tlm_sync_enum MemorySystem::transport(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                           sc_core::sc_time& delay) {
  check(delay == sc_core::SC_ZERO_TIME, "latency is the path's, not the transport's");
  if (phase == tlm::END_RESP) {
    return tlm::TLM_COMPLETED;
  }
  check(phase == tlm::BEGIN_REQ, "a transaction begins with BEGIN_REQ");
  payload.acquire();
  SegmentExtension& extension = segment_of(payload);
  initiator_of(*extension.stream).outstanding.push_back(&payload);
  if (now() < simulated_until_) {
    waiting_.push_back(&payload);
    phase = tlm::END_REQ;
    return tlm::TLM_UPDATED;
  }
  extension.stream->push(extension.segment);
  wake_.notify(sc_core::SC_ZERO_TIME);  // after every request of this instant
  phase = tlm::END_REQ;
  return tlm::TLM_UPDATED;
}

void MemorySystem::advance() {
  for (Initiator& initiator : initiators_) {
    respond(initiator);
  }
  if (now() >= simulated_until_) {
    push_waiting();
  }
  const Picoseconds until = path_->run_until(ahead_ == EngineStream::kNever ? ahead_ : now() + ahead_);
  if (until != EngineStream::kNever) {
    simulated_until_ = until;
    wake_.notify(to_sc_time(std::max(until - now(), Picoseconds())));
  }
}

void MemorySystem::push_waiting() {
  for (; !waiting_.empty(); waiting_.pop_front()) {
    SegmentExtension& extension = segment_of(*waiting_.front());
    if (extension.stream->idle()) {
      extension.stream->begin(now());
    }
    extension.stream->push(extension.segment);
  }
}

void MemorySystem::respond(Initiator& initiator) {
  Fifo<Picoseconds>& finished = initiator.stream->finished();
  while (!finished.empty() && finished.front() <= now()) {
    finished.pop();
    tlm::tlm_generic_payload& payload = *initiator.outstanding.front();
    initiator.outstanding.pop_front();
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
    tlm::tlm_phase phase = tlm::BEGIN_RESP;
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    socket->nb_transport_bw(payload, phase, delay);
    payload.release();
  }
}

}  // namespace kvsim::model
