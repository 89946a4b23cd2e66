// SPDX-License-Identifier: Apache-2.0
// All masters of a device beside its cores, with their DMA engines, wired to the interconnect.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <systemc>

#include "configs/spec/device_spec.h"
#include "models/cpu/cpu.h"
#include "models/interconnect/interconnect.h"
#include "models/masters/master.h"

namespace kvsim::model {

class Masters : public sc_core::sc_module {
 public:
  /// Their buffers lie at the end of memory, one below the other.
  Masters(const sc_core::sc_module_name& name, const config::DeviceSpec& device, std::uint64_t seed, Cpu& cpu,
          MemoryPath& path, Interconnect& interconnect);

  /// Without it they go on for ever.
  void stop();
  [[nodiscard]] const std::vector<std::unique_ptr<Master>>& all() const { return masters_; }
  /// What they hold of memory, one each.
  [[nodiscard]] std::vector<trace::Alloc> buffers() const;

 private:
  DmaEngine& new_engine(const std::string& name, const StreamWindow& window, MemoryPath& path,
                        Interconnect& interconnect);

  std::vector<std::unique_ptr<DmaEngine>> engines_;
  std::vector<std::unique_ptr<Master>> masters_;
};

/// What a DMA engine of this master keeps in flight, and how urgent and bounded it is.
[[nodiscard]] StreamWindow window_of(const config::MasterUse& use);

}  // namespace kvsim::model
