// SPDX-License-Identifier: Apache-2.0
#include "models/testing/protocol_checker.h"

namespace kvsim::model::testing {

void ProtocolRules::expect(bool holds, const char* rule) {
  if (!holds) {
    broken_.emplace_back(rule);
  }
}

void ProtocolRules::note(const tlm::tlm_generic_payload& payload, const tlm::tlm_phase& phase) {
  const auto known = at_.find(&payload);
  const auto before = known == at_.end() ? tlm::UNINITIALIZED_PHASE : known->second;
  const auto now = static_cast<tlm::tlm_phase_enum>(static_cast<unsigned>(phase));
  switch (now) {
    case tlm::BEGIN_REQ:
      expect(before == tlm::UNINITIALIZED_PHASE, "a transaction begins once");
      expect(requesting_ == nullptr, "one request at a time");
      requesting_ = &payload;
      break;
    case tlm::END_REQ:
      expect(before == tlm::BEGIN_REQ, "END_REQ follows BEGIN_REQ");
      requesting_ = nullptr;
      break;
    case tlm::BEGIN_RESP:
      expect(before == tlm::END_REQ || before == tlm::BEGIN_REQ, "BEGIN_RESP follows the request");
      expect(responding_ == nullptr, "one response at a time");
      requesting_ = requesting_ == &payload ? nullptr : requesting_;
      responding_ = &payload;
      break;
    case tlm::END_RESP:
      expect(before == tlm::BEGIN_RESP, "END_RESP follows BEGIN_RESP");
      responding_ = nullptr;
      break;
    default:
      expect(false, "a phase of the base protocol");
      return;
  }
  ++counts_.at(static_cast<std::size_t>(now));
  if (now == tlm::END_RESP) {
    at_.erase(&payload);
  } else {
    at_[&payload] = now;
  }
}

ProtocolChecker::ProtocolChecker(const sc_core::sc_module_name& name) : sc_module(name) {
  target.register_nb_transport_fw(this, &ProtocolChecker::forward);
  initiator.register_nb_transport_bw(this, &ProtocolChecker::backward);
}

tlm::tlm_sync_enum ProtocolChecker::forward(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                            sc_core::sc_time& delay) {
  const tlm::tlm_phase called = phase;
  rules_.note(payload, called);
  const tlm::tlm_sync_enum answer = initiator->nb_transport_fw(payload, phase, delay);
  note_answer(payload, called, answer, phase);
  return answer;
}

tlm::tlm_sync_enum ProtocolChecker::backward(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                             sc_core::sc_time& delay) {
  const tlm::tlm_phase called = phase;
  rules_.note(payload, called);
  const tlm::tlm_sync_enum answer = target->nb_transport_bw(payload, phase, delay);
  note_answer(payload, called, answer, phase);
  return answer;
}

void ProtocolChecker::note_answer(const tlm::tlm_generic_payload& payload, const tlm::tlm_phase& called,
                                  tlm::tlm_sync_enum answer, const tlm::tlm_phase& phase) {
  if (answer == tlm::TLM_UPDATED) {
    rules_.note(payload, phase);
  } else if (answer == tlm::TLM_COMPLETED && called != tlm::END_RESP) {  // leaves the last phase out
    rules_.note(payload, tlm::END_RESP);
  }
}

}  // namespace kvsim::model::testing
