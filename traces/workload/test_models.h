// SPDX-License-Identifier: Apache-2.0
// For tests: one model of each family and a few weight formats, written down here so that traces' tests do
// not depend on the catalogue.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "traces/workload/memory_layout.h"

namespace kvsim::trace {

inline config::LlmSpec geometry(std::string name, std::vector<std::int64_t> v) {
  config::LlmSpec m;
  m.name = std::move(name);
  m.layers = v.at(0);
  m.width = v.at(1);
  m.heads = v.at(2);
  m.kv_heads = v.at(3);
  m.head_dim = v.at(4);
  m.ffn = v.at(5);
  m.vocabulary = v.at(6);
  return m;
}

inline config::LlmSpec tinyllama() {
  return geometry("TinyLlama-1.1B", {22, 2048, 32, 4, 64, 5632, 32000});
}
inline config::LlmSpec llama2_7b() {
  return geometry("Llama-2-7B", {32, 4096, 32, 32, 128, 11008, 32000});
}
inline config::LlmSpec llama3_8b() {
  return geometry("Llama-3-8B", {32, 4096, 32, 8, 128, 14336, 128256});
}
inline config::LlmSpec llama32_1b() {
  config::LlmSpec m = geometry("Llama-3.2-1B", {16, 2048, 32, 8, 64, 8192, 128256});
  m.tied_embeddings = true;
  m.rope_factors = 32;
  return m;
}
inline config::LlmSpec qwen25_05b() {
  config::LlmSpec m = geometry("Qwen2.5-0.5B", {24, 896, 14, 2, 64, 4864, 151936});
  m.tied_embeddings = true;
  m.qkv_bias = true;
  return m;
}
inline config::LlmSpec qwen3_06b() {
  config::LlmSpec m = geometry("Qwen3-0.6B", {28, 1024, 16, 8, 128, 3072, 151936});
  m.tied_embeddings = true;
  m.qk_norm = true;
  return m;
}
inline config::LlmSpec phi3_mini() {
  config::LlmSpec m = geometry("Phi-3-mini", {32, 3072, 32, 32, 96, 8192, 32064});
  m.fused_qkv = true;
  return m;
}
inline std::vector<config::LlmSpec> one_of_each_family() {
  return {tinyllama(), llama3_8b(), llama32_1b(), qwen25_05b(), qwen3_06b(), phi3_mini()};
}

inline config::LlmSpec gemma3_1b() {
  config::LlmSpec m = geometry("Gemma-3-1B", {26, 1152, 4, 1, 256, 6912, 262144});
  m.tied_embeddings = m.qk_norm = m.post_norms = true;
  m.local = config::LocalLayers{.window = 512, .count = 5, .period = 6};
  return m;
}
inline config::LlmSpec gemma2_2b() {
  config::LlmSpec m = geometry("Gemma-2-2B", {26, 2304, 8, 4, 256, 9216, 256000});
  m.tied_embeddings = m.post_norms = true;
  m.local = config::LocalLayers{.window = 4096, .count = 1, .period = 2};
  return m;
}
inline config::LlmSpec mistral_7b() {
  config::LlmSpec m = geometry("Mistral-7B-v0.1", {32, 4096, 32, 8, 128, 14336, 32000});
  m.local = config::LocalLayers{.window = 4096};
  return m;
}
/// The attention of DeepSeek-V2-Lite and V3, with a dense network in place of experts.
inline config::LlmSpec dense_deepseek_lite() {
  config::LlmSpec m = geometry("DeepSeek-V2-Lite, dense", {27, 2048, 16, 1, 192, 10944, 102400});
  m.latent = config::LatentAttention{.kv_rank = 512, .q_rank = 0, .rope_dim = 64, .value_dim = 128};
  return m;
}
inline config::LlmSpec dense_deepseek_v3() {
  config::LlmSpec m = geometry("DeepSeek-V3, dense", {61, 7168, 128, 1, 192, 18432, 129280});
  m.latent = config::LatentAttention{.kv_rank = 512, .q_rank = 1536, .rope_dim = 64, .value_dim = 128};
  return m;
}
inline config::LlmSpec qwen3_30b_a3b() {
  config::LlmSpec m = geometry("Qwen3-30B-A3B", {48, 2048, 32, 4, 128, 6144, 151936});
  m.qk_norm = true;
  m.experts = config::Experts{.count = 128, .used = 8, .ffn = 768};
  return m;
}
inline config::LlmSpec deepseek_v2_lite() {
  config::LlmSpec m = dense_deepseek_lite();
  m.name = "DeepSeek-V2-Lite";
  m.experts = config::Experts{.count = 64, .used = 6, .ffn = 1408, .shared = 2, .dense_layers = 1};
  return m;
}
/// Three of eight experts, 96 wide; the first of three layers is dense.
inline config::LlmSpec small_mixture() {
  config::LlmSpec m = geometry("small mixture", {3, 128, 4, 2, 32, 256, 1000});
  m.experts = config::Experts{.count = 8, .used = 3, .ffn = 96, .shared = 1, .dense_layers = 1};
  return m;
}
inline std::vector<config::LlmSpec> mixtures() {
  return {qwen3_30b_a3b(), deepseek_v2_lite(), small_mixture()};
}
/// Also those whose attention differs.
inline std::vector<config::LlmSpec> every_family() {
  std::vector<config::LlmSpec> models = one_of_each_family();
  models.insert(models.end(),
                {gemma3_1b(), gemma2_2b(), mistral_7b(), dense_deepseek_lite(), dense_deepseek_v3()});
  return models;
}

inline config::TensorType tensor_type(std::string name, std::int64_t block, std::int64_t bytes, double ops,
                                      std::string fallback = "") {
  return {.name = std::move(name),
          .block = block,
          .bytes = Bytes(bytes),
          .simd_ops_per_32 = ops,
          .fallback = std::move(fallback)};
}

inline std::vector<config::TensorType> tensor_types() {
  return {tensor_type("F32", 1, 4, 16),
          tensor_type("F16", 1, 2, 12),
          tensor_type("Q8_0", 32, 34, 6.5),
          tensor_type("Q4_0", 32, 18, 9),
          tensor_type("Q5_0", 32, 22, 11),
          tensor_type("Q4_K", 256, 144, 8.25, "Q5_0"),
          tensor_type("Q6_K", 256, 210, 10.5, "Q8_0")};
}

inline config::WeightFormat weight_format(std::string main) {
  config::WeightFormat format;
  format.name = format.main = std::move(main);
  format.types = tensor_types();
  return format;
}
/// Types differ by role and layer, as in Q4_K_M.
inline config::WeightFormat mixed_format() {
  config::WeightFormat format = weight_format("Q4_K");
  format.name = "mixed";
  format.rules = {
      {.role = config::TensorRole::output, .type = "Q6_K"},
      {.role = config::TensorRole::ffn_down, .layers = config::LayerRange::more_bits, .type = "Q6_K"},
      {.role = config::TensorRole::attn_v, .layers = config::LayerRange::more_bits, .type = "Q6_K"}};
  return format;
}

inline LlmRun test_run(config::LlmSpec model, config::WeightFormat format, config::WorkloadSpec workload) {
  LlmRun run;
  run.model = std::move(model);
  run.engine.weights = std::move(format);
  run.engine.runtime_heap = Bytes(48 << 20);
  run.workload = workload;
  return run;
}

}  // namespace kvsim::trace
