// SPDX-License-Identifier: Apache-2.0
#include "models/npu/dma_channel.h"

#include "configs/error/error.h"

namespace kvsim::model {

/// It knows its addresses, and its SRAM takes lines when they come.
DmaChannel::DmaChannel(const sc_core::sc_module_name& name, std::int64_t lines, MemoryPath& path)
    : sc_module(name), stream_(path.add_stream({.in_flight = lines, .ahead = 2 * lines, .stores = lines})) {
  socket.register_nb_transport_bw(this, &DmaChannel::respond);
}

void DmaChannel::start(std::span<const Segment> segments) {
  check(sent_ == awaited_ && stream_.idle(), "a DMA channel moves one thing at a time");
  stream_.begin(now());
  for (const Segment& segment : segments) {
    ++sent_;
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    socket->nb_transport_fw(pool_.take(segment, stream_), phase, delay);
  }
}

void DmaChannel::await() {
  check(awaited_ < sent_, "something is under way");
  while (answered_ == awaited_) {
    wait(answer_);
  }
  ++awaited_;
}

tlm::tlm_sync_enum DmaChannel::respond(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                       sc_core::sc_time& delay) {
  if (phase == tlm::END_REQ) {
    return tlm::TLM_ACCEPTED;
  }
  check(phase == tlm::BEGIN_RESP && payload.is_response_ok(), "memory answers with BEGIN_RESP");
  ++answered_;
  answer_.notify(sc_core::SC_ZERO_TIME);
  phase = tlm::END_RESP;
  delay = sc_core::SC_ZERO_TIME;
  payload.release();
  return tlm::TLM_COMPLETED;
}

}  // namespace kvsim::model
