// SPDX-License-Identifier: Apache-2.0
// The SoC's interconnect as transactions see it: many masters, one way to memory.
#pragma once

#include <systemc>
#include <tlm>
#include <tlm_utils/multi_passthrough_target_socket.h>
#include <tlm_utils/simple_initiator_socket.h>

#include "models/dram/fifo.h"

namespace kvsim::model {

/// Forwards the four phases between masters and memory. One request at a time is on its way to memory (the
/// TLM-2.0 request exclusion rule); masters that want to send meanwhile wait and take turns. Latency and
/// bandwidth act on every line in MemoryPath.
class Interconnect : public sc_core::sc_module {
 public:
  tlm_utils::multi_passthrough_target_socket<Interconnect> masters{"masters"};
  tlm_utils::simple_initiator_socket<Interconnect> memory{"memory"};

  explicit Interconnect(const sc_core::sc_module_name& name);

 private:
  /// Which master a payload came from.
  class Origin : public tlm::tlm_extension<Origin> {
   public:
    int master = 0;
    tlm::tlm_extension_base* clone() const override { return new Origin(*this); }
    void copy_from(tlm::tlm_extension_base const& other) override {
      *this = static_cast<const Origin&>(other);
    }
  };

  tlm::tlm_sync_enum forward(int master, tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                             sc_core::sc_time& delay);
  tlm::tlm_sync_enum backward(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                              sc_core::sc_time& delay);
  tlm::tlm_sync_enum send(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase);
  void send_waiting();

  bool sending_ = false;  ///< memory has not ended the request on its way
  Fifo<tlm::tlm_generic_payload*> waiting_;
};

}  // namespace kvsim::model
