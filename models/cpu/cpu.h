// SPDX-License-Identifier: Apache-2.0
// The CPU: cores of one or more kinds, the cache they share, and the barrier at which threads meet.
#pragma once

#include <initializer_list>
#include <memory>
#include <vector>

#include <systemc>

#include "configs/spec/device_spec.h"
#include "models/accounting/time_account.h"
#include "models/cache/cache.h"
#include "models/cpu/cpu_core.h"
#include "models/cpu/skipped_work.h"
#include "models/memory_path/memory_path.h"

namespace kvsim::model {

/// Bytes that the threads read, each extent once however often they read it; if `kinds` are given, of those.
[[nodiscard]] Bytes bytes_read_once(const std::vector<ThreadWork>& threads,
                                    std::initializer_list<trace::Kind> kinds = {});

class Cpu : public sc_core::sc_module {
 public:
  /// Its cores' windows are streams of `path`. Bind each core's socket before simulation starts.
  Cpu(const sc_core::sc_module_name& name, const config::DeviceSpec& device, MemoryPath& path);

  [[nodiscard]] std::vector<std::unique_ptr<CpuCore>>& cores() { return cores_; }

  /// Runs one operator: thread i on core i. Returns when the last thread is done, and tells where the time
  /// went; call from an SC_THREAD. What `read_once` says is more than the cache passes it: for a part of an
  /// operator the bytes of the whole, so that the part is like it.
  [[nodiscard]] TimeAccount run(const std::vector<ThreadWork>& threads, Bytes read_once);

  /// Something else takes `core` for so long; nobody waits for it if no thread is at work there.
  void steal(std::int64_t core, Picoseconds time) { cores_.at(static_cast<std::size_t>(core))->steal(time); }

  /// An operator is not simulated, or only a part of it was: the next one finds the cache as it leaves it.
  void skip(const std::vector<ThreadWork>& threads, Bytes read_once) {
    skipped_.add(threads, passes_cache(read_once));
  }

 private:
  [[nodiscard]] bool passes_cache(Bytes read_once) const { return read_once > cache_.size(); }

  MemoryPath& path_;
  std::vector<std::unique_ptr<CpuCore>> cores_;
  Cache cache_;
  SkippedWork skipped_;
};

}  // namespace kvsim::model
