// SPDX-License-Identifier: Apache-2.0
// Watches a TLM-2.0 connection: does every transaction go through its four phases in order?
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include <systemc>
#include <tlm>
#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

namespace kvsim::model::testing {

/// The base protocol's rules for one connection (IEEE 1666-2011, 15.2): each payload's phases in order, one
/// request and one response under way at a time.
class ProtocolRules {
 public:
  void note(const tlm::tlm_generic_payload& payload, const tlm::tlm_phase& phase);

  [[nodiscard]] const std::vector<std::string>& broken() const { return broken_; }
  /// Transactions that have come to a phase.
  [[nodiscard]] int count(tlm::tlm_phase_enum phase) const {
    return counts_.at(static_cast<std::size_t>(phase));
  }
  /// Transactions that have begun and not ended.
  [[nodiscard]] std::size_t open() const { return at_.size(); }

 private:
  void expect(bool holds, const char* rule);

  std::map<const tlm::tlm_generic_payload*, tlm::tlm_phase_enum> at_;
  const tlm::tlm_generic_payload* requesting_ = nullptr;
  const tlm::tlm_generic_payload* responding_ = nullptr;
  std::array<int, 5> counts_{};
  std::vector<std::string> broken_;
};

/// Passes everything through and tells the rules.
class ProtocolChecker : public sc_core::sc_module {
 public:
  tlm_utils::simple_target_socket<ProtocolChecker> target{"target"};
  tlm_utils::simple_initiator_socket<ProtocolChecker> initiator{"initiator"};

  explicit ProtocolChecker(const sc_core::sc_module_name& name);
  [[nodiscard]] const ProtocolRules& rules() const { return rules_; }

 private:
  tlm::tlm_sync_enum forward(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                             sc_core::sc_time& delay);
  tlm::tlm_sync_enum backward(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                              sc_core::sc_time& delay);
  void note_answer(const tlm::tlm_generic_payload& payload, const tlm::tlm_phase& called,
                   tlm::tlm_sync_enum answer, const tlm::tlm_phase& phase);

  ProtocolRules rules_;
};

}  // namespace kvsim::model::testing
