// SPDX-License-Identifier: Apache-2.0
#include "models/sram/sram.h"

#include "configs/error/error.h"

namespace kvsim::model {

Sram::Sram(const sc_core::sc_module_name& name, const config::SramSpec& spec, Hertz clock)
    : sc_module(name), banks_(spec), period_(period(clock)) {
  socket.register_b_transport(this, &Sram::transport);
  SC_HAS_PROCESS(Sram);
  SC_METHOD(advance);
  sensitive << wake_;
  dont_initialize();
}

/// The next clock edge.
SramCycle Sram::cycle_now() const {
  return (now().count() + period_.count() - 1) / period_.count();
}

void Sram::transport(int /*initiator*/, tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  check(delay == sc_core::SC_ZERO_TIME, "the SRAM's time is simulated");
  const auto* extension = payload.get_extension<SramExtension>();
  check(extension != nullptr, "an SRAM is asked for a run");
  banks_.run_to(cycle_now());
  const std::int64_t name = banks_.begin(extension->run);
  wake_.notify(sc_core::SC_ZERO_TIME);  // others end later now
  while (done_.erase(name) == 0) {
    wait(ended_);
  }
  payload.set_response_status(tlm::TLM_OK_RESPONSE);
}

/// Runs up to the earliest time at which one can have ended, and looks again.
void Sram::advance() {
  banks_.run_to(cycle_now());
  for (; !banks_.ended().empty(); banks_.ended().pop()) {
    done_.insert(banks_.ended().front().name);
    ended_.notify(sc_core::SC_ZERO_TIME);
  }
  if (!banks_.idle()) {
    wake_.notify(to_sc_time(period_ * banks_.earliest_end() - now()));
  }
}

}  // namespace kvsim::model
