// SPDX-License-Identifier: Apache-2.0
// An NPU as SystemC modules, wired to a device's DRAM: executes a plan of tiles.
#pragma once

#include <memory>
#include <vector>

#include <systemc>

#include "configs/spec/device_spec.h"
#include "models/interconnect/interconnect.h"
#include "models/memory_path/memory_system.h"
#include "models/npu/tile_core.h"
#include "models/sram/sram.h"

namespace kvsim::model {

struct TileResult {
  Picoseconds elapsed;
  Bytes dram_read, dram_written;
  Picoseconds arithmetic;  ///< of all cores
  Picoseconds waited;
  Bytes most_in_sram;  ///< of any core
  SramCounters sram;   ///< of all cores
};

class TileEngine : public sc_core::sc_module {
 public:
  /// `device` has an NPU with as many cores as the plan. It starts with the simulation; the plan outlives it.
  TileEngine(const sc_core::sc_module_name& name, const config::DeviceSpec& device, Granularity granularity,
             const trace::TilePlan& plan, MacFormat format);

  /// When simulation has ended. What then is still in the write queues is written first; once.
  [[nodiscard]] TileResult result();

 private:
  MemorySystem memory_;
  Interconnect fabric_;
  EngineStream& later_;  ///< reads a line when all is over, so that the write queues empty
  std::vector<std::unique_ptr<TileCore>> cores_;
  std::vector<std::unique_ptr<Sram>> srams_;
};

}  // namespace kvsim::model
