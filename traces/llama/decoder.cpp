// SPDX-License-Identifier: Apache-2.0
#include "traces/llama/decoder.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "traces/number/hadamard.h"

namespace kvsim::trace {
namespace {

class Nowhere final : public AccessSink {
 public:
  void put(const Record& /*record*/) override {}
};

KvShape shape_of(const LlamaWeights& weights, const DecoderOptions& options, const config::KvSpec& spec,
                 std::uint32_t batch) {
  return {.layers = 1,
          .kv_heads = static_cast<std::int64_t>(weights.kv_heads),
          .head_dim = static_cast<std::int64_t>(weights.head_dim),
          .capacity = options.capacity,
          .spec = spec,
          .batch = batch,
          .layout = options.layout};
}

/// Frequencies fall geometrically over the pairs (Su et al. 2021).
double frequency(const LlamaWeights& weights, std::size_t pair) {
  const double exponent = -2.0 * static_cast<double>(pair) / static_cast<double>(weights.head_dim);
  const double factor = weights.rope_factors.empty() ? 1.0 : double{weights.rope_factors[pair]};
  return std::pow(weights.rope_base, exponent) / factor;
}

float silu(float x) {
  return x / (1.0F + std::exp(-x));
}

}  // namespace

LlamaDecoder::LlamaDecoder(const LlamaWeights& weights, const DecoderOptions& options)
    : weights_(weights),
      options_(options),
      attention_{.heads = static_cast<std::int64_t>(weights.heads), .kv_tile = 64, .query_tile = 32} {
  if (options_.capacity == 0) {
    options_.capacity = static_cast<std::int64_t>(weights.context);
  }
  // What a policy drops, or what is kept in F16 while it is recent, changes from token to token.
  const config::KvSpec& kv = options_.kv;
  const bool one_by_one = make_policy(kv)->budget() || kv.recent > 0 || kv.topk > 0 ||
                          kv.k.range == config::KvRange::channel || kv.v.range == config::KvRange::channel;
  at_once_ = one_by_one ? 1 : options_.batch;
  const config::KvFormat f32{.number = config::KvNumber::f32};
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    layers_.push_back(
        {.kept = KvCache(shape_of(weights, options_, kv, at_once_), 0, KvPayload::numbers), .exact = {}});
    if (options_.observer != nullptr) {
      layers_.back().exact.emplace(shape_of(weights, options_, {.k = f32, .v = f32}, options_.batch), 0,
                                   KvPayload::numbers);
    }
  }
  const std::size_t pairs = weights.head_dim / 2;
  for (std::int64_t position = 0; position < options_.capacity; ++position) {
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      const double angle = static_cast<double>(position) * frequency(weights, pair);
      cosine_.push_back(static_cast<float>(std::cos(angle)));
      sine_.push_back(static_cast<float>(std::sin(angle)));
    }
  }
}

void LlamaDecoder::reset() {
  depth_ = 0;
  for (LayerState& layer : layers_) {
    layer.kept.reset();
    if (layer.exact) {
      layer.exact->reset();
    }
  }
}

bool LlamaDecoder::feed(std::span<const std::uint32_t> tokens, std::vector<float>& logits) {
  if (static_cast<std::int64_t>(depth_ + tokens.size()) > options_.capacity) {
    throw UserError(
        fmt::format("{} tokens do not fit into a context of {}", depth_ + tokens.size(), options_.capacity));
  }
  logits.resize(tokens.size() * weights_.vocabulary);
  for (std::size_t first = 0; first < tokens.size(); first += options_.batch) {
    if (options_.stop != nullptr && *options_.stop) {
      return false;
    }
    const std::size_t count = std::min<std::size_t>(options_.batch, tokens.size() - first);
    feed_batch(tokens.subspan(first, count),
               std::span(logits).subspan(first * weights_.vocabulary, count * weights_.vocabulary));
  }
  return true;
}

void LlamaDecoder::feed_batch(std::span<const std::uint32_t> tokens, std::span<float> logits) {
  x_.clear();
  for (const std::uint32_t token : tokens) {
    if (token >= weights_.vocabulary) {
      throw UserError(fmt::format("token {} is not in a vocabulary of {}", token, weights_.vocabulary));
    }
    const auto row = weights_.embedding.row(token);
    x_.insert(x_.end(), row.begin(), row.end());
  }
  DecoderObserver* observer = options_.observer;
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    if (observer != nullptr) {
      observer->residual(layer, x_);
    }
    run_layer(layer, tokens.size());
  }
  if (observer != nullptr) {
    observer->residual(layers_.size(), x_);
  }
  normalise(weights_.output_norm, tokens.size());
  const Linear& output = weights_.output.numbers.empty() ? weights_.embedding : weights_.output;
  simd::products({.numbers = normal_, .columns = weights_.width}, output.rows(), logits);
  depth_ += static_cast<std::uint32_t>(tokens.size());
}

void LlamaDecoder::run_layer(std::size_t layer, std::size_t tokens) {
  attention_block(layer, tokens);
  feed_forward(weights_.layers[layer], tokens);
}

/// RMSNorm (Zhang, Sennrich 2019) of x into `normal_`.
void LlamaDecoder::normalise(std::span<const float> weights, std::size_t tokens) {
  const std::size_t width = weights_.width;
  normal_.resize(tokens * width);
  for (std::size_t t = 0; t < tokens; ++t) {
    double squares = 0;
    for (std::size_t i = 0; i < width; ++i) {
      squares += double{x_[t * width + i]} * double{x_[t * width + i]};
    }
    const double mean = squares / static_cast<double>(width);
    const auto scale = static_cast<float>(1.0 / std::sqrt(mean + double{weights_.norm_epsilon}));
    for (std::size_t i = 0; i < width; ++i) {
      normal_[t * width + i] = x_[t * width + i] * scale * weights[i];
    }
  }
}

/// Turns each pair (2i, 2i + 1) of every head by its position's angle.
void LlamaDecoder::rope(std::span<float> rows, std::size_t heads) const {
  const std::size_t pairs = weights_.head_dim / 2;
  const std::size_t tokens = rows.size() / (heads * weights_.head_dim);
  for (std::size_t t = 0; t < tokens; ++t) {
    const float* cosine = &cosine_[(depth_ + t) * pairs];
    const float* sine = &sine_[(depth_ + t) * pairs];
    for (std::size_t head = 0; head < heads; ++head) {
      float* of_head = &rows[(t * heads + head) * weights_.head_dim];
      for (std::size_t i = 0; i < pairs; ++i) {
        const float a = of_head[2 * i], b = of_head[2 * i + 1];
        of_head[2 * i] = a * cosine[i] - b * sine[i];
        of_head[2 * i + 1] = a * sine[i] + b * cosine[i];
      }
    }
  }
}

void LlamaDecoder::add_product(const Linear& matrix, std::span<const float> in) {
  sum_.resize(x_.size());
  simd::products({.numbers = in, .columns = matrix.columns}, matrix.rows(), sum_);
  std::transform(x_.begin(), x_.end(), sum_.begin(), x_.begin(), std::plus<>());
}

void LlamaDecoder::attention_block(std::size_t number, std::size_t tokens) {
  const LlamaLayer& layer = weights_.layers[number];
  LayerState& state = layers_[number];
  normalise(layer.attn_norm, tokens);
  const simd::Rows in{.numbers = normal_, .columns = weights_.width};
  q_.resize(tokens * weights_.heads * weights_.head_dim);
  k_.resize(tokens * weights_.kv_heads * weights_.head_dim);
  v_.resize(k_.size());
  simd::products(in, layer.q.rows(), q_);
  simd::products(in, layer.k.rows(), k_);
  simd::products(in, layer.v.rows(), v_);
  rope(q_, weights_.heads);
  rope(k_, weights_.kv_heads);
  out_.resize(q_.size());
  if (state.exact) {
    exact_.resize(q_.size());
    attend_all(*state.exact, tokens, options_.batch, exact_, options_.observer->mass());
  }
  attend_kept(state.kept, tokens);
  if (state.exact) {
    options_.observer->attention({.layer = Layer(static_cast<std::uint32_t>(number)),
                                  .first = Token(depth_),
                                  .out = out_,
                                  .exact = exact_});
  }
  add_product(layer.attn_output, out_);
}

/// Through the cache that is to be measured, with its keys and values turned if they are kept so. Uses up q,
/// k and v.
void LlamaDecoder::attend_kept(KvCache& cache, std::size_t tokens) {
  const auto head_dim = static_cast<std::int64_t>(weights_.head_dim);
  const auto key = static_cast<std::size_t>(config::key_rotation(options_.kv, head_dim));
  const auto value = static_cast<std::size_t>(config::value_rotation(options_.kv, head_dim));
  if (key > 0) {
    hadamard(q_, key);
    hadamard(k_, key);
  }
  if (value > 0) {
    hadamard(v_, value);
  }
  attend_all(cache, tokens, at_once_, out_, nullptr);
  if (value > 0) {
    hadamard(out_, value);
  }
}

void LlamaDecoder::attend_all(KvCache& cache, std::size_t tokens, std::uint32_t at_once, std::span<float> out,
                              MassSink* mass) {
  Nowhere sink;
  const std::size_t q_width = weights_.heads * weights_.head_dim;
  const std::size_t kv_width = weights_.kv_heads * weights_.head_dim;
  for (std::size_t first = 0; first < tokens; first += at_once) {
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(at_once, tokens - first));
    const auto plan = cache.plan(count);
    check(std::holds_alternative<KvPlan>(plan), "the context was checked to have room");
    cache.apply(std::get<KvPlan>(plan));
    const Token position = std::get<KvPlan>(plan).first;
    cache.append({.first = position,
                  .tokens = count,
                  .k = std::span(k_).subspan(first * kv_width, count * kv_width),
                  .v = std::span(v_).subspan(first * kv_width, count * kv_width)},
                 sink);
    attend(attention_, cache,
           {.first = position,
            .queries = count,
            .kv_heads = {.first = Head(0), .last = Head(static_cast<std::uint32_t>(weights_.kv_heads))}},
           {.q = std::span(q_).subspan(first * q_width, count * q_width),
            .out = out.subspan(first * q_width, count * q_width),
            .mass = mass},
           sink);
  }
}

void LlamaDecoder::feed_forward(const LlamaLayer& layer, std::size_t tokens) {
  normalise(layer.ffn_norm, tokens);
  const simd::Rows in{.numbers = normal_, .columns = weights_.width};
  gate_.resize(tokens * layer.gate.rows().rows());
  up_.resize(gate_.size());
  simd::products(in, layer.gate.rows(), gate_);
  simd::products(in, layer.up.rows(), up_);
  std::transform(gate_.begin(), gate_.end(), up_.begin(), gate_.begin(),
                 [](float gate, float up) { return silu(gate) * up; });
  add_product(layer.down, gate_);
}

Bytes LlamaDecoder::peak_bytes() const {
  Bytes bytes{};
  for (const LayerState& layer : layers_) {
    bytes += layer.kept.counters().peak_bytes;
  }
  return bytes;
}

}  // namespace kvsim::trace
