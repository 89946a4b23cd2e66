// SPDX-License-Identifier: Apache-2.0
#include "traces/kv_cache/kv_kinds.h"

#include <algorithm>

#include "configs/error/error.h"
#include "traces/kv_cache/kv_shape.h"
#include "traces/record/checked.h"

namespace kvsim::trace {
namespace {

constexpr const char* kWhat = "the KV cache";
constexpr std::int64_t kStateNumber = 4;  // llama.cpp keeps recurrent state in F32

}  // namespace

Bytes cache_bytes(std::span<const KvLayers> classes) {
  Bytes bytes{};
  for (const KvLayers& c : classes) {
    bytes = checked_sum(kWhat, bytes, checked_product(kWhat, {c.layers, c.row.count(), c.cells}));
  }
  return bytes;
}

Bytes row_bytes(const HeadsRow& row) {
  const Bytes both = checked_sum(kWhat, config::kv_vector_bytes(row.k, row.head_dim),
                                 config::kv_vector_bytes(row.v, row.head_dim));
  return checked_product(kWhat, {both.count(), row.kv_heads});
}

Bytes row_bytes(const LatentRow& row) {
  return config::kv_vector_bytes(row.format, checked_sum(kWhat, Bytes(row.latent), Bytes(row.rope)).count());
}

Bytes transposed_row_bytes(const LatentRow& row) {
  return config::kv_vector_bytes({.number = config::KvNumber::f16}, row.latent);
}

std::int64_t cells(const WindowCells& window) {
  const Bytes seen = checked_product(kWhat, {window.window, window.sequences});
  const std::int64_t needed = checked_sum(kWhat, seen, Bytes(window.ubatch)).count();
  return padded_context(std::min(window.context, needed), window.padding);
}

std::int64_t local_layers(const Interleaving& pattern) {
  check(pattern.period > 0 && pattern.locals >= 0 && pattern.locals <= pattern.period,
        "a pattern has as many local layers as its period at most");
  return pattern.layers / pattern.period * pattern.locals +
         std::min(pattern.layers % pattern.period, pattern.locals);
}

Bytes state_bytes(const RecurrentState& state) {
  const std::int64_t carried = checked_sum(kWhat, Bytes(state.conv - 1), Bytes(state.state)).count();
  return checked_product(kWhat, {state.layers, state.inner, carried, kStateNumber});
}

}  // namespace kvsim::trace
