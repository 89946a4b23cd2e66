// SPDX-License-Identifier: Apache-2.0
#include "sim/run/in_memory.h"

#include <algorithm>

#include "sim/run/streamed_weights.h"
#include "sim/run/tiered_kv.h"

namespace kvsim::sim {
namespace {

Bytes whole_pages(Bytes bytes, Bytes page) {
  return Bytes((bytes.count() + page.count() - 1) / page.count() * page.count());
}

/// mlock() of the first bytes.
std::vector<trace::Alloc> locked_apart(const config::RunSpec& spec, const trace::Alloc& alloc) {
  const Bytes locked = std::min(alloc.bytes, whole_pages(spec.memory.locked, spec.device.os.page));
  std::vector<trace::Alloc> parts;
  if (locked > Bytes()) {
    parts.push_back(alloc);
    parts.back().bytes = locked;
    parts.back().backing = trace::Backing::device_contiguous;
    parts.back().name = trace::alloc_name(kLockedName);
  }
  if (locked < alloc.bytes) {
    parts.push_back(alloc);
    parts.back().address += static_cast<trace::Address>(locked.count());
    parts.back().bytes -= locked;
  }
  return parts;
}

}  // namespace

std::vector<trace::Alloc> in_memory(const config::RunSpec& spec, const trace::Alloc& alloc) {
  if (is_tiered(spec, alloc)) {
    return tiers_in_memory(spec, alloc);
  }
  if (is_streamed(spec, alloc)) {
    return streamed_in_memory(spec, alloc);
  }
  return alloc.backing == trace::Backing::file_mapped ? locked_apart(spec, alloc) : std::vector{alloc};
}

}  // namespace kvsim::sim
