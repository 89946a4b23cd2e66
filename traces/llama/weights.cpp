// SPDX-License-Identifier: Apache-2.0
#include "traces/llama/weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "traces/number/kv_codec.h"

namespace kvsim::trace {
namespace {

using config::GgufFile;
using config::GgufTensor;
using config::KvFormat;
using config::KvNumber;

/// GGUF tensors hold the same blocks as a KV cache does.
std::optional<KvFormat> format_of(std::string_view type) {
  constexpr std::array kTypes{std::pair{"F32", KvNumber::f32},   std::pair{"F16", KvNumber::f16},
                              std::pair{"BF16", KvNumber::bf16}, std::pair{"Q8_0", KvNumber::q8_0},
                              std::pair{"Q5_1", KvNumber::q5_1}, std::pair{"Q5_0", KvNumber::q5_0},
                              std::pair{"Q4_1", KvNumber::q4_1}, std::pair{"Q4_0", KvNumber::q4_0}};
  for (const auto& [name, number] : kTypes) {
    if (type == name) {
      return KvFormat{.number = number};
    }
  }
  return {};
}

class Reader {
 public:
  explicit Reader(const GgufFile& file) : file_(file) {}

  [[noreturn]] void refuse(const std::string& why) const {
    throw UserError(fmt::format("{}: {}", file_.name(), why));
  }

  std::size_t size(std::string_view key) const {
    const auto value = file_.integer(fmt::format("llama.{}", key));
    constexpr std::int64_t kMost = 1 << 28;
    if (!value || *value < 1 || *value > kMost) {
      refuse(fmt::format("llama.{} is missing or not from 1 to {}", key, kMost));
    }
    return static_cast<std::size_t>(*value);
  }

  std::size_t size_or(std::string_view key, std::size_t otherwise) const {
    return file_.metadata(fmt::format("llama.{}", key)) == nullptr ? otherwise : size(key);
  }

  double real_or(std::string_view key, double otherwise) const {
    return file_.real(fmt::format("llama.{}", key)).value_or(otherwise);
  }

  bool has(std::string_view name) const { return file_.tensor(name) != nullptr; }

  /// Its numbers, [row][column]. Throws if it has another shape.
  std::vector<float> numbers(const std::string& name, std::size_t columns, std::size_t rows) const {
    const GgufTensor* tensor = file_.tensor(name);
    if (tensor == nullptr) {
      refuse(fmt::format("the tensor {} is missing", name));
    }
    if (static_cast<std::size_t>(tensor->dims.at(0)) != columns || element_count(*tensor) != columns * rows) {
      refuse(fmt::format("the tensor {} is not {} rows of {} numbers, as the metadata ask for", name, rows,
                         columns));
    }
    const auto format = format_of(tensor->type.name);
    if (!format) {
      refuse(fmt::format(
          "the tensor {} is stored as {}; the forward pass reads F32, F16, BF16, Q8_0, Q5_1, Q5_0, Q4_1 "
          "and Q4_0",
          name, tensor->type.name));
    }
    std::vector<float> result(columns * rows);
    decode(*format, file_.data(*tensor), result);
    if (!std::all_of(result.begin(), result.end(), [](float x) { return std::isfinite(x); })) {
      refuse(fmt::format("the tensor {} has numbers that are infinite or none", name));
    }
    return result;
  }

  std::vector<float> vector(const std::string& name, std::size_t size) const {
    return numbers(name, size, 1);
  }
  Linear linear(const std::string& name, std::size_t columns, std::size_t rows) const {
    return {.columns = columns, .numbers = numbers(name, columns, rows)};
  }

 private:
  static std::size_t element_count(const GgufTensor& tensor) {
    std::size_t count = 1;
    for (const std::int64_t dim : tensor.dims) {
      count *= static_cast<std::size_t>(dim);  // the file's reader has bounded the product
    }
    return count;
  }

  const GgufFile& file_;
};

void check_architecture(const GgufFile& file, const Reader& reader) {
  const auto architecture = file.text("general.architecture");
  if (architecture != "llama") {
    reader.refuse(fmt::format("the forward pass computes models of architecture 'llama', and this is '{}'",
                              architecture.value_or("none")));
  }
  if (const auto scaling = file.text("llama.rope.scaling.type"); scaling && *scaling != "none") {
    reader.refuse(fmt::format("RoPE scaled by '{}' is not computed", *scaling));
  }
  if (file.metadata("llama.expert_count") != nullptr && file.integer("llama.expert_count") != 0) {
    reader.refuse("a mixture of experts is not computed");
  }
}

LlamaLayer layer(const Reader& reader, const LlamaWeights& w, std::size_t number, std::size_t ffn) {
  const auto name = [&](std::string_view part) { return fmt::format("blk.{}.{}.weight", number, part); };
  const std::size_t q = w.heads * w.head_dim, kv = w.kv_heads * w.head_dim;
  return {.attn_norm = reader.vector(name("attn_norm"), w.width),
          .q = reader.linear(name("attn_q"), w.width, q),
          .k = reader.linear(name("attn_k"), w.width, kv),
          .v = reader.linear(name("attn_v"), w.width, kv),
          .attn_output = reader.linear(name("attn_output"), q, w.width),
          .ffn_norm = reader.vector(name("ffn_norm"), w.width),
          .gate = reader.linear(name("ffn_gate"), w.width, ffn),
          .up = reader.linear(name("ffn_up"), w.width, ffn),
          .down = reader.linear(name("ffn_down"), ffn, w.width)};
}

std::size_t vocabulary(const GgufFile& file, const Reader& reader) {
  const GgufTensor* embedding = file.tensor("token_embd.weight");
  if (embedding == nullptr || embedding->dims.size() != 2) {
    reader.refuse("token_embd.weight is missing or no matrix");
  }
  return static_cast<std::size_t>(embedding->dims[1]);
}

}  // namespace

LlamaWeights llama_weights(const GgufFile& file) {
  const Reader reader(file);
  check_architecture(file, reader);
  LlamaWeights w;
  w.width = reader.size("embedding_length");
  w.heads = reader.size("attention.head_count");
  w.kv_heads = reader.size_or("attention.head_count_kv", w.heads);
  w.head_dim = reader.size_or("attention.key_length", w.width / w.heads);
  w.context = reader.size("context_length");
  w.vocabulary = vocabulary(file, reader);
  w.norm_epsilon = static_cast<float>(reader.real_or("attention.layer_norm_rms_epsilon", 1e-5));
  w.rope_base = reader.real_or("rope.freq_base", 10000);
  if (!(w.norm_epsilon >= 0 && w.norm_epsilon < 1) || !(w.rope_base >= 1 && w.rope_base < 1e12)) {
    reader.refuse(
        "llama.attention.layer_norm_rms_epsilon must be from 0 to 1, llama.rope.freq_base from 1 to 1e12");
  }
  if (w.heads % w.kv_heads != 0 || w.head_dim % 2 != 0 ||
      reader.size_or("attention.value_length", w.head_dim) != w.head_dim ||
      reader.size_or("rope.dimension_count", w.head_dim) != w.head_dim) {
    reader.refuse("heads must share KV heads evenly, and keys, values and RoPE have the same even size");
  }
  if (reader.has("rope_freqs.weight")) {
    w.rope_factors = reader.vector("rope_freqs.weight", w.head_dim / 2);
  }
  w.embedding = reader.linear("token_embd.weight", w.width, w.vocabulary);
  const std::size_t layers = reader.size("block_count"), ffn = reader.size("feed_forward_length");
  for (std::size_t i = 0; i < layers; ++i) {
    w.layers.push_back(layer(reader, w, i, ffn));
  }
  w.output_norm = reader.vector("output_norm.weight", w.width);
  if (reader.has("output.weight")) {
    w.output = reader.linear("output.weight", w.width, w.vocabulary);
  }
  return w;
}

}  // namespace kvsim::trace
