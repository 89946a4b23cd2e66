// SPDX-License-Identifier: Apache-2.0
// The operators of one forward pass, in llama.cpp's order, each with the places it reads and writes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "configs/spec/tensors.h"
#include "traces/record/record.h"
#include "traces/workload/activations.h"
#include "traces/workload/kv_classes.h"

namespace kvsim::trace {

/// A weight matrix: a result per row.
struct Matrix {
  Address address = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  Bytes row_bytes{};
  double simd_ops_per_32 = 0;
};

/// A norm, a bias, the RoPE factors: FP32.
struct Vector {
  Address address = 0;
  Bytes bytes{};
};

/// Looks up one row of the embedding per token.
struct Gather {
  Matrix table;
  Activation out;
};

/// out = matrix x in, plus bias, plus what was in `out` before (a residual) if `accumulate`.
struct Product {
  Matrix matrix;
  std::optional<Vector> bias;
  Activation in;
  Activation out;
  bool accumulate = false;
};

/// Works token by token: norms, activation function. Operations are counted per four elements of `out`.
struct RowWise {
  std::vector<Activation> in;
  std::optional<Vector> weights;
  Activation out;
  double ops_per_4 = 0;
};

/// Works head by head and in place: RoPE, norms of Q and K.
struct HeadWise {
  struct Part {
    Activation values;
    std::int64_t heads = 0;
    std::optional<Vector> weights;
  };
  std::vector<Part> parts;
  double ops_per_4 = 0;
};

/// Rounds K and V and writes them into the KV cache.
struct Append {
  Activation k;
  std::optional<Activation> v;  ///< none: latent attention keeps K alone
  KvLayer kv;
};

/// Turns the router's scores into shares and chooses the experts of each token.
struct Choose {
  Activation scores;
  double ops_per_4 = 0;
};

/// Of each token the products with the experts that it takes: of `matrix`, where they lie one behind the
/// other, `rows` belong to each.
struct ExpertProduct {
  Matrix matrix;
  std::int64_t rows = 0;
  Activation in;
  bool in_by_expert = false;  ///< each expert has its own part of a row of `in`
  Activation out;             ///< a part for each
};

struct Attend {
  Activation q;
  Activation out;
  KvLayer kv;
};

struct Node {
  /// llama.cpp drops all tokens but those whose logits are wanted after the last layer's attention.
  enum class Tokens : std::uint8_t { all, outputs };

  Operator op = Operator::none;
  Layer layer{};
  Tokens tokens = Tokens::all;
  std::variant<Gather, Product, RowWise, HeadWise, Append, Attend, Choose, ExpertProduct> work;
};

/// Where a graph's operands are.
struct Places {
  Address weights = 0;
  Address repacked = 0;
  Address expert_file = 0;  ///< where streamed experts are addressed
  Activations activations;
  Address logits = 0;
};

[[nodiscard]] std::vector<Node> build_graph(const LlmRun& run, const Places& places);

}  // namespace kvsim::trace
