// SPDX-License-Identifier: Apache-2.0
// A device of the catalogue as SystemC modules, wired.
#pragma once

#include <cstdint>
#include <memory>

#include <systemc>

#include "configs/spec/device_spec.h"
#include "models/cpu/cpu.h"
#include "models/interconnect/interconnect.h"
#include "models/masters/masters.h"
#include "models/masters/storage_dma.h"
#include "models/memory_path/memory_system.h"

namespace kvsim::sim {

class Soc : public sc_core::sc_module {
 public:
  Soc(const sc_core::sc_module_name& name, const config::DeviceSpec& device, model::Granularity granularity,
      std::uint64_t seed = 1);

  [[nodiscard]] model::Cpu& cpu() { return cpu_; }
  [[nodiscard]] model::MemoryPath& memory() { return memory_.path(); }
  [[nodiscard]] model::Masters& masters() { return masters_; }
  /// Null if the device has no storage.
  [[nodiscard]] model::StorageDma* storage_dma() { return storage_dma_.get(); }
  /// Masters go on for ever otherwise.
  void stop();

 private:
  model::MemorySystem memory_;
  model::Interconnect interconnect_;
  model::Cpu cpu_;
  model::Masters masters_;
  std::unique_ptr<model::StorageDma> storage_dma_;
};

}  // namespace kvsim::sim
