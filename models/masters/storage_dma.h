// SPDX-License-Identifier: Apache-2.0
// What a storage device reads goes into memory by DMA: writes at the device's pace, beside whatever the cores
// do.
#pragma once

#include <cstdint>

#include <systemc>

#include "models/masters/dma_engine.h"

namespace kvsim::model {

/// TLM-2.0 initiator through its engine.
class StorageDma : public sc_core::sc_module {
 public:
  StorageDma(const sc_core::sc_module_name& name, MemoryPath& path);

  [[nodiscard]] DmaEngine& engine() { return engine_; }
  /// From now on so many bytes a second are written, round and round in `bytes` from `address` on; zero:
  /// none.
  void set_rate(BytesPerSecond rate, trace::Address address, Bytes bytes);
  void stop() { set_rate(BytesPerSecond(), 0, Bytes()); }

 private:
  void run();

  DmaEngine engine_;
  Picoseconds interval_;  ///< between two requests; zero: none
  trace::Address address_ = 0;
  std::int64_t size_ = 0;
  std::int64_t at_ = 0;
  std::int64_t waiting_ = 0;  ///< requests
  sc_core::sc_event changed_{"changed"};
};

}  // namespace kvsim::model
