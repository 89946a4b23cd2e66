// SPDX-License-Identifier: Apache-2.0
// The numbers of a Llama-family model, widened to FP32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "configs/gguf/gguf_file.h"
#include "traces/simd/simd.h"

namespace kvsim::trace {

/// A matrix whose rows are results: y = x W^T.
struct Linear {
  std::size_t columns = 0;
  std::vector<float> numbers;  ///< [row][column]

  [[nodiscard]] simd::Rows rows() const { return {.numbers = numbers, .columns = columns}; }
  [[nodiscard]] std::span<const float> row(std::size_t i) const {
    return std::span(numbers).subspan(i * columns, columns);
  }
};

struct LlamaLayer {
  std::vector<float> attn_norm;
  Linear q, k, v, attn_output;
  std::vector<float> ffn_norm;
  Linear gate, up, down;
};

struct LlamaWeights {
  std::size_t width = 0;
  std::size_t heads = 0;
  std::size_t kv_heads = 0;
  std::size_t head_dim = 0;
  std::size_t vocabulary = 0;
  std::size_t context = 0;
  float norm_epsilon = 0;
  double rope_base = 0;
  std::vector<float> rope_factors;  ///< divide the frequencies of RoPE (Llama 3.1); empty: none
  Linear embedding;                 ///< [token][width]
  std::vector<LlamaLayer> layers;
  std::vector<float> output_norm;
  Linear output;  ///< empty if it is the embedding
};

/// Reads a model of architecture `llama` whose tensors are F32, F16, BF16, Q8_0 or Q4_0. Throws UserError if
/// it is another one, or if a tensor is missing or has a shape that the metadata do not give.
[[nodiscard]] LlamaWeights llama_weights(const config::GgufFile& file);

}  // namespace kvsim::trace
