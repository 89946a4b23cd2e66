// SPDX-License-Identifier: Apache-2.0
// One direction of a DMA engine: moves strided runs to or from DRAM, as fast as its window of lines allows.
#pragma once

#include <span>

#include <systemc>
#include <tlm>
#include <tlm_utils/simple_initiator_socket.h>

#include "configs/spec/device_spec.h"
#include "models/memory_path/memory_path.h"
#include "models/tlm/transaction.h"
#include "traces/record/record.h"

namespace kvsim::model {

/// TLM-2.0 AT initiator.
class DmaChannel : public sc_core::sc_module {
 public:
  tlm_utils::simple_initiator_socket<DmaChannel> socket{"socket"};

  DmaChannel(const sc_core::sc_module_name& name, std::int64_t lines, MemoryPath& path);

  /// Starts on segments that answer one by one, in order. Precondition: all earlier ones have been awaited.
  void start(std::span<const Segment> segments);
  /// Returns when the next of them has answered; call from an SC_THREAD.
  void await();

 private:
  tlm::tlm_sync_enum respond(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                             sc_core::sc_time& delay);

  EngineStream& stream_;
  PayloadPool pool_;
  std::int64_t sent_ = 0, answered_ = 0, awaited_ = 0;
  sc_core::sc_event answer_{"answer"};
};

}  // namespace kvsim::model
