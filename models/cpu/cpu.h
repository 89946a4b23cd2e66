// SPDX-License-Identifier: Apache-2.0
// The CPU: cores of one or more kinds, the cache they share, and the barrier at which threads meet.
#pragma once

#include <memory>
#include <vector>

#include <systemc>

#include "configs/spec/device_spec.h"
#include "models/accounting/time_account.h"
#include "models/cache/cache.h"
#include "models/cpu/cpu_core.h"
#include "models/memory_path/memory_path.h"

namespace kvsim::model {

class Cpu : public sc_core::sc_module {
 public:
  /// Its cores' windows are streams of `path`. Bind each core's socket before simulation starts.
  Cpu(const sc_core::sc_module_name& name, const config::DeviceSpec& device, MemoryPath& path);

  [[nodiscard]] std::vector<std::unique_ptr<CpuCore>>& cores() { return cores_; }

  /// Runs one operator: thread i on core i. Returns when the last thread is done, and tells where the time
  /// went; call from an SC_THREAD.
  [[nodiscard]] TimeAccount run(const std::vector<ThreadWork>& threads);

 private:
  MemoryPath& path_;
  std::vector<std::unique_ptr<CpuCore>> cores_;
  Cache cache_;
};

}  // namespace kvsim::model
