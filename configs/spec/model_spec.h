// SPDX-License-Identifier: Apache-2.0
// Resolved description of a language model's geometry and of number formats.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/units/quantity.h"

namespace kvsim::config {

/// Of every `period` layers the first `count` are local: a token sees the last `window` ones, itself included
/// (attention.sliding_window). Gemma 2: 1 of 2, Gemma 3: 5 of 6, Mistral 7B v0.1: all.
struct LocalLayers {
  std::int64_t window = 0;
  std::int64_t count = 1;
  std::int64_t period = 1;

  [[nodiscard]] bool has(std::int64_t layer) const { return layer % period < count; }
  bool operator==(const LocalLayers&) const = default;
};

/// Multi-head latent attention (DeepSeek-V2): one vector per token and layer serves all heads as key and, its
/// first kv_rank numbers, as value. Of a head's head_dim numbers the last rope_dim carry the position.
struct LatentAttention {
  std::int64_t kv_rank = 0;    ///< attention.kv_lora_rank
  std::int64_t q_rank = 0;     ///< attention.q_lora_rank; 0: one projection makes the queries
  std::int64_t rope_dim = 0;   ///< rope.dimension_count
  std::int64_t value_dim = 0;  ///< attention.value_length_mla: numbers per head after attention

  bool operator==(const LatentAttention&) const = default;
};

/// A mixture of experts in place of the feed-forward network: a router chooses a few of them for each token.
struct Experts {
  std::int64_t count = 0;   ///< expert_count
  std::int64_t used = 0;    ///< expert_used_count: of them a token takes so many
  std::int64_t ffn = 0;     ///< expert_feed_forward_length: inner width of one
  std::int64_t shared = 0;  ///< expert_shared_count: more of that width, as one network, for every token
  std::int64_t dense_layers = 0;  ///< leading_dense_block_count: the first so many layers have none

  bool operator==(const Experts&) const = default;
};

/// Geometry of a Llama-family decoder. Names in brackets are the GGUF keys.
struct LlmSpec {
  std::string name;
  std::string description;
  std::int64_t layers = 0;                  ///< block_count
  std::int64_t width = 0;                   ///< embedding_length
  std::int64_t heads = 0;                   ///< attention.head_count
  std::int64_t kv_heads = 0;                ///< attention.head_count_kv
  std::int64_t head_dim = 0;                ///< attention.key_length = attention.value_length
  std::int64_t ffn = 0;                     ///< feed_forward_length: of layers without experts
  std::int64_t vocabulary = 0;              ///< vocab_size
  std::int64_t context = 0;                 ///< context_length: what the model was trained for
  bool tied_embeddings = false;             ///< the output matrix is the embedding matrix
  bool qkv_bias = false;                    ///< Qwen2
  bool qk_norm = false;                     ///< Qwen3: RMSNorm over each head of Q and K
  bool fused_qkv = false;                   ///< Phi-3: one tensor for Q, K and V, one for gate and up
  bool post_norms = false;                  ///< Gemma 2 and 3: RMSNorm of what attention and network add
  std::int64_t rope_factors = 0;            ///< F32 values of rope_freqs.weight (Llama 3.1 and later), else 0
  std::optional<LocalLayers> local{};       ///< none: every layer sees all tokens
  std::optional<LatentAttention> latent{};  ///< none: K and V of each KV head are kept
  std::optional<Experts> experts{};         ///< none: one feed-forward network per layer

  bool operator==(const LlmSpec&) const = default;
};

[[nodiscard]] inline bool is_local(const LlmSpec& model, std::int64_t layer) {
  return model.local && model.local->has(layer);
}
[[nodiscard]] inline bool has_experts(const LlmSpec& model, std::int64_t layer) {
  return model.experts && layer >= model.experts->dense_layers;
}
/// Numbers of a key as the cache keeps it.
[[nodiscard]] inline std::int64_t key_numbers(const LlmSpec& model) {
  return model.latent ? model.latent->kv_rank + model.latent->rope_dim : model.head_dim;
}

/// Storage of one tensor: blocks of `block` elements in `bytes` bytes (ggml-common.h).
struct TensorType {
  std::string name;
  std::int64_t block = 1;
  Bytes bytes;
  /// 128-bit SIMD operations that a dot product spends on 32 weights (dequantise, multiply, accumulate).
  double simd_ops_per_32 = 0;
  /// Type that takes its place when a row is not a multiple of `block` (llama-quant.cpp); empty: none.
  std::string fallback;

  bool operator==(const TensorType&) const = default;
};

enum class TensorRole {
  token_embedding,
  output,
  attn_q,
  attn_k,
  attn_v,
  attn_qkv,     ///< fused Q, K, V
  attn_latent,  ///< to and from the latent vector (MLA)
  attn_output,
  ffn_gate,
  ffn_up,  ///< also fused gate and up
  ffn_down,
  router,  ///< chooses experts: always F32
  vector,  ///< norms, biases, rope factors: always F32
};

/// Layers a rule holds for; the ranges are llama.cpp's (llama-quant.cpp).
enum class LayerRange {
  all,
  more_bits,     ///< first and last eighth, and every third between (`use_more_bits`)
  first_eighth,  ///< i < layers / 8
  first_sixteenth,
  first_two,
};

struct TensorRule {
  TensorRole role = TensorRole::output;
  LayerRange layers = LayerRange::all;
  std::int64_t min_gqa = 0;  ///< holds only if heads / kv_heads is at least this
  std::int64_t experts = 0;  ///< holds only for a model of so many experts; 0: for all
  std::string type;

  bool operator==(const TensorRule&) const = default;
};

/// A tensor as a GGUF file has it.
struct StoredTensor {
  std::string name;
  std::string type;
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  Bytes offset;  ///< from the start of the tensor data

  bool operator==(const StoredTensor&) const = default;
};

/// Keeps the sizes of tensors in 64 bits.
inline constexpr std::int64_t kMaxStoredSide = std::int64_t{1} << 26;

/// What a quantised model file is made of: a type per tensor.
struct WeightFormat {
  std::string name;
  std::string description;
  std::string main;               ///< type of every matrix that no rule names
  std::vector<TensorRule> rules;  ///< the first that matches holds
  std::vector<TensorType> types;  ///< every type that `main`, the rules and their fall-backs lead to
  std::vector<StoredTensor>
      stored;  ///< of a model file that exists; `main` and the rules then decide nothing

  bool operator==(const WeightFormat&) const = default;
};

}  // namespace kvsim::config
