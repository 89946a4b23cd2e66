// SPDX-License-Identifier: Apache-2.0
#include "models/page_cache/system_setup.h"

#include <algorithm>
#include <cmath>

namespace kvsim::model {

Bytes min_free(const config::DeviceSpec& device, Bytes memory) {
  const double kib = 4 * std::sqrt((dram_capacity(device) - device.os.firmware).as_double() / 1024);
  return std::min(Bytes(static_cast<std::int64_t>(std::clamp(kib, 128.0, 262144.0)) * 1024), memory / 8);
}

CacheSetup system_setup(const config::DeviceSpec& device, Bytes memory) {
  const config::OsSpec& os = device.os;
  CacheSetup setup;
  setup.memory = memory;
  setup.min_free = min_free(device, memory);
  setup.read_ahead = os.read_ahead;
  setup.minor_fault = os.minor_fault;
  setup.major_fault = os.major_fault;
  const Bytes request = std::min(setup.block.max_request, device.storage->link.max_request);
  setup.block.max_request = std::max(Bytes(kPageBytes), request / kPageBytes * kPageBytes);
  return setup;
}

}  // namespace kvsim::model
