// SPDX-License-Identifier: Apache-2.0
#include "sim/soc/soc.h"

namespace kvsim::sim {

Soc::Soc(const sc_core::sc_module_name& name, const config::DeviceSpec& device,
         model::Granularity granularity)
    : sc_module(name),
      memory_("memory", device, granularity),
      interconnect_("interconnect"),
      cpu_("cpu", device, memory_.path()) {
  for (const auto& core : cpu_.cores()) {
    core->socket.bind(interconnect_.masters);
  }
  interconnect_.memory.bind(memory_.socket);
}

}  // namespace kvsim::sim
