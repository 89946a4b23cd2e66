// SPDX-License-Identifier: Apache-2.0
// What memory has of an allocation whose rest is on storage.
#pragma once

#include <string_view>
#include <vector>

#include "configs/spec/run_spec.h"
#include "traces/record/record.h"

namespace kvsim::sim {

/// Names of the parts of weights.
inline constexpr std::string_view kLockedName = "weights, locked";
inline constexpr std::string_view kLayerBuffersName = "weights, buffers";

/// Of a KV cache in tiers its budget, and room for blocks on their way; of streamed weights what stays, and
/// the buffers; of mapped ones all, and what is locked apart, since that cannot be dropped.
[[nodiscard]] std::vector<trace::Alloc> in_memory(const config::RunSpec& spec, const trace::Alloc& alloc);

}  // namespace kvsim::sim
