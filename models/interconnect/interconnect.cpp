// SPDX-License-Identifier: Apache-2.0
#include "models/interconnect/interconnect.h"

#include "configs/error/error.h"

namespace kvsim::model {

Interconnect::Interconnect(const sc_core::sc_module_name& name) : sc_module(name) {
  masters.register_nb_transport_fw(this, &Interconnect::forward);
  memory.register_nb_transport_bw(this, &Interconnect::backward);
}

tlm::tlm_sync_enum Interconnect::forward(int master, tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                         sc_core::sc_time& delay) {
  if (phase == tlm::END_RESP) {
    return memory->nb_transport_fw(payload, phase, delay);
  }
  check(phase == tlm::BEGIN_REQ, "a transaction begins with BEGIN_REQ");
  auto* origin = payload.get_extension<Origin>();
  if (origin == nullptr) {
    origin = new Origin;  // owned by the payload, which the pool keeps
    payload.set_extension(origin);
  }
  origin->master = master;
  if (sending_) {
    waiting_.push(&payload);
    return tlm::TLM_ACCEPTED;
  }
  return send(payload, phase);
}

tlm::tlm_sync_enum Interconnect::send(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase) {
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  const tlm::tlm_sync_enum answer = memory->nb_transport_fw(payload, phase, delay);
  sending_ = answer == tlm::TLM_ACCEPTED;
  return answer;
}

void Interconnect::send_waiting() {
  while (!sending_ && !waiting_.empty()) {
    tlm::tlm_generic_payload& payload = *waiting_.front();
    waiting_.pop();
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    if (send(payload, phase) == tlm::TLM_UPDATED) {
      sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
      masters[payload.get_extension<Origin>()->master]->nb_transport_bw(payload, phase, delay);
    }
  }
}

tlm::tlm_sync_enum Interconnect::backward(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                          sc_core::sc_time& delay) {
  const bool ends_request = phase == tlm::END_REQ;
  const tlm::tlm_sync_enum answer =
      masters[payload.get_extension<Origin>()->master]->nb_transport_bw(payload, phase, delay);
  if (ends_request) {
    sending_ = false;
    send_waiting();
  }
  return answer;
}

}  // namespace kvsim::model
