// SPDX-License-Identifier: Apache-2.0
// The forward pass of a Llama model on the functional KV cache and attention kernel.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "traces/attention/attention.h"
#include "traces/kv_cache/kv_cache.h"
#include "traces/llama/weights.h"

namespace kvsim::trace {

/// What one layer's attention gave for some successive tokens: [token][head][head_dim].
struct AttentionOutputs {
  Layer layer{};
  Token first{};
  std::span<const float> out;
  std::span<const float> exact;  ///< of the same queries over all keys and values in FP32
};

/// Looks on. What is not overridden costs little.
class DecoderObserver {
 public:
  DecoderObserver() = default;
  DecoderObserver(const DecoderObserver&) = delete;
  DecoderObserver& operator=(const DecoderObserver&) = delete;
  virtual ~DecoderObserver() = default;

  /// The residual stream after the embedding, then after each layer: [token][width].
  virtual void residual(std::size_t /*layers_done*/, std::span<const float> /*numbers*/) {}
  virtual void attention(const AttentionOutputs& /*outputs*/) {}
  /// Hears of attention's weights over the exact cache; null: nobody wants them.
  virtual MassSink* mass() { return nullptr; }
};

struct DecoderOptions {
  config::KvSpec kv;
  config::KvLayout layout = config::KvLayout::head_major;
  std::int64_t capacity = 0;                ///< tokens; 0: the model's context
  std::uint32_t batch = 128;                ///< tokens whose products are computed together
  DecoderObserver* observer = nullptr;      ///< with one, every layer also has an exact cache
  const std::atomic<bool>* stop = nullptr;  ///< looked at between batches; true: give up
};

/// Reads token after token. Each layer has a cache of its own, so that a policy that ranks sees one token at
/// a time while the products run over many: the numbers are those of decoding step by step.
class LlamaDecoder {
 public:
  LlamaDecoder(const LlamaWeights& weights, const DecoderOptions& options);

  /// Writes the logits of every token, [token][vocabulary]. False if it was stopped. Throws UserError if a
  /// token is not in the vocabulary or the context is full.
  [[nodiscard]] bool feed(std::span<const std::uint32_t> tokens, std::vector<float>& logits);
  void reset();

  /// The most that the tokens in the caches took, summed over the layers.
  [[nodiscard]] Bytes peak_bytes() const;

 private:
  struct LayerState {
    KvCache kept;
    std::optional<KvCache> exact;
  };

  void feed_batch(std::span<const std::uint32_t> tokens, std::span<float> logits);
  void run_layer(std::size_t layer, std::size_t tokens);
  void attention_block(std::size_t layer, std::size_t tokens);
  void feed_forward(const LlamaLayer& layer, std::size_t tokens);
  void rope(std::span<float> rows, std::size_t heads) const;
  void attend_kept(KvCache& cache, std::size_t tokens);
  void attend_all(KvCache& cache, std::size_t tokens, std::uint32_t at_once, std::span<float> out,
                  MassSink* mass);
  void normalise(std::span<const float> weights, std::size_t tokens);
  void add_product(const Linear& matrix, std::span<const float> in);

  const LlamaWeights& weights_;
  DecoderOptions options_;
  AttentionShape attention_;
  std::uint32_t at_once_ = 1;  ///< tokens that attention can take together
  std::vector<LayerState> layers_;
  std::vector<float> cosine_, sine_;  ///< [position][head_dim / 2]
  std::uint32_t depth_ = 0;
  std::vector<float> x_, normal_, q_, k_, v_, out_, exact_, gate_, up_, sum_;  ///< [token][...]
};

}  // namespace kvsim::trace
