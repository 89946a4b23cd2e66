// SPDX-License-Identifier: Apache-2.0
#include "traces/workload/memory_layout.h"

#include <algorithm>
#include <limits>

#include "configs/error/error.h"
#include "configs/spec/expert_layers.h"
#include "traces/record/checked.h"
#include "traces/workload/activations.h"
#include "traces/workload/kv_classes.h"

namespace kvsim::trace {
namespace {

constexpr const char* kComputeBuffer = "the compute buffer";
constexpr std::int64_t kMaskBytes = 2;  // FP16

/// Floats per token that ggml-alloc's plan of the worst-case graph comes to (fitted to llama.cpp's own
/// figures).
std::int64_t floats_per_token(const config::LlmSpec& model) {
  if (model.experts) {
    const config::Experts& e = *model.experts;
    return std::max({3 * e.used * e.ffn + 4 * model.width + 6, 2 * e.used * (model.width + e.ffn) + 6,
                     e.dense_layers > 0 ? 3 * model.ffn + 4 * model.width + 6 : 0});
  }
  if (model.post_norms) {  // Gemma
    return 3 * model.ffn + 3 * model.width + model.heads * model.head_dim + 10;
  }
  const std::int64_t rows_of_width = model.fused_qkv ? 3 : 4;
  return 3 * model.ffn + rows_of_width * model.width + 6;
}

/// That a layer's attention may look at, summed over the classes of layers, each of which has a mask.
std::int64_t masked_cells(const std::vector<KvClass>& classes) {
  std::int64_t cells = 0;
  for (const KvClass& c : classes) {
    cells += c.region == Region::kv_window ? main_cells(c.shape) : c.shape.capacity;
  }
  return cells;
}

Bytes repacked_bytes(const config::EngineSpec& engine, const std::vector<config::TensorInfo>& tensors) {
  Bytes bytes;
  for (const config::TensorInfo& tensor : tensors) {
    bytes += is_repacked(engine, tensor) ? tensor.bytes : Bytes();
  }
  return bytes;
}

/// Of weights that are in memory whatever the token.
Bytes resident_bytes(const LlmRun& run, const std::vector<config::TensorInfo>& tensors) {
  if (!streams_experts(run)) {
    return config::weight_bytes(tensors);
  }
  Bytes bytes;
  for (const config::TensorInfo& tensor : tensors) {
    if (!config::is_of_experts(tensor)) {
      bytes = checked_round_up("the weights", bytes, config::kTensorAlignment) + tensor.bytes;
    }
  }
  return checked_round_up("the weights", bytes, config::kTensorAlignment);
}

/// What `engine.experts.cache` says, and no less than the experts that one layer of the longest step asks
/// for.
Bytes expert_cache_bytes(const LlmRun& run, const std::vector<config::TensorInfo>& tensors,
                         std::int64_t ubatch) {
  if (!streams_experts(run)) {
    return {};
  }
  Bytes largest;
  for (const config::ExpertLayer& layer : config::expert_layers(run.model, tensors)) {
    largest = std::max(largest, config::expert_bytes(layer));
  }
  const bool kept = run.engine.kv_cache == config::KvCacheUse::kept;
  const std::int64_t computed = std::max<std::int64_t>(1, run.workload.prompt - run.workload.cached);
  const std::int64_t tokens = kept ? std::min(ubatch, computed) : ubatch;
  const config::Experts& experts = *run.model.experts;
  const std::int64_t at_once =
      experts.count / experts.used < tokens ? experts.count : std::min(experts.count, experts.used * tokens);
  return std::max(run.engine.experts.cache, checked_product("the expert cache", {largest.count(), at_once}));
}

/// Flash attention, logits of one token: activations and the causal mask, or the logits if those are larger.
/// Never less than what this workload itself puts into it.
Bytes compute_buffer_bytes(const config::LlmSpec& model, std::int64_t ubatch, std::int64_t cells) {
  const Bytes activations =
      checked_product(kComputeBuffer, {kActivationBytes, ubatch, floats_per_token(model)});
  const Bytes mask = checked_product(kComputeBuffer, {kMaskBytes, ubatch, cells});
  const Bytes logits = checked_product(kComputeBuffer, {kActivationBytes, model.vocabulary});
  const Bytes last_rows = checked_product(kComputeBuffer, {kActivationBytes, ubatch, 2 * model.width + 1});
  return std::max({checked_sum(kComputeBuffer, activations, mask),
                   checked_sum(kComputeBuffer, logits, last_rows),
                   place_activations(model, ubatch, 0).bytes});
}

}  // namespace

LlmRun llm_run(const config::RunSpec& spec) {
  return {.model = spec.model,
          .engine = spec.engine,
          .workload = spec.workload,
          .memory = spec.memory,
          .page = spec.device.os.page,
          .seed = static_cast<std::uint64_t>(spec.run.seed),
          .base = 0};
}

std::int64_t context_tokens(const config::WorkloadSpec& workload) {
  const std::int64_t tokens =
      checked_sum("the context", Bytes(workload.prompt), Bytes(workload.generate)).count();
  if (tokens > std::numeric_limits<std::int32_t>::max()) {
    throw UserError(
        "workload.prompt and workload.generate together are more than 2^31 - 1 tokens; lower one");
  }
  return tokens;
}

std::int64_t ubatch_tokens(const config::EngineSpec& engine, std::int64_t context_tokens) {
  const std::int64_t all = padded_context(context_tokens, engine.context_padding);
  // Without a cache a layer's K and V are there while that layer lasts: its tokens come all at once.
  return engine.kv_cache == config::KvCacheUse::recomputed ? all : std::min(engine.ubatch, all);
}

bool is_repacked(const config::EngineSpec& engine, const config::TensorInfo& tensor) {
  return engine.repack && tensor.role != config::TensorRole::token_embedding &&
         (tensor.type.name == "Q4_0" || tensor.type.name == "Q4_K");
}

bool streams_experts(const LlmRun& run) {
  return run.model.experts && run.engine.experts.place == config::ExpertPlace::streamed;
}

Address expert_file(Address cache_end) {
  constexpr Address kBehind = Address{1} << 20;  // whatever the page
  return (cache_end + kBehind - 1) / kBehind * kBehind;
}

MemoryLayout allocations(const LlmRun& run, std::int64_t context_tokens) {
  const std::vector<KvClass> classes = kv_classes(run, context_tokens);
  const std::vector<config::TensorInfo> tensors = config::tensors(run.model, run.engine.weights);
  const std::int64_t ubatch = ubatch_tokens(run.engine, context_tokens);
  const Backing weights =
      run.memory.weights == config::WeightBacking::mapped ? Backing::file_mapped : Backing::anonymous;
  const auto anonymous = [](std::string_view name, Kind kind, Bytes bytes) {
    return Allocation{.name = alloc_name(name), .kind = kind, .bytes = bytes};
  };
  const bool cached = run.engine.kv_cache == config::KvCacheUse::kept;
  MemoryLayout layout{
      Allocation{.name = alloc_name("weights"),
                 .kind = Kind::weights,
                 .backing = weights,
                 .bytes = resident_bytes(run, tensors)},
      anonymous("repacked weights", Kind::weights, repacked_bytes(run.engine, tensors)),
      anonymous(cached ? "KV cache" : "K and V of a layer", Kind::kv, Bytes()),
      anonymous(cached ? "KV cache (window)" : "K and V of a local layer", Kind::kv, Bytes()),
      anonymous("KV cache, tokens kept in F16", Kind::kv, Bytes()),
      anonymous("compute buffer", Kind::scratch,
                compute_buffer_bytes(run.model, ubatch, masked_cells(classes))),
      anonymous("output buffer", Kind::scratch,
                checked_product("the output buffer", {kActivationBytes, run.model.vocabulary})),
      anonymous("runtime heap", Kind::other, run.engine.runtime_heap),
      anonymous(kExpertCacheName, Kind::weights, expert_cache_bytes(run, tensors, ubatch)),
  };
  for (const KvClass& c : classes) {
    layout[static_cast<std::size_t>(c.region)].bytes = total_bytes(c.shape) - wide_bytes(c.shape);
    Bytes& wide = layout[static_cast<std::size_t>(Region::kv_wide)].bytes;
    wide = checked_sum("the KV cache", wide, wide_bytes(c.shape));
  }
  return layout;
}

std::array<Address, kRegions> place(const MemoryLayout& layout, Bytes page, Address base) {
  constexpr const char* kWhat = "everything that is allocated";
  check(base <= static_cast<Address>(std::numeric_limits<std::int64_t>::max()),
        "a base address fits into 63 bits");
  std::array<Address, kRegions> addresses{};
  Bytes end(static_cast<std::int64_t>(base));
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const Bytes start = checked_round_up(kWhat, end, page);
    addresses[i] = static_cast<Address>(start.count());
    end = checked_sum(kWhat, start, layout[i].bytes);
  }
  return addresses;
}

}  // namespace kvsim::trace
