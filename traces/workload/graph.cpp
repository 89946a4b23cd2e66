// SPDX-License-Identifier: Apache-2.0
#include "traces/workload/graph.h"

#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "configs/spec/expert_layers.h"

namespace kvsim::trace {
namespace {

// SIMD operations per four elements, counted from ggml-cpu's loops. They are a thousandth of a product's, so
// only their order of magnitude matters.
constexpr double kNormOps = 3;     // square and sum; scale; multiply by the weight
constexpr double kRopeOps = 6;     // two loads, two products, two multiply-adds per pair of pairs
constexpr double kChoiceOps = 40;  // exponential, sum, division; a pass of a sort
constexpr double kSumOps = 2;      // of a result per expert: multiply-add with its share, load
constexpr double kActivationOps =
    28;  // exponential with its range reduction 24, sum, division, product, move

class Builder {
 public:
  Builder(const LlmRun& run, const Places& places)
      : run_(run),
        model_(run.model),
        at_(places.activations),
        places_(places),
        kv_(kv_layers(run)),
        list_(config::tensors(run.model, run.engine.weights)) {
    Address packed = places.repacked;
    Address resident = places.weights;
    for (const config::TensorInfo& tensor : list_) {
      const bool copied = is_repacked(run.engine, tensor);
      const Address address = address_of(tensor, resident);
      tensors_.emplace(tensor.name, Placed{.tensor = &tensor, .address = copied ? packed : address});
      packed += copied ? static_cast<Address>(tensor.bytes.count()) : 0;
    }
  }

  std::vector<Node> build() {
    add(Operator::embedding, Gather{.table = matrix("token_embd.weight"), .out = at_.residual});
    for (std::int64_t i = 0; i < model_.layers; ++i) {
      layer_ = Layer(static_cast<std::uint32_t>(i));
      prefix_ = fmt::format("blk.{}.", i);
      add_attention();
      tokens_ = i + 1 == model_.layers ? Node::Tokens::outputs : Node::Tokens::all;
      add_norm(Operator::ffn_norm, "ffn_norm.weight");
      if (has_experts(model_, i)) {
        add_experts();
      } else {
        add_feed_forward();
      }
    }
    layer_ = Layer();
    prefix_.clear();
    add_norm(Operator::output_norm, "output_norm.weight");
    // One row whichever token it is of, hence no stride.
    const Activation logits{.address = places_.logits, .width = model_.vocabulary, .stride = Bytes(0)};
    add(Operator::logits,
        Product{.matrix = matrix(model_.tied_embeddings ? "token_embd.weight" : "output.weight"),
                .bias = std::nullopt,
                .in = at_.normed,
                .out = logits});
    const double sampler = run_.engine.sampler_operations;
    if (sampler > 0) {  // in place: the copy that llama.cpp makes is in the count of operations
      add(Operator::sampling,
          RowWise{.in = {logits}, .weights = std::nullopt, .out = logits, .ops_per_4 = 4 * sampler});
    }
    return std::move(nodes_);
  }

 private:
  struct Placed {
    const config::TensorInfo* tensor = nullptr;
    Address address = 0;
  };

  /// As the file has it; but with streamed experts, what stays in memory lies one behind the other, at
  /// `resident` next.
  Address address_of(const config::TensorInfo& tensor, Address& resident) const {
    const auto offset = static_cast<Address>(tensor.offset.count());
    if (!streams_experts(run_)) {
      return places_.weights + offset;
    }
    if (config::is_of_experts(tensor)) {
      return places_.expert_file + offset;
    }
    constexpr auto kAlignment = static_cast<Address>(config::kTensorAlignment.count());
    const Address address = (resident + kAlignment - 1) / kAlignment * kAlignment;
    resident = address + static_cast<Address>(tensor.bytes.count());
    return address;
  }

  template <class Work>
  void add(Operator op, Work work) {
    nodes_.push_back({.op = op, .layer = layer_, .tokens = tokens_, .work = std::move(work)});
  }

  void add_norm(Operator op, std::string_view name) {
    add(op, RowWise{.in = {at_.residual}, .weights = vector(name), .out = at_.normed, .ops_per_4 = kNormOps});
  }

  void add_product(Operator op, std::string_view name, const Activation& in, const Activation& out) {
    add(op, Product{.matrix = matrix(fmt::format("{}.weight", name)),
                    .bias = vector(fmt::format("{}.bias", name)),
                    .in = in,
                    .out = out});
  }

  struct PostNorm {
    Operator op = Operator::none;
    std::string_view name;
  };

  /// A product that adds to the residual stream, after a norm of its own if the model has them.
  void add_to_residual(Operator op, std::string_view name, const Activation& in, const PostNorm& norm) {
    const bool direct = !model_.post_norms;
    add(op, Product{.matrix = matrix(name),
                    .bias = std::nullopt,
                    .in = in,
                    .out = direct ? at_.residual : at_.normed,
                    .accumulate = direct});
    if (!direct) {
      add(norm.op, RowWise{.in = {at_.normed, at_.residual},
                           .weights = vector(norm.name),
                           .out = at_.residual,
                           .ops_per_4 = kNormOps});
    }
  }

  void add_attention() {
    add_norm(Operator::attn_norm, "attn_norm.weight");
    if (model_.latent) {
      add_latent_attention();
    } else {
      add_head_attention();
    }
    add_to_residual(Operator::attn_output, "attn_output.weight", at_.attended,
                    {Operator::attn_post_norm, "post_attention_norm.weight"});
  }

  /// With the up-projections of K and V absorbed: queries and results of attention are latent vectors.
  void add_latent_attention() {
    const LatentActivations& l = at_.latent;
    if (model_.latent->q_rank > 0) {
      add_product(Operator::q_latent, "attn_q_a", at_.normed, l.q_down);
      add_latent_norm("attn_q_a_norm.weight", l.q_down);
      add_product(Operator::q_proj, "attn_q_b", l.q_down, at_.q);
    } else {
      add_product(Operator::q_proj, "attn_q", at_.normed, at_.q);
    }
    add_product(Operator::kv_latent, "attn_kv_a_mqa", at_.normed, at_.k);
    add_latent_norm("attn_kv_a_norm.weight", l.latent);
    add(Operator::rope, HeadWise{.parts = {{.values = l.q_rope, .heads = model_.heads, .weights = {}},
                                           {.values = l.k_rope, .heads = 1, .weights = {}}},
                                 .ops_per_4 = kRopeOps});
    add_product(Operator::q_absorb, "attn_k_b", l.q_plain, l.absorbed);
    add(Operator::kv_append, Append{.k = at_.k, .v = std::nullopt, .kv = kv_[layer_.pos()]});
    add(Operator::attention, Attend{.q = l.queries, .out = l.values, .kv = kv_[layer_.pos()]});
    add_product(Operator::v_absorb, "attn_v_b", l.values, at_.attended);
  }

  void add_latent_norm(std::string_view name, const Activation& values) {
    add(Operator::latent_norm,
        RowWise{.in = {values}, .weights = vector(name), .out = values, .ops_per_4 = kNormOps});
  }

  void add_head_attention() {
    if (model_.fused_qkv) {
      Activation all = at_.q;
      all.width += at_.k.width + at_.v.width;
      add_product(Operator::qkv_proj, "attn_qkv", at_.normed, all);
    } else {
      add_product(Operator::q_proj, "attn_q", at_.normed, at_.q);
      add_product(Operator::k_proj, "attn_k", at_.normed, at_.k);
      add_product(Operator::v_proj, "attn_v", at_.normed, at_.v);
    }
    if (model_.qk_norm) {
      add_head_wise(Operator::qk_norm, vector("attn_q_norm.weight"), vector("attn_k_norm.weight"), kNormOps);
    }
    // All layers use the same factors; from the second on they come from the core's own cache.
    const std::optional<Vector> factors =
        layer_ == Layer() ? global_vector("rope_freqs.weight") : std::nullopt;
    add_head_wise(Operator::rope, factors, std::nullopt, kRopeOps);
    add(Operator::kv_append, Append{.k = at_.k, .v = at_.v, .kv = kv_[layer_.pos()]});
    add(Operator::attention, Attend{.q = at_.q, .out = at_.attended, .kv = kv_[layer_.pos()]});
  }

  void add_head_wise(Operator op, std::optional<Vector> for_q, std::optional<Vector> for_k,
                     double ops_per_4) {
    add(op, HeadWise{.parts = {{.values = at_.q, .heads = model_.heads, .weights = for_q},
                               {.values = at_.k, .heads = model_.kv_heads, .weights = for_k}},
                     .ops_per_4 = ops_per_4});
  }

  /// As llama.cpp's build_moe_ffn: each operator goes over all experts chosen.
  void add_experts() {
    const ExpertActivations& e = at_.experts;
    add_product(Operator::router, "ffn_gate_inp", at_.normed, e.scores);
    add(Operator::expert_choice, Choose{.scores = e.scores, .ops_per_4 = kChoiceOps});
    add_expert_product(Operator::expert_up, "ffn_up_exps.weight", at_.normed, e.up);
    add_expert_product(Operator::expert_gate, "ffn_gate_exps.weight", at_.normed, e.gate);
    add(Operator::expert_activation,
        RowWise{
            .in = {e.gate, e.up}, .weights = std::nullopt, .out = e.activated, .ops_per_4 = kActivationOps});
    add_expert_product(Operator::expert_down, "ffn_down_exps.weight", e.activated, e.out);
    add(Operator::expert_sum, RowWise{.in = {e.out, e.scores, at_.residual},
                                      .weights = std::nullopt,
                                      .out = at_.residual,
                                      .ops_per_4 = kSumOps * static_cast<double>(model_.experts->used)});
    if (model_.experts->shared > 0) {
      add_shared_experts();
    }
  }

  void add_expert_product(Operator op, std::string_view name, const Activation& in, const Activation& out) {
    const Matrix all = matrix(name);
    add(op, ExpertProduct{.matrix = all,
                          .rows = all.rows / model_.experts->count,
                          .in = in,
                          .in_by_expert = op == Operator::expert_down,
                          .out = out});
  }

  void add_shared_experts() {
    const ExpertActivations& e = at_.experts;
    add_product(Operator::ffn_gate, "ffn_gate_shexp", at_.normed, e.shared_gate);
    add_product(Operator::ffn_up, "ffn_up_shexp", at_.normed, e.shared_up);
    add(Operator::activation, RowWise{.in = {e.shared_gate, e.shared_up},
                                      .weights = std::nullopt,
                                      .out = e.shared_activated,
                                      .ops_per_4 = kActivationOps});
    add_to_residual(Operator::ffn_down, "ffn_down_shexp.weight", e.shared_activated, {});
  }

  void add_feed_forward() {
    if (model_.fused_qkv) {
      Activation both = at_.gate;
      both.width += at_.up.width;
      add_product(Operator::ffn_up, "ffn_up", at_.normed, both);
    } else {
      add_product(Operator::ffn_gate, "ffn_gate", at_.normed, at_.gate);
      add_product(Operator::ffn_up, "ffn_up", at_.normed, at_.up);
    }
    add(Operator::activation, RowWise{.in = {at_.gate, at_.up},
                                      .weights = std::nullopt,
                                      .out = at_.activated,
                                      .ops_per_4 = kActivationOps});
    add_to_residual(Operator::ffn_down, "ffn_down.weight", at_.activated,
                    {Operator::ffn_post_norm, "post_ffw_norm.weight"});
  }

  [[nodiscard]] const Placed* find(const std::string& name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : &found->second;
  }

  [[nodiscard]] Matrix matrix(std::string_view name) const {
    const Placed* placed = find(prefix_ + std::string(name));
    check(placed != nullptr, "the model file has every matrix of the graph");
    const config::TensorInfo& tensor = *placed->tensor;
    return {.address = placed->address,
            .rows = tensor.rows,
            .columns = tensor.columns,
            .row_bytes = tensor.bytes / tensor.rows,
            .simd_ops_per_32 = tensor.type.simd_ops_per_32};
  }

  [[nodiscard]] std::optional<Vector> vector(std::string_view name) const {
    return global_vector(prefix_ + std::string(name));
  }

  [[nodiscard]] std::optional<Vector> global_vector(const std::string& name) const {
    const Placed* placed = find(name);
    if (placed == nullptr) {
      return std::nullopt;
    }
    return Vector{.address = placed->address, .bytes = placed->tensor->bytes};
  }

  const LlmRun& run_;
  const config::LlmSpec& model_;
  const Activations& at_;
  const Places& places_;
  std::vector<KvLayer> kv_;  // by layer
  std::vector<config::TensorInfo> list_;
  std::unordered_map<std::string, Placed> tensors_;
  Layer layer_;
  std::string prefix_;
  Node::Tokens tokens_ = Node::Tokens::all;
  std::vector<Node> nodes_;
};

}  // namespace

std::vector<Node> build_graph(const LlmRun& run, const Places& places) {
  return Builder(run, places).build();
}

}  // namespace kvsim::trace
