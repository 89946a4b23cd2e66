// SPDX-License-Identifier: Apache-2.0
// One CPU core as a compute engine: it works through the extents of one thread's part of an operator.
#pragma once

#include <cstdint>
#include <vector>

#include <systemc>
#include <tlm>
#include <tlm_utils/simple_initiator_socket.h>

#include "configs/spec/device_spec.h"
#include "models/accounting/time_account.h"
#include "models/cache/cache.h"
#include "models/cpu/segmenter.h"
#include "models/stream/engine_stream.h"
#include "models/tlm/transaction.h"

namespace kvsim::model {

/// TLM-2.0 AT initiator.
class CpuCore : public sc_core::sc_module {
 public:
  tlm_utils::simple_initiator_socket<CpuCore> socket{"socket"};

  /// `stream` is the core's window into memory, `cache` the last-level cache it shares.
  CpuCore(const sc_core::sc_module_name& name, const config::CoreSpec& spec, EngineStream& stream,
          Cache& cache, const config::CacheSpec& cache_spec);

  /// Starts on `work` now. Precondition: done().
  void start(const ThreadWork& work, bool passes_cache);
  /// Something else takes the core for so long, from the next segment on. Of a core that is done: nothing.
  void steal(Picoseconds time) { stolen_ += done_ ? Picoseconds() : time; }
  [[nodiscard]] bool done() const { return done_; }
  /// Notified when the work is done.
  [[nodiscard]] const sc_core::sc_event& done_event() const { return done_event_; }
  [[nodiscard]] Picoseconds done_at() const { return done_at_; }
  /// Where its time since start() went, besides its work.
  [[nodiscard]] const EngineTime& engine_time() const { return stream_.engine_time(); }

 private:
  tlm::tlm_sync_enum respond(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                             sc_core::sc_time& delay);
  void fill();
  void finish();

  config::CoreSpec spec_;
  EngineStream& stream_;
  Segmenter segmenter_;
  PayloadPool pool_;
  Bytes outstanding_;
  Picoseconds stolen_;  ///< and not yet waited for
  bool done_ = true;
  Picoseconds done_at_;
  sc_core::sc_event finished_{"finished"};
  sc_core::sc_event done_event_{"done"};
};

/// The window that a core of this kind keeps into memory.
[[nodiscard]] StreamWindow window_of(const config::CoreSpec& core);
/// The same with what the cluster is allowed and preferred.
[[nodiscard]] StreamWindow window_of(const config::ClusterSpec& cluster);

}  // namespace kvsim::model
