// SPDX-License-Identifier: Apache-2.0
// A device of the catalogue as SystemC modules, wired.
#pragma once

#include <systemc>

#include "configs/spec/device_spec.h"
#include "models/cpu/cpu.h"
#include "models/interconnect/interconnect.h"
#include "models/memory_path/memory_system.h"

namespace kvsim::sim {

class Soc : public sc_core::sc_module {
 public:
  Soc(const sc_core::sc_module_name& name, const config::DeviceSpec& device, model::Granularity granularity);

  [[nodiscard]] model::Cpu& cpu() { return cpu_; }
  [[nodiscard]] model::MemoryPath& memory() { return memory_.path(); }

 private:
  model::MemorySystem memory_;
  model::Interconnect interconnect_;
  model::Cpu cpu_;
};

}  // namespace kvsim::sim
