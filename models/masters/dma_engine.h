// SPDX-License-Identifier: Apache-2.0
// A DMA engine: one window into memory, shared by channels that take turns.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include <systemc>
#include <tlm>
#include <tlm_utils/simple_initiator_socket.h>

#include "models/memory_path/memory_path.h"
#include "models/tlm/transaction.h"

namespace kvsim::model {

/// What a channel has to move, piece by piece, and whom to tell.
struct DmaJob {
  std::vector<Segment> pieces;
  std::function<void()> done;
};

/// Cuts `bytes` into pieces that other channels may come between.
void add_pieces(std::vector<Segment>& pieces, trace::Address address, Bytes bytes, trace::Access access);

/// TLM-2.0 AT initiator. Channels are arbitrated at every piece: the most urgent first, equal ones in turn. A
/// channel's jobs are done one after the other.
class DmaEngine : public sc_core::sc_module {
 public:
  tlm_utils::simple_initiator_socket<DmaEngine> socket{"socket"};

  DmaEngine(const sc_core::sc_module_name& name, const StreamWindow& window, MemoryPath& path);

  /// A channel of that urgency among the engine's; returns its number.
  std::size_t add_channel(std::int64_t urgency);
  /// Queues a job on a channel. Call from a process. Precondition: it has pieces.
  void submit(std::size_t channel, DmaJob job);

 private:
  struct Queued {
    DmaJob job;
    std::size_t sent = 0;
    std::size_t answered = 0;
  };
  struct Queue {
    std::int64_t urgency = 0;
    std::deque<Queued> jobs;
    std::size_t sending = 0;  ///< the first job with pieces to send
  };

  [[nodiscard]] std::size_t choose() const;
  void fill();
  tlm::tlm_sync_enum respond(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                             sc_core::sc_time& delay);

  EngineStream& stream_;
  PayloadPool pool_;
  std::vector<Queue> channels_;
  std::size_t last_ = 0;                 ///< channel that was served last
  std::deque<std::size_t> outstanding_;  ///< channels of the pieces under way, in order
};

}  // namespace kvsim::model
