// SPDX-License-Identifier: Apache-2.0
// The page cache of a device's Linux.
#pragma once

#include "configs/spec/device_spec.h"
#include "models/page_cache/page_cache.h"

namespace kvsim::model {

/// With `memory` for file pages and what is kept free. Precondition: the device has storage.
[[nodiscard]] CacheSetup system_setup(const config::DeviceSpec& device, Bytes memory);

}  // namespace kvsim::model
