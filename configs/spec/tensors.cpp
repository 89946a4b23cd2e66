// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/tensors.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "configs/error/error.h"

namespace kvsim::config {
namespace {

Bytes padded(Bytes bytes) {
  const std::int64_t align = kTensorAlignment.count();
  return Bytes((bytes.count() + align - 1) / align * align);
}

// llama-quant.cpp: what a row that fits neither its type nor the type's fall-back is stored in.
constexpr std::string_view kLastResort = "F16";
constexpr std::string_view kVectorType = "F32";

bool in_range(LayerRange range, std::int64_t layer, std::int64_t layers) {
  // llama-quant.cpp, use_more_bits(): with its integer divisions.
  const std::int64_t eighth = layers / 8;
  switch (range) {
    case LayerRange::all:
      return true;
    case LayerRange::first_eighth:
      return layer < eighth;
    case LayerRange::first_sixteenth:
      return layer < layers / 16;
    case LayerRange::first_two:
      return layer < 2;
    case LayerRange::more_bits:
      return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
  }
  return false;
}

const TensorType* find_type(const WeightFormat& format, std::string_view name) {
  for (const TensorType& type : format.types) {
    if (type.name == name) {
      return &type;
    }
  }
  return nullptr;
}

const TensorType& type_named(const WeightFormat& format, std::string_view name) {
  const TensorType* type = find_type(format, name);
  if (type == nullptr) {
    throw UserError(fmt::format("weight format {} names the tensor type '{}', which is not among its types",
                                format.name, name));
  }
  return *type;
}

/// Collects the tensors of one model: as the format's rules make them, each behind the one before, or as a
/// file has them.
class FileLayout {
 public:
  FileLayout(const LlmSpec& model, const WeightFormat& format) : model_(model), format_(format) {
    for (const StoredTensor& tensor : format.stored) {
      stored_.emplace(tensor.name, &tensor);
    }
  }

  void matrix(std::string_view name, TensorRole role, std::int64_t rows, std::int64_t columns) {
    add({.name = prefix_ + std::string(name),
         .role = role,
         .layer = layer_,
         .rows = rows,
         .columns = columns,
         .type = {},
         .bytes = {},
         .offset = {}});
  }

  void vector(std::string_view name, std::int64_t size) { matrix(name, TensorRole::vector, 1, size); }

  void layer(std::int64_t index) {
    layer_ = Layer(static_cast<std::uint32_t>(index));
    prefix_ = fmt::format("blk.{}.", index);
  }
  void outside_layers() {
    layer_.reset();
    prefix_.clear();
  }

  /// What no operator reads, such as a second set of RoPE factors, is part of the file all the same.
  std::vector<TensorInfo> take() {
    for (const StoredTensor& tensor : format_.stored) {
      if (stored_.contains(tensor.name)) {
        add({.name = tensor.name,
             .role = TensorRole::vector,
             .layer = {},
             .rows = tensor.rows,
             .columns = tensor.columns,
             .type = {},
             .bytes = {},
             .offset = {}});
      }
    }
    return std::move(tensors_);
  }

  [[nodiscard]] bool in_file(std::string_view name) const {
    return format_.stored.empty() || stored_.contains(name);
  }

 private:
  [[nodiscard]] const std::string& wanted_type(TensorRole role) const {
    const std::int64_t layer = layer_ ? layer_->value() : 0;
    // Tied: the embedding is the output matrix and stored as such (llama-quant.cpp, has_tied_embeddings).
    if (role == TensorRole::token_embedding && model_.tied_embeddings) {
      role = TensorRole::output;
    }
    const std::int64_t experts = model_.experts ? model_.experts->count : 0;
    for (const TensorRule& rule : format_.rules) {
      if (rule.role == role && model_.heads / model_.kv_heads >= rule.min_gqa &&
          (rule.experts == 0 || rule.experts == experts) && in_range(rule.layers, layer, model_.layers)) {
        return rule.type;
      }
    }
    return format_.main;
  }

  [[nodiscard]] const TensorType& ruled_type(const TensorInfo& tensor) const {
    if (tensor.role == TensorRole::vector || tensor.role == TensorRole::router) {
      return type_named(format_, kVectorType);
    }
    const TensorType& wanted = type_named(format_, wanted_type(tensor.role));
    if (tensor.columns % wanted.block == 0) {
      return wanted;
    }
    if (wanted.fallback.empty()) {
      throw UserError(
          fmt::format("{}: a row of {} weights is not a multiple of {}, the block of {}, and {} has "
                      "no fall-back type; choose another weight format or another width",
                      tensor.name, tensor.columns, wanted.block, wanted.name, wanted.name));
    }
    const TensorType& fallback = type_named(format_, wanted.fallback);
    return tensor.columns % fallback.block == 0 ? fallback : type_named(format_, kLastResort);
  }

  void add(TensorInfo tensor) {
    if (format_.stored.empty()) {
      tensor.type = ruled_type(tensor);
      tensor.offset = end_;
    } else {
      take_from_file(tensor);
    }
    tensor.bytes = row_bytes(tensor.type, tensor.columns) * tensor.rows;
    end_ = padded(tensor.offset + tensor.bytes);
    tensors_.push_back(std::move(tensor));
  }

  void take_from_file(TensorInfo& tensor) {
    const auto found = stored_.find(tensor.name);
    if (found == stored_.end()) {
      throw UserError(fmt::format("the model file has no tensor '{}', which a model of this geometry needs",
                                  tensor.name));
    }
    const StoredTensor& stored = *found->second;
    if (stored.rows != tensor.rows || stored.columns != tensor.columns) {
      throw UserError(fmt::format(
          "the model file's tensor '{}' has {} rows of {}, and a model of this geometry has {} of {}",
          tensor.name, stored.rows, stored.columns, tensor.rows, tensor.columns));
    }
    tensor.type = type_named(format_, stored.type);
    if (tensor.columns % tensor.type.block != 0) {
      throw UserError(
          fmt::format("the model file's tensor '{}' has rows of {}, which are no whole blocks of {}",
                      tensor.name, tensor.columns, tensor.type.name));
    }
    tensor.offset = stored.offset;
    stored_.erase(found);
  }

  const LlmSpec& model_;
  const WeightFormat& format_;
  std::optional<Layer> layer_;
  std::string prefix_;
  Bytes end_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string_view, const StoredTensor*> stored_;  ///< of the file, those not yet taken
};

/// Multi-head latent attention with the up-projections of K and V apart, as engines need them that attend to
/// the latent vectors themselves (llama.cpp src/models/deepseek2.cpp).
void add_latent_attention(const LlmSpec& model, FileLayout& file) {
  const LatentAttention& latent = *model.latent;
  const std::int64_t q = model.heads * model.head_dim;
  if (latent.q_rank > 0) {
    file.matrix("attn_q_a.weight", TensorRole::attn_latent, latent.q_rank, model.width);
    file.vector("attn_q_a_norm.weight", latent.q_rank);
    file.matrix("attn_q_b.weight", TensorRole::attn_latent, q, latent.q_rank);
  } else {
    file.matrix("attn_q.weight", TensorRole::attn_q, q, model.width);
  }
  file.matrix("attn_kv_a_mqa.weight", TensorRole::attn_latent, key_numbers(model), model.width);
  file.vector("attn_kv_a_norm.weight", latent.kv_rank);
  file.matrix("attn_k_b.weight", TensorRole::attn_latent, model.heads * latent.kv_rank,
              model.head_dim - latent.rope_dim);
  file.matrix("attn_v_b.weight", TensorRole::attn_latent, model.heads * latent.value_dim, latent.kv_rank);
  file.matrix("attn_output.weight", TensorRole::attn_output, model.width, model.heads * latent.value_dim);
}

void add_attention(const LlmSpec& model, FileLayout& file) {
  if (model.latent) {
    add_latent_attention(model, file);
    return;
  }
  const std::int64_t q = model.heads * model.head_dim;
  const std::int64_t kv = model.kv_heads * model.head_dim;
  if (model.fused_qkv) {
    file.matrix("attn_qkv.weight", TensorRole::attn_qkv, q + 2 * kv, model.width);
    if (model.qkv_bias) {
      file.vector("attn_qkv.bias", q + 2 * kv);
    }
  } else {
    const auto projection = [&](const char* name, TensorRole role, std::int64_t rows) {
      file.matrix(fmt::format("{}.weight", name), role, rows, model.width);
      if (model.qkv_bias) {
        file.vector(fmt::format("{}.bias", name), rows);
      }
    };
    projection("attn_q", TensorRole::attn_q, q);
    projection("attn_k", TensorRole::attn_k, kv);
    projection("attn_v", TensorRole::attn_v, kv);
  }
  file.matrix("attn_output.weight", TensorRole::attn_output, model.width, q);
  if (model.qk_norm) {
    file.vector("attn_q_norm.weight", model.head_dim);
    file.vector("attn_k_norm.weight", model.head_dim);
  }
}

/// The experts' matrices are merged into one tensor each, one behind the other (llama.cpp's ffn_*_exps); the
/// shared experts are one network.
void add_experts(const LlmSpec& model, FileLayout& file) {
  const Experts& experts = *model.experts;
  const std::int64_t ffn = experts.count * experts.ffn;
  file.matrix("ffn_gate_inp.weight", TensorRole::router, experts.count, model.width);
  file.matrix("ffn_gate_exps.weight", TensorRole::ffn_gate, ffn, model.width);
  file.matrix("ffn_up_exps.weight", TensorRole::ffn_up, ffn, model.width);
  file.matrix("ffn_down_exps.weight", TensorRole::ffn_down, experts.count * model.width, experts.ffn);
  if (experts.shared > 0) {
    const std::int64_t shared = experts.shared * experts.ffn;
    file.matrix("ffn_gate_shexp.weight", TensorRole::ffn_gate, shared, model.width);
    file.matrix("ffn_up_shexp.weight", TensorRole::ffn_up, shared, model.width);
    file.matrix("ffn_down_shexp.weight", TensorRole::ffn_down, model.width, shared);
  }
}

void add_feed_forward(const LlmSpec& model, FileLayout& file) {
  if (model.fused_qkv) {
    file.matrix("ffn_up.weight", TensorRole::ffn_up, 2 * model.ffn, model.width);
  } else {
    file.matrix("ffn_gate.weight", TensorRole::ffn_gate, model.ffn, model.width);
    file.matrix("ffn_up.weight", TensorRole::ffn_up, model.ffn, model.width);
  }
  file.matrix("ffn_down.weight", TensorRole::ffn_down, model.width, model.ffn);
}

void add_layer(const LlmSpec& model, std::int64_t index, FileLayout& file) {
  file.layer(index);
  file.vector("attn_norm.weight", model.width);
  add_attention(model, file);
  if (model.post_norms) {
    file.vector("post_attention_norm.weight", model.width);
  }
  file.vector("ffn_norm.weight", model.width);
  if (has_experts(model, index)) {
    add_experts(model, file);
  } else {
    add_feed_forward(model, file);
  }
  if (model.post_norms) {
    file.vector("post_ffw_norm.weight", model.width);
  }
}

}  // namespace

std::vector<TensorInfo> tensors(const LlmSpec& model, const WeightFormat& format) {
  FileLayout file(model, format);
  file.matrix("token_embd.weight", TensorRole::token_embedding, model.vocabulary, model.width);
  // Phi-3's files have two tensors of them, of which a run uses one; kvsim's graph reads neither.
  if (model.rope_factors > 0 && file.in_file("rope_freqs.weight")) {
    file.vector("rope_freqs.weight", model.rope_factors);
  }
  for (std::int64_t index = 0; index < model.layers; ++index) {
    add_layer(model, index, file);
  }
  file.outside_layers();
  file.vector("output_norm.weight", model.width);
  if (!model.tied_embeddings) {
    file.matrix("output.weight", TensorRole::output, model.vocabulary, model.width);
  }
  return file.take();
}

Bytes weight_bytes(const std::vector<TensorInfo>& tensors) {
  Bytes end;
  for (const TensorInfo& tensor : tensors) {
    end = std::max(end, padded(tensor.offset + tensor.bytes));
  }
  return end;
}

Bytes row_bytes(const TensorType& type, std::int64_t columns) {
  check(type.block > 0 && columns % type.block == 0, "a row holds whole blocks");
  return type.bytes * (columns / type.block);
}

}  // namespace kvsim::config
