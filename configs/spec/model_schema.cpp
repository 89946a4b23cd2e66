// SPDX-License-Identifier: Apache-2.0
// Tables of language models, tensor types and weight formats, and what must hold between their values.
#include <algorithm>

#include <fmt/format.h>

#include "configs/spec/schemas.h"

namespace kvsim::config {
namespace {

using namespace kvsim::literals;

// No type stores a weight in more than 64 bits; keeps the sizes of tensors in 64 bits.
constexpr std::int64_t kMaxBytesPerWeight = 8;

void check_local(const LocalLayers& local, const Place& place) {
  if (local.count > local.period) {
    place.error("count", fmt::format("{} local layers of every {}; there are at most as many as the period",
                                     local.count, local.period));
  }
}

void check_latent(const LlmSpec& model, const Place& place) {
  if (!model.latent) {
    return;
  }
  if (model.kv_heads != 1) {
    place.error("latent", "latent attention keeps one vector for all heads: kv_heads must be 1");
  }
  if (model.latent->rope_dim >= model.head_dim) {
    place.error("latent.rope_dim", fmt::format("{} of a head's {} numbers carry the position; leave some",
                                               model.latent->rope_dim, model.head_dim));
  }
  if (model.fused_qkv || model.qkv_bias || model.qk_norm || model.local) {
    place.error("latent", "latent attention goes with none of fused_qkv, qkv_bias, qk_norm and local layers");
  }
}

void check_experts(const LlmSpec& model, const Place& place) {
  if (!model.experts) {
    return;
  }
  const Experts& experts = *model.experts;
  if (experts.used > experts.count) {
    place.error("experts.used",
                fmt::format("a token takes {} of {} experts; lower it", experts.used, experts.count));
  }
  if (experts.dense_layers >= model.layers) {
    place.error("experts.dense_layers",
                fmt::format("{} of {} layers have no experts; leave some, or leave experts out",
                            experts.dense_layers, model.layers));
  }
  if (model.fused_qkv || model.post_norms) {
    place.error("experts", "experts go with neither fused_qkv nor post_norms");
  }
}

void check_model(const LlmSpec& model, const Place& place) {
  if (model.heads % model.kv_heads != 0) {
    place.error("kv_heads",
                fmt::format("{} KV heads do not divide {} heads evenly; each KV head serves the same "
                            "number of query heads",
                            model.kv_heads, model.heads));
  }
  check_latent(model, place);
  check_experts(model, place);
}

void check_type(const TensorType& type, const Place& place) {
  if (type.bytes.count() > type.block * kMaxBytesPerWeight) {
    place.error("bytes", fmt::format("'{}' for a block of {} is more than 64 bits per weight",
                                     to_text(type.bytes), type.block));
  }
}

void check_format(const WeightFormat& format, const Place& place) {
  const auto known = [&](const std::string& name) {
    return std::ranges::find(format.types, name, &TensorType::name) != format.types.end();
  };
  if (!known(format.main)) {
    place.error("main", fmt::format("'{}' is not among the types", format.main));
  }
  for (const TensorRule& rule : format.rules) {
    if (!known(rule.type)) {
      place.error("rules", fmt::format("'{}' is not among the types", rule.type));
    }
  }
  for (const StoredTensor& tensor : format.stored) {
    if (!known(tensor.type)) {
      place.error("stored", fmt::format("'{}' is not among the types", tensor.type));
    }
  }
}

}  // namespace

template <>
const Schema<LocalLayers>& schema<LocalLayers>() {
  using T = LocalLayers;
  static const Schema<T> kSchema{
      "layers in which a token sees only the last ones",
      {field("window", &T::window, "tokens that it sees, itself included (attention.sliding_window)")
           .between(1, 1 << 24),
       field("count", &T::count, "of every `period` layers the first so many are local (Gemma 3: 5)")
           .between(1, 1024)
           .optional(),
       field("period", &T::period, "layers after which the pattern begins again (Gemma 3: 6); 1: all local")
           .between(1, 1024)
           .optional()},
      check_local};
  return kSchema;
}

template <>
const Schema<LatentAttention>& schema<LatentAttention>() {
  using T = LatentAttention;
  static const Schema<T> kSchema{
      "multi-head latent attention: one vector per token and layer is K, and its first part V, of all heads",
      {field("kv_rank", &T::kv_rank, "numbers of it that serve as values (attention.kv_lora_rank)")
           .between(1, 65536),
       field("q_rank", &T::q_rank,
             "queries are made through as many numbers (attention.q_lora_rank); 0: directly")
           .between(0, 65536)
           .optional(),
       field("rope_dim", &T::rope_dim, "numbers that carry the position (rope.dimension_count)")
           .between(1, 1024),
       field("value_dim", &T::value_dim, "numbers per head after attention (attention.value_length_mla)")
           .between(1, 1024)}};
  return kSchema;
}

template <>
const Schema<Experts>& schema<Experts>() {
  using T = Experts;
  static const Schema<T> kSchema{
      "mixture of experts: a router chooses some feed-forward networks of many for each token",
      {field("count", &T::count, "experts of a layer (expert_count)").between(1, 4096),
       field("used", &T::used, "of them a token takes so many (expert_used_count)").between(1, 256),
       field("ffn", &T::ffn, "inner width of one (expert_feed_forward_length)").between(1, 1 << 20),
       field("shared", &T::shared,
             "more of that width that every token goes through, as one network (expert_shared_count)")
           .between(0, 64)
           .optional(),
       field("dense_layers", &T::dense_layers,
             "the first so many layers have one network of width `ffn` instead (leading_dense_block_count)")
           .between(0, 1024)
           .optional()}};
  return kSchema;
}

template <>
const Schema<LlmSpec>& schema<LlmSpec>() {
  using T = LlmSpec;
  static const Schema<T> kSchema{
      "geometry of a Llama-family decoder, with GGUF's keys; a file may also be a GGUF file, whose tensor "
      "table gives "
      "the weights too",
      {field("name", &T::name, "what reports call it").by_default("custom"),
       field("description", &T::description, "one line about it").by_default(""),
       field("layers", &T::layers, "decoder layers (block_count)").between(1, 1024),
       field("width", &T::width, "numbers per token between layers (embedding_length)").between(1, 131072),
       field("heads", &T::heads, "query heads (attention.head_count)").between(1, 1024),
       field("kv_heads", &T::kv_heads, "key and value heads (attention.head_count_kv); latent: 1")
           .between(1, 1024),
       field("head_dim", &T::head_dim, "numbers per head (attention.key_length; latent: key_length_mla)")
           .between(1, 1024),
       field("ffn", &T::ffn,
             "inner width of the feed-forward network (feed_forward_length); with experts, of dense_layers")
           .between(1, 1 << 20),
       field("vocabulary", &T::vocabulary, "tokens known (vocab_size)").between(1, 1 << 24),
       field("context", &T::context, "tokens the model was trained for (context_length); more may be run")
           .between(1, 1 << 24),
       field("tied_embeddings", &T::tied_embeddings, "the output matrix is the embedding matrix").optional(),
       field("qkv_bias", &T::qkv_bias, "Q, K and V have a bias (Qwen2)").optional(),
       field("qk_norm", &T::qk_norm, "each head of Q and K is normalised (Qwen3)").optional(),
       field("fused_qkv", &T::fused_qkv, "one tensor for Q, K and V, one for gate and up (Phi-3)").optional(),
       field("post_norms", &T::post_norms,
             "what attention and network add is normalised first (Gemma 2 and 3)")
           .optional(),
       field("rope_factors", &T::rope_factors, "F32 values of the rope factor tensors, 0 if there are none")
           .between(0, 65536)
           .optional(),
       field("local", &T::local, "layers that see a window of the last tokens; none: all see all").optional(),
       field("latent", &T::latent, "multi-head latent attention (DeepSeek-V2); none: K and V per KV head")
           .optional(),
       field("experts", &T::experts, "mixture of experts; none: one feed-forward network per layer")
           .optional()},
      check_model};
  return kSchema;
}

template <>
const Schema<TensorType>& schema<TensorType>() {
  using T = TensorType;
  static const Schema<T> kSchema{
      "how one tensor is stored",
      {field("name", &T::name, "name in ggml").by_default("custom"),
       field("block", &T::block, "weights of a block").between(1, 65536),
       field("bytes", &T::bytes, "bytes of a block").between(1_B, 512_KiB),
       field("simd_ops_per_32", &T::simd_ops_per_32,
             "128-bit SIMD operations of a dot product per 32 weights")
           .between(0, 10000),
       field("fallback", &T::fallback, "type of rows that are no multiple of the block; empty: none")
           .by_default("")},
      check_type};
  return kSchema;
}

template <>
const Schema<TensorRule>& schema<TensorRule>() {
  using T = TensorRule;
  static const Schema<T> kSchema{
      "tensors that are stored in another type than the format's main one",
      {field("role", &T::role, "which tensors"),
       field("layers", &T::layers,
             "in which layers; more_bits: first and last eighth and every third between")
           .optional(),
       field("min_gqa", &T::min_gqa, "only if heads / kv_heads is at least this").between(0, 1024).optional(),
       field("experts", &T::experts, "only if the model has exactly so many experts; 0: in any")
           .between(0, 4096)
           .optional(),
       field("type", &T::type, "their tensor type")}};
  return kSchema;
}

template <>
const Schema<StoredTensor>& schema<StoredTensor>() {
  using T = StoredTensor;
  static const Schema<T> kSchema{
      "a tensor as a GGUF file has it",
      {field("name", &T::name, "name in the file"), field("type", &T::type, "its tensor type"),
       field("rows", &T::rows, "results of the product").between(1, kMaxStoredSide),
       field("columns", &T::columns, "weights of a row").between(1, kMaxStoredSide),
       field("offset", &T::offset, "from the start of the tensor data")
           .between(0_B, Bytes(std::int64_t{1} << 60))}};
  return kSchema;
}

template <>
const Schema<WeightFormat>& schema<WeightFormat>() {
  using T = WeightFormat;
  static const Schema<T> kSchema{
      "what a quantised model file is made of: a type per tensor",
      {field("name", &T::name, "what reports call it").by_default("custom"),
       field("description", &T::description, "one line about it").by_default(""),
       field("main", &T::main, "type of every matrix that no rule names"),
       field("rules", &T::rules, "exceptions; the first that matches holds").by_default({}),
       field("types", &T::types, "the tensor types; those of the catalogue need not be listed")
           .entry_of("tensor_types")
           .by_default({}),
       field("stored", &T::stored,
             "the tensors of a GGUF file, which `model: FILE.gguf` fills in; empty: made by main and rules")
           .by_default({})},
      check_format};
  return kSchema;
}

}  // namespace kvsim::config
