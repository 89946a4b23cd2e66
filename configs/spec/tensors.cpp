// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/tensors.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "configs/error/error.h"

namespace kvsim::config {
namespace {

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

/// Collects the tensors of one model, placing each behind the one before.
class FileLayout {
 public:
  FileLayout(const LlmSpec& model, const WeightFormat& format) : model_(model), format_(format) {}

  void matrix(std::string name, TensorRole role, std::int64_t rows, std::int64_t columns) {
    const TensorType& type = stored_type(role, columns, name);
    place({.name = std::move(name),
           .role = role,
           .layer = layer_,
           .rows = rows,
           .columns = columns,
           .type = type,
           .bytes = {},
           .offset = {}});
  }

  void vector(std::string name, std::int64_t size) {
    place({.name = std::move(name),
           .role = TensorRole::vector,
           .layer = layer_,
           .rows = 1,
           .columns = size,
           .type = type_named(format_, kVectorType),
           .bytes = {},
           .offset = {}});
  }

  void layer(std::int64_t index) {
    layer_ = Layer(static_cast<std::uint32_t>(index));
    prefix_ = fmt::format("blk.{}.", index);
  }
  void outside_layers() {
    layer_.reset();
    prefix_.clear();
  }

  std::vector<TensorInfo> take() { return std::move(tensors_); }

 private:
  [[nodiscard]] const std::string& wanted_type(TensorRole role) const {
    const std::int64_t layer = layer_ ? layer_->value() : 0;
    // Tied: the embedding is the output matrix and stored as such (llama-quant.cpp, has_tied_embeddings).
    if (role == TensorRole::token_embedding && model_.tied_embeddings) {
      role = TensorRole::output;
    }
    for (const TensorRule& rule : format_.rules) {
      if (rule.role == role && model_.heads / model_.kv_heads >= rule.min_gqa &&
          in_range(rule.layers, layer, model_.layers)) {
        return rule.type;
      }
    }
    return format_.main;
  }

  [[nodiscard]] const TensorType& stored_type(TensorRole role, std::int64_t columns,
                                              std::string_view name) const {
    const TensorType& wanted = type_named(format_, wanted_type(role));
    if (columns % wanted.block == 0) {
      return wanted;
    }
    if (wanted.fallback.empty()) {
      throw UserError(
          fmt::format("{}{}: a row of {} weights is not a multiple of {}, the block of {}, and {} has "
                      "no fall-back type; choose another weight format or another width",
                      prefix_, name, columns, wanted.block, wanted.name, wanted.name));
    }
    const TensorType& fallback = type_named(format_, wanted.fallback);
    return columns % fallback.block == 0 ? fallback : type_named(format_, kLastResort);
  }

  void place(TensorInfo tensor) {
    tensor.name = prefix_ + tensor.name;
    tensor.bytes = row_bytes(tensor.type, tensor.columns) * tensor.rows;
    tensor.offset = end_;
    const std::int64_t blocks =
        (tensor.bytes.count() + kTensorAlignment.count() - 1) / kTensorAlignment.count();
    end_ += kTensorAlignment * blocks;
    tensors_.push_back(std::move(tensor));
  }

  const LlmSpec& model_;
  const WeightFormat& format_;
  std::optional<Layer> layer_;
  std::string prefix_;
  Bytes end_;
  std::vector<TensorInfo> tensors_;
};

void add_attention(const LlmSpec& model, FileLayout& file) {
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

void add_layer(const LlmSpec& model, std::int64_t index, FileLayout& file) {
  file.layer(index);
  file.vector("attn_norm.weight", model.width);
  add_attention(model, file);
  file.vector("ffn_norm.weight", model.width);
  if (model.fused_qkv) {
    file.matrix("ffn_up.weight", TensorRole::ffn_up, 2 * model.ffn, model.width);
  } else {
    file.matrix("ffn_gate.weight", TensorRole::ffn_gate, model.ffn, model.width);
    file.matrix("ffn_up.weight", TensorRole::ffn_up, model.ffn, model.width);
  }
  file.matrix("ffn_down.weight", TensorRole::ffn_down, model.width, model.ffn);
}

}  // namespace

std::vector<TensorInfo> tensors(const LlmSpec& model, const WeightFormat& format) {
  FileLayout file(model, format);
  file.matrix("token_embd.weight", TensorRole::token_embedding, model.vocabulary, model.width);
  if (model.rope_factors > 0) {
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
  Bytes total;
  for (const TensorInfo& tensor : tensors) {
    const std::int64_t align = kTensorAlignment.count();
    total += Bytes((tensor.bytes.count() + align - 1) / align * align);
  }
  return total;
}

Bytes row_bytes(const TensorType& type, std::int64_t columns) {
  check(type.block > 0 && columns % type.block == 0, "a row holds whole blocks");
  return type.bytes * (columns / type.block);
}

}  // namespace kvsim::config
