// SPDX-License-Identifier: Apache-2.0
#include "sim/soc/soc.h"

namespace kvsim::sim {

Soc::Soc(const sc_core::sc_module_name& name, const config::DeviceSpec& device,
         model::Granularity granularity, std::uint64_t seed)
    : sc_module(name),
      memory_("memory", device, granularity),
      interconnect_("interconnect"),
      cpu_("cpu", device, memory_.path()),
      masters_("masters", device, seed, cpu_, memory_.path(), interconnect_) {
  for (const auto& core : cpu_.cores()) {
    core->socket.bind(interconnect_.masters);
  }
  if (device.storage) {
    storage_dma_ = std::make_unique<model::StorageDma>("storage", memory_.path());
    storage_dma_->engine().socket.bind(interconnect_.masters);
  }
  interconnect_.memory.bind(memory_.socket);
}

void Soc::stop() {
  masters_.stop();
  if (storage_dma_) {
    storage_dma_->stop();
  }
}

}  // namespace kvsim::sim
