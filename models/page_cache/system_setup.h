// SPDX-License-Identifier: Apache-2.0
// The page cache of a device's Linux.
#pragma once

#include "configs/spec/device_spec.h"
#include "models/page_cache/page_cache.h"

namespace kvsim::model {

/// What the kernel keeps free: mm/page_alloc.c, init_per_zone_wmark_min(): 4 sqrt(KiB of memory), 128 KiB to
/// 256 MiB; at most an eighth of `memory`.
[[nodiscard]] Bytes min_free(const config::DeviceSpec& device, Bytes memory);

/// With `memory` for file pages and what is kept free. Precondition: the device has storage.
[[nodiscard]] CacheSetup system_setup(const config::DeviceSpec& device, Bytes memory);

}  // namespace kvsim::model
