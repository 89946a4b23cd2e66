// SPDX-License-Identifier: Apache-2.0
// Layers whose KV caches are alike: each class has one cache, for the graph, the memory layout and the
// operators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "traces/kv_cache/kv_shape.h"
#include "traces/workload/memory_layout.h"

namespace kvsim::trace {

struct KvClass {
  Region region = Region::kv_cache;
  KvShape shape;
};

/// Those that have layers: the layers that see all tokens, and those that see a window. Throws UserError if
/// the context is too long.
[[nodiscard]] std::vector<KvClass> kv_classes(const LlmRun& run, std::int64_t context_tokens);

/// Where a layer's K and V are: in the cache of which class, and as which of its layers.
struct KvLayer {
  std::size_t cache = 0;
  Layer layer;
};

/// By layer of the model.
[[nodiscard]] std::vector<KvLayer> kv_layers(const LlmRun& run);

}  // namespace kvsim::trace
