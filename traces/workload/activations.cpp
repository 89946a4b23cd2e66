// SPDX-License-Identifier: Apache-2.0
#include "traces/workload/activations.h"

#include <algorithm>

#include "traces/record/checked.h"

namespace kvsim::trace {
namespace {

constexpr const char* kWhat = "the compute buffer";
constexpr Bytes kAlignment{64};  // a cache line

/// Places activations one behind the other.
class Placer {
 public:
  Placer(std::int64_t tokens, Address base, Bytes offset) : tokens_(tokens), base_(base), offset_(offset) {}

  Activation place(std::int64_t width) {
    const Bytes stride = checked_product(kWhat, {width, kActivationBytes});
    const Activation result{
        .address = base_ + static_cast<Address>(offset_.count()), .width = width, .stride = stride};
    const Bytes end = checked_sum(kWhat, offset_, checked_product(kWhat, {stride.count(), tokens_}));
    offset_ = checked_round_up(kWhat, end, kAlignment);
    return result;
  }

  [[nodiscard]] Bytes offset() const { return offset_; }

 private:
  std::int64_t tokens_;
  Address base_;
  Bytes offset_;
};

/// `width` numbers of each row of `whole`, from the `first` on.
Activation part(const Activation& whole, std::int64_t first, std::int64_t width) {
  return {.address = whole.address + static_cast<Address>(first * kActivationBytes),
          .width = width,
          .stride = whole.stride};
}

Bytes place_latent_attention(const config::LlmSpec& model, Placer placer, Activations& a) {
  const config::LatentAttention& latent = *model.latent;
  const std::int64_t absorbed = model.heads * latent.kv_rank, rope = model.heads * latent.rope_dim;
  const std::int64_t plain = model.heads * (model.head_dim - latent.rope_dim);
  LatentActivations& l = a.latent;
  if (latent.q_rank > 0) {
    l.q_down = placer.place(latent.q_rank);
  }
  const Activation row = placer.place(absorbed + rope + plain);
  l.absorbed = part(row, 0, absorbed);
  l.queries = part(row, 0, absorbed + rope);
  a.q = part(row, absorbed, rope + plain);
  l.q_rope = part(row, absorbed, rope);
  l.q_plain = part(row, absorbed + rope, plain);
  a.k = placer.place(key_numbers(model));
  l.latent = part(a.k, 0, latent.kv_rank);
  l.k_rope = part(a.k, latent.kv_rank, latent.rope_dim);
  l.values = placer.place(absorbed);
  a.attended = placer.place(model.heads * latent.value_dim);
  return placer.offset();
}

Bytes place_attention(const config::LlmSpec& model, Placer placer, Activations& a) {
  if (model.latent) {
    return place_latent_attention(model, placer, a);
  }
  const std::int64_t q = model.heads * model.head_dim;
  const std::int64_t kv = model.kv_heads * model.head_dim;
  if (model.fused_qkv) {
    const Activation fused = placer.place(q + 2 * kv);
    a.q = part(fused, 0, q);
    a.k = part(fused, q, kv);
    a.v = part(fused, q + kv, kv);
  } else {
    a.q = placer.place(q);
    a.k = placer.place(kv);
    a.v = placer.place(kv);
  }
  a.attended = placer.place(q);
  return placer.offset();
}

Bytes place_feed_forward(const config::LlmSpec& model, Placer placer, Activations& a) {
  if (model.fused_qkv) {
    const Activation fused = placer.place(2 * model.ffn);
    a.gate = part(fused, 0, model.ffn);
    a.up = part(fused, model.ffn, model.ffn);
  } else {
    a.gate = placer.place(model.ffn);
    a.up = placer.place(model.ffn);
  }
  a.activated = placer.place(model.ffn);
  return placer.offset();
}

Bytes place_experts(const config::LlmSpec& model, Placer placer, Activations& a) {
  const config::Experts& experts = *model.experts;
  ExpertActivations& e = a.experts;
  const std::int64_t inner = experts.used * experts.ffn, shared = experts.shared * experts.ffn;
  e.scores = placer.place(experts.count);
  Placer afterwards = placer, out = placer;
  e.activated = placer.place(inner);
  out = placer;
  e.out = out.place(experts.used * model.width);
  e.gate = placer.place(inner);
  e.up = placer.place(inner);
  if (shared > 0) {
    e.shared_gate = afterwards.place(shared);
    e.shared_up = afterwards.place(shared);
    e.shared_activated = afterwards.place(shared);
  }
  return std::max({placer.offset(), out.offset(), afterwards.offset()});
}

}  // namespace

Activations place_activations(const config::LlmSpec& model, std::int64_t tokens, Address base) {
  Activations a;
  Placer placer(tokens, base, Bytes(0));
  a.residual = placer.place(model.width);
  a.normed = placer.place(model.width);
  a.bytes = std::max(place_attention(model, placer, a), place_feed_forward(model, placer, a));
  if (model.experts) {
    a.bytes = std::max(a.bytes, place_experts(model, placer, a));
  }
  return a;
}

}  // namespace kvsim::trace
