// SPDX-License-Identifier: Apache-2.0
#include "models/cpu/cpu_core.h"

#include <algorithm>
#include <utility>

#include "configs/error/error.h"

namespace kvsim::model {

namespace {

/// The prefetcher may run this many windows ahead of the line in use (assumed: what is in flight, and as much
/// again waiting in the private cache).
constexpr std::int64_t kWindowsAhead = 2;
/// Bytes of segments outstanding, so that the window never runs dry between two transactions.
constexpr Bytes kOutstanding{32 << 10};

}  // namespace

StreamWindow window_of(const config::CoreSpec& core) {
  const std::int64_t in_flight = core.demand_misses + core.prefetch_lines;
  return {.in_flight = in_flight,
          .ahead = kWindowsAhead * in_flight,
          .stores = core.store_lines,
          .training = core.prefetch_training,
          .page = core.prefetch_page};
}

StreamWindow window_of(const config::ClusterSpec& cluster) {
  StreamWindow window = window_of(cluster.core);
  window.priority = static_cast<std::uint8_t>(cluster.priority);
  if (cluster.bandwidth_limit) {
    window.regulation = {.interval = Bytes(kLineBytes) / *cluster.bandwidth_limit,
                         .burst = cluster.limit_window};
  }
  return window;
}

CpuCore::CpuCore(const sc_core::sc_module_name& name, const config::CoreSpec& spec, EngineStream& stream,
                 Cache& cache, const config::CacheSpec& cache_spec)
    : sc_module(name), spec_(spec), stream_(stream), segmenter_(cache, cache_spec) {
  socket.register_nb_transport_bw(this, &CpuCore::respond);
  SC_HAS_PROCESS(CpuCore);
  SC_METHOD(finish);
  sensitive << finished_;
  dont_initialize();
}

void CpuCore::start(const ThreadWork& work, bool passes_cache) {
  check(done_, "a core starts when it is done");
  done_ = false;
  stream_.begin(now());
  const std::int64_t lines = lines_of(work.extents);
  if (lines == 0) {
    done_at_ = now() + compute_time(spec_, work.simd_operations);
    finished_.notify(to_sc_time(done_at_ - now()));
    return;
  }
  segmenter_.begin(work.extents, line_work(spec_, work.simd_operations, lines), passes_cache);
  fill();
}

/// Sends segments until enough are outstanding; ends the work when none is left.
void CpuCore::fill() {
  while (outstanding_ < kOutstanding) {
    std::optional<Segment> segment = segmenter_.next();
    if (!segment) {
      break;
    }
    segment->lead_in += std::exchange(stolen_, Picoseconds());
    tlm::tlm_generic_payload& payload = pool_.take(*segment, stream_);
    outstanding_ += Bytes(payload.get_data_length());
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    socket->nb_transport_fw(payload, phase, delay);
  }
  if (outstanding_ == Bytes()) {
    done_at_ =
        std::max(now(), stream_.used_until()) + segmenter_.lead_in() + std::exchange(stolen_, Picoseconds());
    finished_.notify(to_sc_time(done_at_ - now()));
  }
}

tlm::tlm_sync_enum CpuCore::respond(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                    sc_core::sc_time& delay) {
  if (phase == tlm::END_REQ) {
    return tlm::TLM_ACCEPTED;
  }
  check(phase == tlm::BEGIN_RESP && payload.is_response_ok(), "memory answers with BEGIN_RESP");
  outstanding_ -= Bytes(payload.get_data_length());
  phase = tlm::END_RESP;
  delay = sc_core::SC_ZERO_TIME;
  payload.release();
  fill();
  return tlm::TLM_COMPLETED;
}

void CpuCore::finish() {
  done_ = true;
  done_event_.notify(sc_core::SC_ZERO_TIME);
}

}  // namespace kvsim::model
