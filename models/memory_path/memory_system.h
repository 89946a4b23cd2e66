// SPDX-License-Identifier: Apache-2.0
// SystemC shell of the memory path: a TLM-2.0 target whose time the path's event loop follows.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include <systemc>
#include <tlm>
#include <tlm_utils/simple_target_socket.h>

#include "models/memory_path/memory_path.h"
#include "models/tlm/transaction.h"

namespace kvsim::model {

/// AT target. A segment is accepted at once (END_REQ with the call); its lines are pulled as the initiator's
/// window allows; BEGIN_RESP says that the initiator has used up the last of them. Backpressure acts line by
/// line in the window, and through the initiator's limit on segments it has outstanding. The path is
/// simulated up to the end of the next segment, beside masters at most 500 ns ahead: what an initiator that
/// was idle sends before waits until then.
class MemorySystem : public sc_core::sc_module {
 public:
  tlm_utils::simple_target_socket<MemorySystem> socket{"socket"};

  MemorySystem(const sc_core::sc_module_name& name, const config::DeviceSpec& device,
               Granularity granularity);

  [[nodiscard]] MemoryPath& path() { return *path_; }

 private:
  struct Initiator {
    EngineStream* stream = nullptr;
    std::deque<tlm::tlm_generic_payload*> outstanding;  ///< in the order of their segments
  };

  tlm::tlm_sync_enum transport(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                               sc_core::sc_time& delay);
  Initiator& initiator_of(EngineStream& stream);
  void advance();
  void push_waiting();
  void respond(Initiator& initiator);

  std::unique_ptr<MemoryPath> path_;
  std::vector<Initiator> initiators_;
  Picoseconds ahead_;  ///< that the path may be simulated before time has come
  Picoseconds simulated_until_;
  std::deque<tlm::tlm_generic_payload*> waiting_;  ///< for the path's time
  sc_core::sc_event wake_{"wake"};
};

}  // namespace kvsim::model
