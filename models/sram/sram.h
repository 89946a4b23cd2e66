// SPDX-License-Identifier: Apache-2.0
// SystemC shell of an SRAM: a TLM-2.0 target whose banks many initiators share.
#pragma once

#include <algorithm>
#include <set>

#include <systemc>
#include <tlm>
#include <tlm_utils/multi_passthrough_target_socket.h>

#include "configs/error/error.h"
#include "models/sram/sram_banks.h"
#include "models/tlm/transaction.h"

namespace kvsim::model {

/// What a payload asks of an SRAM. The payload's address and length are those of the bytes if they lie in a
/// row.
class SramExtension : public tlm::tlm_extension<SramExtension> {
 public:
  SramRun run;

  tlm::tlm_extension_base* clone() const override { return new SramExtension(*this); }
  void copy_from(tlm::tlm_extension_base const& other) override {
    *this = static_cast<const SramExtension&>(other);
  }
};

/// Blocking transport: returns when the last word was served. Runs of several callers share the banks.
class Sram : public sc_core::sc_module {
 public:
  tlm_utils::multi_passthrough_target_socket<Sram> socket{"socket"};

  Sram(const sc_core::sc_module_name& name, const config::SramSpec& spec, Hertz clock);

  [[nodiscard]] const SramCounters& counters() const { return banks_.counters(); }

 private:
  void transport(int initiator, tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  void advance();
  [[nodiscard]] SramCycle cycle_now() const;

  SramBanks banks_;
  Picoseconds period_;
  std::set<std::int64_t> done_;  ///< runs whose callers have yet to wake
  sc_core::sc_event wake_{"wake"};
  sc_core::sc_event ended_{"ended"};
};

/// Bytes in a row, a word of each bank at a time; call from an SC_THREAD.
template <class Socket>
void pass_bytes(Socket& socket, const config::SramSpec& spec, Bytes offset, Bytes bytes,
                trace::Access access) {
  const std::int64_t word = spec.word.count();
  const std::int64_t lanes = std::min(spec.banks, SramBanks::kMaxLanes);
  const std::int64_t first = offset.count() / word * word;
  const std::int64_t words = (offset.count() + bytes.count() + word - 1) / word - first / word;
  const auto run = [&](std::int64_t address, std::int64_t vectors, std::int64_t count) {
    SramExtension extension;
    extension.run = {address, vectors, count * word, count, word, access};
    tlm::tlm_generic_payload payload;
    payload.set_command(access == trace::Access::read ? tlm::TLM_READ_COMMAND : tlm::TLM_WRITE_COMMAND);
    payload.set_address(static_cast<sc_dt::uint64>(address));
    payload.set_data_length(static_cast<unsigned>(vectors * count * word));
    payload.set_streaming_width(payload.get_data_length());
    payload.set_extension(&extension);
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    socket->b_transport(payload, delay);
    payload.clear_extension(&extension);
    check(payload.is_response_ok(), "the SRAM answers");
  };
  if (words >= lanes) {
    run(first, words / lanes, lanes);
  }
  if (words % lanes != 0) {
    run(first + words / lanes * lanes * word, 1, words % lanes);
  }
}

}  // namespace kvsim::model
