// SPDX-License-Identifier: Apache-2.0
#include "traces/workload/kv_classes.h"

#include <algorithm>
#include <array>

#include "traces/kv_cache/kv_kinds.h"

namespace kvsim::trace {
namespace {

/// Layers of the model, global and local ones.
std::array<std::int64_t, 2> count_layers(const config::LlmSpec& model) {
  const std::int64_t locals =
      model.local ? local_layers(
                        {.layers = model.layers, .period = model.local->period, .locals = model.local->count})
                  : 0;
  return {model.layers - locals, locals};
}

/// Of what an engine does about tokens only a window has a meaning where the model has one: the smaller
/// holds.
config::KvSpec local_spec(config::KvSpec spec, std::int64_t window) {
  const bool windowed = spec.window > 0 && spec.h2o == 0 && spec.entropy == 0 && spec.sinks == 0;
  spec.window = windowed ? std::min(spec.window, window) : window;
  spec.sinks = spec.h2o = spec.entropy = spec.topk = 0;
  return spec;
}

bool recomputes(const LlmRun& run) {
  return run.engine.kv_cache == config::KvCacheUse::recomputed;
}

KvShape common_shape(const LlmRun& run, std::int64_t context) {
  const config::LlmSpec& model = run.model;
  return {.layers = 0,
          .kv_heads = model.kv_heads,
          .head_dim = key_numbers(model),
          .capacity = padded_context(context, run.engine.context_padding),
          .spec = run.engine.kv,
          .batch = ubatch_tokens(run.engine, context),
          .latent = model.latent ? model.latent->kv_rank : 0,
          .head_alignment = run.engine.kv_row_alignment,
          .layout = run.engine.kv_layout,
          .v_transposed = run.engine.v_transposed,
          .block = run.engine.kv_block,
          .block_order = run.engine.kv_block_order,
          .seed = run.seed};
}

}  // namespace

std::vector<KvClass> kv_classes(const LlmRun& run, std::int64_t context_tokens) {
  const auto [global, local] = count_layers(run.model);
  const auto kept = [&](std::int64_t layers) { return recomputes(run) ? std::int64_t{1} : layers; };
  std::vector<KvClass> classes;
  if (global > 0) {
    classes.push_back({.region = Region::kv_cache, .shape = common_shape(run, context_tokens)});
    classes.back().shape.layers = kept(global);
  }
  if (local > 0) {
    KvShape shape = common_shape(run, context_tokens);
    const std::int64_t window = run.model.local->window;
    shape.layers = kept(local);
    shape.spec = local_spec(shape.spec, window);
    shape.reserved = cells({.context = shape.capacity,
                            .window = shape.spec.window,
                            .ubatch = shape.batch,
                            .padding = run.engine.context_padding});
    classes.push_back({.region = Region::kv_window, .shape = shape});
  }
  return classes;
}

std::vector<KvLayer> kv_layers(const LlmRun& run) {
  const std::size_t locals_cache = count_layers(run.model)[0] > 0 ? 1 : 0;
  std::array<std::uint32_t, 2> next{};
  std::vector<KvLayer> layers;
  for (std::int64_t i = 0; i < run.model.layers; ++i) {
    const std::size_t local = is_local(run.model, i) ? 1 : 0;
    const std::uint32_t number = recomputes(run) ? 0 : next[local]++;
    layers.push_back({.cache = local == 1 ? locals_cache : 0, .layer = Layer(number)});
  }
  return layers;
}

}  // namespace kvsim::trace
