// SPDX-License-Identifier: Apache-2.0
#include "models/tlm/transaction.h"

namespace kvsim::model {

tlm::tlm_generic_payload& PayloadPool::take(const Segment& segment, EngineStream& stream) {
  if (free_.empty()) {
    all_.push_back(std::make_unique<tlm::tlm_generic_payload>(this));
    all_.back()->set_extension(new SegmentExtension);  // owned by the payload
    free_.push_back(all_.back().get());
  }
  tlm::tlm_generic_payload& payload = *free_.back();
  free_.pop_back();
  payload.acquire();
  SegmentExtension& extension = segment_of(payload);
  extension.segment = segment;
  extension.stream = &stream;
  const bool read = segment.access == trace::Access::read;
  payload.set_command(read ? tlm::TLM_READ_COMMAND : tlm::TLM_WRITE_COMMAND);
  payload.set_address(segment.address);
  payload.set_data_length(static_cast<unsigned>(segment.row_bytes.count() * segment.rows));
  payload.set_streaming_width(payload.get_data_length());
  payload.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
  return payload;
}

void PayloadPool::free(tlm::tlm_generic_payload* payload) {
  free_.push_back(payload);
}

}  // namespace kvsim::model
