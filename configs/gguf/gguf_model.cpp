// SPDX-License-Identifier: Apache-2.0
#include "configs/gguf/gguf_model.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "configs/error/error.h"
#include "configs/schema/utf8.h"
#include "configs/spec/catalogue.h"
#include "configs/spec/expand.h"
#include "configs/spec/resolve.h"

namespace kvsim::config {
namespace {

/// Decoders of norm, Q K V, RoPE, attention, norm, gated network: what LlmSpec can express.
constexpr std::array<std::string_view, 8> kArchitectures{"deepseek2", "gemma2", "gemma3", "llama",
                                                         "phi3",      "qwen2",  "qwen3",  "qwen3moe"};
constexpr std::int64_t kMaxHashed = std::int64_t{64} << 20;
constexpr std::size_t kMaxName = 100;
constexpr std::int64_t kMaxPeriod = 1024;

/// Keys, after "{arch}.", that say that a model has what LlmSpec has not.
struct Foreign {
  std::string_view key;
  std::string_view what;
};
constexpr std::array kForeign{
    Foreign{"attention.shared_kv_layers", "layers that share K and V"},
    Foreign{"ssm.state_size", "recurrent state"},
    Foreign{"wkv.head_size", "recurrent state"},
    Foreign{"full_attention_interval", "layers without attention"},
};

class Reader {
 public:
  explicit Reader(const GgufFile& file) : file_(file) {}

  LlmSpec read() {
    arch_ = architecture();
    refuse_foreign();
    LlmSpec model;
    model.name = name();
    model.description = fmt::format("GGUF file of architecture {}", arch_);
    model.layers = required("block_count");
    model.width = required("embedding_length");
    model.heads = required("attention.head_count");
    model.kv_heads = optional("attention.head_count_kv").value_or(model.heads);
    model.latent = latent();
    model.head_dim = model.latent ? required("attention.key_length_mla") : head_dim(model);
    model.local = local_layers();
    model.ffn = required("feed_forward_length");
    model.experts = experts(model);
    model.vocabulary = vocabulary();
    model.context = required("context_length");
    model.tied_embeddings = file_.tensor("output.weight") == nullptr;
    model.fused_qkv = file_.tensor("blk.0.attn_qkv.weight") != nullptr;
    model.qkv_bias =
        file_.tensor("blk.0.attn_q.bias") != nullptr || file_.tensor("blk.0.attn_qkv.bias") != nullptr;
    model.qk_norm = file_.tensor("blk.0.attn_q_norm.weight") != nullptr;
    model.post_norms = file_.tensor("blk.0.post_attention_norm.weight") != nullptr;
    model.rope_factors = rope_factors();
    return model;
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw UserError(fmt::format("{}: {}", file_.name(), what));
  }

  [[nodiscard]] std::string key(std::string_view name) const { return fmt::format("{}.{}", arch_, name); }

  [[nodiscard]] std::string architecture() const {
    const std::string known = fmt::format("{}", fmt::join(kArchitectures, ", "));
    const auto arch = file_.text("general.architecture");
    if (!arch) {
      refuse(fmt::format("has no key 'general.architecture'; models of {} can be run", known));
    }
    if (std::ranges::find(kArchitectures, *arch) == kArchitectures.end()) {
      const bool text = arch->size() <= kMaxName && !find_non_text(*arch);
      refuse(fmt::format("the architecture '{}' cannot be run; {} can", text ? *arch : "?", known));
    }
    if (file_.integer("split.count").value_or(1) > 1) {
      refuse("is one part of several; join them first (llama-gguf-split --merge)");
    }
    return std::string(*arch);
  }

  void refuse_foreign() const {
    for (const auto& [name, what] : kForeign) {
      refuse_key(name, what);
    }
    if (!has_latent()) {
      refuse_key("attention.kv_lora_rank", "latent attention (MLA)");
    }
    if (!may_have_experts()) {
      refuse_key("expert_count", "experts");
    }
    if (!has_local_layers()) {
      refuse_key("attention.sliding_window_pattern", "layers with and without a window");
    }
  }

  void refuse_key(std::string_view name, std::string_view what) const {
    const std::vector<std::int64_t> values = file_.integers(key(name));
    if (std::ranges::any_of(values, [](std::int64_t value) { return value != 0; })) {
      refuse(fmt::format("the model has {} ('{}'), which kvsim cannot run", what, key(name)));
    }
  }

  [[nodiscard]] bool has_latent() const { return arch_ == "deepseek2"; }
  [[nodiscard]] bool may_have_experts() const {
    return arch_ == "deepseek2" || arch_ == "llama" || arch_ == "qwen3moe";
  }
  /// llama.cpp reads no window in other architectures, or does not use it (phi3, qwen2).
  [[nodiscard]] bool has_local_layers() const { return arch_ == "gemma2" || arch_ == "gemma3"; }

  [[nodiscard]] std::optional<LatentAttention> latent() const {
    if (!has_latent()) {
      return std::nullopt;
    }
    return LatentAttention{
        .kv_rank = required("attention.kv_lora_rank"),
        .q_rank = file_.tensor("blk.0.attn_q_a.weight") == nullptr ? 0 : required("attention.q_lora_rank"),
        .rope_dim = required("rope.dimension_count"),
        .value_dim = required("attention.value_length_mla")};
  }

  /// A number that may be 0, which is what a file means that has no such key.
  [[nodiscard]] std::int64_t count(std::string_view name) const {
    const std::vector<std::int64_t> values = file_.integers(key(name));
    return values.size() == 1 && values.front() == 0 ? 0 : optional(name).value_or(0);
  }

  /// Where the file does not tell their width: Mixtral's have the layer's (llama.cpp src/models/llama.cpp),
  /// Qwen3's share it (src/models/qwen3moe.cpp).
  [[nodiscard]] std::optional<Experts> experts(const LlmSpec& model) const {
    if (!may_have_experts() || count("expert_count") == 0) {
      return std::nullopt;
    }
    Experts experts{.count = count("expert_count"),
                    .used = required("expert_used_count"),
                    .ffn = 0,
                    .shared = count("expert_shared_count"),
                    .dense_layers = count("leading_dense_block_count")};
    const std::int64_t usual = arch_ == "qwen3moe" ? model.ffn / experts.used : model.ffn;
    experts.ffn = arch_ == "deepseek2" ? required("expert_feed_forward_length")
                                       : optional("expert_feed_forward_length").value_or(usual);
    if (experts.used > experts.count || experts.dense_layers >= model.layers || experts.ffn < 1) {
      refuse(fmt::format("{} of {} experts of width {}, {} of {} layers without, make no model", experts.used,
                         experts.count, experts.ffn, experts.dense_layers, model.layers));
    }
    return experts;
  }

  /// Gemma 2 alternates, Gemma 3 has five to one, where the file does not say (llama.cpp
  /// src/models/gemma*.cpp).
  [[nodiscard]] std::optional<LocalLayers> local_layers() const {
    if (!has_local_layers()) {
      return std::nullopt;
    }
    const std::int64_t window = required("attention.sliding_window");
    const std::vector<std::int64_t> pattern = file_.integers(key("attention.sliding_window_pattern"));
    if (pattern.size() > 1) {
      return from_mask(window, pattern);
    }
    const std::int64_t usual = arch_ == "gemma2" ? 2 : 6;
    const std::int64_t period = pattern.empty() ? usual : pattern.front();
    if (period < 1 || period > kMaxPeriod) {
      refuse(fmt::format("'{}' is {}, which no model has", key("attention.sliding_window_pattern"), period));
    }
    return LocalLayers{.window = window, .count = period - 1, .period = period};
  }

  /// One truth per layer: whether it is local.
  [[nodiscard]] LocalLayers from_mask(std::int64_t window, const std::vector<std::int64_t>& mask) const {
    const auto first_global = std::ranges::find(mask, 0) - mask.begin();
    const auto next_local =
        std::find_if(mask.begin() + first_global, mask.end(), [](std::int64_t local) { return local != 0; });
    const LocalLayers layers{.window = window,
                             .count = first_global,
                             .period = std::max<std::int64_t>(1, next_local - mask.begin())};
    for (std::size_t i = 0; i < mask.size(); ++i) {
      if (layers.has(static_cast<std::int64_t>(i)) != (mask[i] != 0)) {
        refuse(fmt::format("'{}' is no pattern of local layers first, then global ones, again and again",
                           key("attention.sliding_window_pattern")));
      }
    }
    return layers;
  }

  [[nodiscard]] std::string name() const {
    const std::string_view given = file_.text("general.name").value_or("");
    if (!given.empty() && given.size() <= kMaxName && !find_non_text(given) &&
        given.find_first_of("\r\n\t") == std::string_view::npos) {
      return std::string(given);
    }
    return std::filesystem::path(file_.name()).stem().string();
  }

  /// A number, or one number per layer that are all the same.
  [[nodiscard]] std::optional<std::int64_t> optional(std::string_view name) const {
    const std::vector<std::int64_t> values = file_.integers(key(name));
    if (values.empty()) {
      return std::nullopt;
    }
    if (std::ranges::any_of(values, [&](std::int64_t value) { return value != values.front(); })) {
      refuse(fmt::format("'{}' differs between layers, which kvsim cannot run", key(name)));
    }
    if (values.front() < 1 || values.front() > (std::int64_t{1} << 31)) {
      refuse(fmt::format("'{}' is {}, which no model has", key(name), values.front()));
    }
    return values.front();
  }

  [[nodiscard]] std::int64_t required(std::string_view name) const {
    const auto value = optional(name);
    if (!value) {
      refuse(fmt::format("has no key '{}'", key(name)));
    }
    return *value;
  }

  [[nodiscard]] std::int64_t head_dim(const LlmSpec& model) const {
    const std::int64_t default_size = model.width / model.heads;
    const std::int64_t k = optional("attention.key_length").value_or(default_size);
    const std::int64_t v = optional("attention.value_length").value_or(default_size);
    if (k != v) {
      refuse(
          fmt::format("keys of {} and values of {} numbers cannot be run; they must be of one size", k, v));
    }
    return k;
  }

  [[nodiscard]] std::int64_t vocabulary() const {
    if (const auto size = optional("vocab_size")) {
      return *size;
    }
    const GgufValue* tokens = file_.metadata("tokenizer.ggml.tokens");
    const auto* array = tokens == nullptr ? nullptr : std::get_if<GgufArray>(&tokens->value);
    if (array == nullptr) {
      refuse(fmt::format("has neither a key '{}' nor a list 'tokenizer.ggml.tokens'", key("vocab_size")));
    }
    return static_cast<std::int64_t>(array->size);
  }

  [[nodiscard]] std::int64_t rope_factors() const {
    std::int64_t factors = 0;
    for (const char* name : {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"}) {
      const GgufTensor* tensor = file_.tensor(name);
      factors += tensor == nullptr ? 0 : std::min(tensor->dims.front(), std::int64_t{1} << 31);
    }
    return factors;
  }

  const GgufFile& file_;
  std::string arch_;
};

TensorType catalogue_type(const GgufFile& file, const GgufTensor& tensor) {
  if (find_entry("tensor_types", tensor.type.name) == nullptr) {
    throw UserError(fmt::format(
        "{}: '{}' is stored as {}, of which kvsim does not know what a product costs; known: {}", file.name(),
        tensor.name, tensor.type.name, fmt::join(catalogue_ids("tensor_types"), ", ")));
  }
  return load_tensor_type(tensor.type.name);
}

StoredTensor stored(const GgufFile& file, const GgufTensor& tensor) {
  constexpr std::int64_t kMaxSide = kMaxStoredSide;
  const std::int64_t columns = tensor.dims.front();
  std::int64_t rows = 1;
  for (std::size_t i = 1; i < tensor.dims.size(); ++i) {
    rows *= tensor.dims[i];  // no overflow: the tensor lies in the file
  }
  if (columns > kMaxSide || rows > kMaxSide) {
    throw UserError(fmt::format("{}: '{}' has {} rows of {}; a side of at most {} can be run", file.name(),
                                tensor.name, rows, columns, kMaxSide));
  }
  return {.name = std::string(tensor.name),
          .type = std::string(tensor.type.name),
          .rows = rows,
          .columns = columns,
          .offset = tensor.offset};
}

}  // namespace

LlmSpec llm_spec(const GgufFile& file) {
  return Reader(file).read();
}

WeightFormat weight_format(const GgufFile& file) {
  WeightFormat format;
  std::map<std::string_view, Bytes> bytes;
  for (const GgufTensor& tensor : file.tensors()) {
    if (!bytes.contains(tensor.type.name)) {
      format.types.push_back(catalogue_type(file, tensor));
    }
    bytes[tensor.type.name] += tensor.bytes;
    format.stored.push_back(stored(file, tensor));
  }
  if (format.stored.empty()) {
    throw UserError(fmt::format("{}: has no tensors; a model file with weights is needed", file.name()));
  }
  format.main = std::ranges::max_element(bytes, {}, [](const auto& entry) { return entry.second; })->first;
  const std::string_view file_type = file_type_name(file.integer("general.file_type").value_or(-1));
  format.name = file_type.empty() ? format.main : std::string(file_type);
  format.description = "from the file's tensor table";
  return format;
}

std::vector<TensorInfo> tensors(const GgufFile& file) {
  const LlmSpec model = llm_spec(file);  // its refusals say more
  return tensors(model, weight_format(file));
}

std::string provenance_hash(const GgufFile& file) {
  const auto hash = [](std::span<const std::byte> bytes) {
    return content_hash({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  };
  return file.size().count() <= kMaxHashed ? hash(file.bytes()) : "header:" + hash(file.header());
}

}  // namespace kvsim::config
