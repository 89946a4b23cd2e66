// SPDX-License-Identifier: Apache-2.0
#include "models/npu/tile_engine.h"

#include <algorithm>
#include <string>

#include "configs/error/error.h"

namespace kvsim::model {

namespace {

/// Long enough for all write queues.
constexpr Picoseconds kLater{1'000'000'000};

}  // namespace

TileEngine::TileEngine(const sc_core::sc_module_name& name, const config::DeviceSpec& device,
                       Granularity granularity, const trace::TilePlan& plan, MacFormat format)
    : sc_module(name),
      memory_("memory", device, granularity),
      fabric_("fabric"),
      later_(memory_.path().add_stream({})) {
  check(device.npu.has_value(), "the device has an NPU");
  const config::NpuSpec& npu = *device.npu;
  for (std::size_t i = 0; i < plan.cores.size(); ++i) {
    const std::string number = std::to_string(i);
    TileCore& core = *cores_.emplace_back(
        std::make_unique<TileCore>(("core" + number).c_str(), npu, plan, i, format, memory_.path()));
    Sram& sram = *srams_.emplace_back(std::make_unique<Sram>(("sram" + number).c_str(), npu.sram, npu.clock));
    core.load_dma.socket.bind(fabric_.masters);
    core.store_dma.socket.bind(fabric_.masters);
    core.load_to_sram.bind(sram.socket);
    core.arithmetic.bind(sram.socket);
    core.store_from_sram.bind(sram.socket);
  }
  fabric_.memory.bind(memory_.socket);
}

TileResult TileEngine::result() {
  TileResult r;
  for (std::size_t i = 0; i < cores_.size(); ++i) {
    check(cores_[i]->done(), "every step is done");
    const TileCoreCounters& c = cores_[i]->counters();
    r.elapsed = std::max(r.elapsed, c.done_at);
    r.arithmetic += c.arithmetic;
    r.waited += c.waited;
    r.most_in_sram = std::max(r.most_in_sram, c.most_in_sram);
    const SramCounters& s = srams_[i]->counters();
    r.sram.words += s.words;
    r.sram.broadcasts += s.broadcasts;
    r.sram.conflicts += s.conflicts;
    r.sram.conflict_cycles += s.conflict_cycles;
  }
  later_.begin(now() + kLater);
  later_.push({.row_bytes = Bytes(kLineBytes), .stride = Bytes(kLineBytes)});
  memory_.path().run();
  const MemoryCounters m = memory_.path().counters();
  r.dram_read = m.read - Bytes(kLineBytes);
  r.dram_written = m.written;
  return r;
}

}  // namespace kvsim::model
