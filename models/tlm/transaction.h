// SPDX-License-Identifier: Apache-2.0
// What travels between SystemC modules: generic payloads from a pool, with one typed extension.
#pragma once

#include <memory>
#include <vector>

#include <systemc>
#include <tlm>

#include "configs/units/quantity.h"
#include "models/stream/engine_stream.h"

namespace kvsim::model {

/// Says what a payload is in the models' own terms. The payload's own address and length tell where the bytes
/// begin and how many there are, for whoever looks from outside; the stride between rows is only here.
class SegmentExtension : public tlm::tlm_extension<SegmentExtension> {
 public:
  Segment segment;
  EngineStream* stream = nullptr;  ///< the initiator's window, which paces the segment's lines

  tlm::tlm_extension_base* clone() const override { return new SegmentExtension(*this); }
  void copy_from(tlm::tlm_extension_base const& other) override {
    *this = static_cast<const SegmentExtension&>(other);
  }
};

/// Hands out payloads with their extension and takes them back when the last holder releases them.
class PayloadPool : public tlm::tlm_mm_interface {
 public:
  /// A payload that the caller holds once.
  tlm::tlm_generic_payload& take(const Segment& segment, EngineStream& stream);
  void free(tlm::tlm_generic_payload* payload) override;

 private:
  std::vector<std::unique_ptr<tlm::tlm_generic_payload>> all_;
  std::vector<tlm::tlm_generic_payload*> free_;
};

[[nodiscard]] inline SegmentExtension& segment_of(tlm::tlm_generic_payload& payload) {
  return *payload.get_extension<SegmentExtension>();
}

[[nodiscard]] inline Picoseconds now() {
  return Picoseconds(static_cast<std::int64_t>(sc_core::sc_time_stamp().value()));
}
[[nodiscard]] inline sc_core::sc_time to_sc_time(Picoseconds time) {
  return sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(time.count()));
}

}  // namespace kvsim::model
