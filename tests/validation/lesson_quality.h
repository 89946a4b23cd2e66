// SPDX-License-Identifier: Apache-2.0
// What a KV cache's formats and policies cost in accuracy, on the trained model of tests/data/tiny.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "traces/llama/quality.h"

namespace kvsim::testing {

/// The model and its 48 documents.
struct QualityCase {
  trace::LlamaWeights weights;
  std::vector<trace::TokenSequence> documents;
};
[[nodiscard]] QualityCase tiny_case();

/// Which KV head each query head reads: query head h reads `kv_head_of[h]` instead of h / (heads / kv_heads).
/// The same as permuting query heads, and what comes out of them. Precondition: each KV head is read by as
/// many query heads.
void map_heads(trace::LlamaWeights& weights, const std::vector<std::size_t>& kv_head_of);

/// The figures of every specification over `documents`, in their order.
[[nodiscard]] std::vector<trace::KvQuality> measure_specs(const QualityCase& on,
                                                          const std::vector<std::string>& specs);

/// Share of the answers recalled whose fact lies `from` to `to` - 1 tokens back, in whole bins of 128.
[[nodiscard]] double recall_between(const trace::KvQuality& quality, std::uint32_t from, std::uint32_t to);

/// Print the tables of scenarios/lessons/f*/README.md.
void f1();
void f2();
void f3();
void f4();
void f5();
void f6();
void f8();

}  // namespace kvsim::testing
