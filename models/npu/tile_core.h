// SPDX-License-Identifier: Apache-2.0
// One NPU core: a DMA engine that moves tiles between DRAM and SRAM while arithmetic works on those that are
// there.
#pragma once

#include <cstdint>
#include <vector>

#include <systemc>
#include <tlm>
#include <tlm_utils/simple_initiator_socket.h>

#include "configs/spec/device_spec.h"
#include "models/npu/dma_channel.h"
#include "traces/attention/tile_plan.h"

namespace kvsim::model {

enum class MacFormat { int8, fp16 };

struct TileCoreCounters {
  Picoseconds done_at;
  Picoseconds arithmetic;  ///< busy with steps, SRAM included
  Picoseconds waited;      ///< for loads, or for stores to leave a buffer
  Bytes most_in_sram;
};

/// Works through one core's steps of a plan, from time 0 on: loads, arithmetic and stores are processes of
/// their own, which meet in the buffers. A step's arithmetic takes the longest of: MACs, softmax, and each
/// buffer it uses read once from the SRAM.
class TileCore : public sc_core::sc_module {
 public:
  tlm_utils::simple_initiator_socket<TileCore> load_to_sram{"load_to_sram"};
  tlm_utils::simple_initiator_socket<TileCore> arithmetic{"arithmetic"};
  tlm_utils::simple_initiator_socket<TileCore> store_from_sram{"store_from_sram"};
  DmaChannel load_dma, store_dma;

  TileCore(const sc_core::sc_module_name& name, const config::NpuSpec& spec, const trace::TilePlan& plan,
           std::size_t core, MacFormat format, MemoryPath& path);

  [[nodiscard]] bool done() const { return stored_ == steps_.size(); }
  [[nodiscard]] const TileCoreCounters& counters() const { return counters_; }

 private:
  void load();
  void compute();
  void store();

  /// Waits until nothing of use is in the buffer.
  void take(std::size_t buffer);
  void release(std::size_t step, bool stored);
  void find_deaths();
  [[nodiscard]] Picoseconds arithmetic_time(const trace::TileStep& step) const;

  config::NpuSpec spec_;
  const trace::TilePlan& plan_;
  const std::vector<trace::TileStep>& steps_;
  Picoseconds period_;
  std::int64_t macs_;  ///< a cycle

  std::vector<bool> live_;                        ///< by buffer: it holds something
  std::vector<std::vector<std::size_t>> deaths_;  ///< by step: buffers whose contents nobody needs after it
  Bytes in_sram_;
  std::size_t loaded_ = 0, computed_ = 0, stored_ = 0;  ///< steps
  sc_core::sc_event progress_{"progress"};
  TileCoreCounters counters_;
};

}  // namespace kvsim::model
