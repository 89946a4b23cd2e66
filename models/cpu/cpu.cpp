// SPDX-License-Identifier: Apache-2.0
#include "models/cpu/cpu.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "configs/error/error.h"

namespace kvsim::model {

Bytes bytes_read_once(const std::vector<ThreadWork>& threads, std::initializer_list<trace::Kind> kinds) {
  std::size_t extents = 0;
  for (const ThreadWork& thread : threads) {
    extents += thread.extents.size();
  }
  std::vector<std::pair<trace::Address, Bytes>> reads;
  reads.reserve(extents);
  for (const ThreadWork& thread : threads) {
    for (const trace::Extent& extent : thread.extents) {
      const bool counts =
          kinds.size() == 0 || std::find(kinds.begin(), kinds.end(), extent.kind) != kinds.end();
      if (counts && extent.access == trace::Access::read) {
        reads.emplace_back(extent.address, total_bytes(extent));
      }
    }
  }
  std::sort(reads.begin(), reads.end());
  Bytes sum;
  for (auto read = reads.begin(); read != reads.end(); ++read) {
    sum += read == reads.begin() || *read != *std::prev(read) ? read->second : Bytes();
  }
  return sum;
}

Cpu::Cpu(const sc_core::sc_module_name& name, const config::DeviceSpec& device, MemoryPath& path)
    : sc_module(name), path_(path), cache_(device.llc), skipped_(cache_, device.llc) {
  for (const config::ClusterSpec& cluster : device.clusters) {
    for (std::int64_t i = 0; i < cluster.count; ++i) {
      const std::string core = "core" + std::to_string(cores_.size());
      cores_.push_back(std::make_unique<CpuCore>(core.c_str(), cluster.core,
                                                 path.add_stream(window_of(cluster)), cache_, device.llc));
    }
  }
}

TimeAccount Cpu::run(const std::vector<ThreadWork>& threads, Bytes read_once) {
  check(threads.size() <= cores_.size(), "every thread has a core");
  const Picoseconds begin = now();
  const BusTime bus = path_.bus_time();
  skipped_.catch_up();
  for (std::size_t i = 0; i < threads.size(); ++i) {
    cores_[i]->start(threads[i], passes_cache(read_once));
  }
  const CpuCore* last = nullptr;
  for (std::size_t i = 0; i < threads.size(); ++i) {
    while (!cores_[i]->done()) {
      wait(cores_[i]->done_event());
    }
    if (last == nullptr || cores_[i]->done_at() > last->done_at()) {
      last = cores_[i].get();
    }
  }
  if (last == nullptr) {
    return {};
  }
  return settle(last->done_at() - begin, path_.bus_time() - bus, last->engine_time());
}

}  // namespace kvsim::model
