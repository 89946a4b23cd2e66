// SPDX-License-Identifier: Apache-2.0
#include "models/masters/masters.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace kvsim::model {
namespace {

constexpr std::int64_t kPage = 4096;

const config::ClusterSpec& cluster_of(const config::DeviceSpec& device, std::int64_t core) {
  auto cluster = device.clusters.begin();
  for (; core >= cluster->count; ++cluster) {
    core -= cluster->count;
  }
  return *cluster;
}

}  // namespace

StreamWindow window_of(const config::MasterUse& use) {
  const std::int64_t lines = use.master.lines;
  StreamWindow window{.in_flight = lines, .ahead = 2 * lines, .stores = lines};
  window.priority = static_cast<std::uint8_t>(use.priority);
  if (use.bandwidth) {
    const Regulation regulation{.interval = Bytes(kLineBytes) / *use.bandwidth, .burst = use.window};
    (use.qos == config::QosMode::limiter ? window.regulation : window.promise) = regulation;
  }
  // What the bus passes, no window passes faster.
  if (use.master.radio && window.regulation.interval == Picoseconds()) {
    window.regulation.interval = Bytes(kLineBytes) / use.master.radio->bus;
  }
  return window;
}

Masters::Masters(const sc_core::sc_module_name& name, const config::DeviceSpec& device, std::uint64_t seed,
                 Cpu& cpu, MemoryPath& path, Interconnect& interconnect)
    : sc_module(name) {
  std::map<std::string, DmaEngine*> shared;
  std::int64_t end = config::dram_capacity(device).count() / kPage * kPage;
  for (std::size_t i = 0; i < device.masters.size(); ++i) {
    const config::MasterUse& use = device.masters[i];
    const config::MasterSpec& spec = use.master;
    end -= (config::buffer_bytes(spec).count() + kPage - 1) / kPage * kPage;
    DmaEngine* dma = spec.engine.empty() ? nullptr : shared[spec.engine];
    if (dma == nullptr) {
      const StreamWindow window =
          spec.load ? model::window_of(cluster_of(device, spec.load->core)) : window_of(use);
      dma = &new_engine(fmt::format("dma{}", i), window, path, interconnect);
    }
    if (!spec.engine.empty()) {
      shared[spec.engine] = dma;
    }
    DmaEngine* copier = nullptr;
    if (spec.radio && spec.radio->copy) {
      copier = &new_engine(fmt::format("copier{}", i), model::window_of(cluster_of(device, spec.radio->core)),
                           path, interconnect);
      copier->add_channel(0);
    }
    const Master::Place place{.dma = *dma,
                              .channel = dma->add_channel(use.priority),
                              .copier = copier,
                              .cpu = cpu,
                              .buffer = static_cast<trace::Address>(end)};
    masters_.push_back(std::make_unique<Master>(fmt::format("master{}", i).c_str(), spec, place, seed + i));
  }
}

DmaEngine& Masters::new_engine(const std::string& name, const StreamWindow& window, MemoryPath& path,
                               Interconnect& interconnect) {
  engines_.push_back(std::make_unique<DmaEngine>(name.c_str(), window, path));
  engines_.back()->socket.bind(interconnect.masters);
  return *engines_.back();
}

std::vector<trace::Alloc> Masters::buffers() const {
  std::vector<trace::Alloc> buffers;
  for (const std::unique_ptr<Master>& master : masters_) {
    trace::Alloc alloc{.address = master->buffer(),
                       .bytes = config::buffer_bytes(master->spec()),
                       .kind = trace::Kind::other,
                       .backing = trace::Backing::device_contiguous};
    const std::string name = master->spec().name.substr(0, alloc.name.size());
    std::ranges::copy(name, alloc.name.begin());
    buffers.push_back(alloc);
  }
  return buffers;
}

void Masters::stop() {
  for (const std::unique_ptr<Master>& master : masters_) {
    master->stop();
  }
}

}  // namespace kvsim::model
