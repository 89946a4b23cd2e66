// SPDX-License-Identifier: Apache-2.0
// The trained model of tests/data/tiny with each KV type that llama.cpp has, beside llama.cpp's figures.
#pragma once

#include <string>
#include <vector>

namespace kvsim::testing {

struct KvQualityRow {
  std::string spec;
  double perplexity = 0;
  double expected_perplexity = 0;
  int recalled = 0;
  int expected_recalled = 0;
};

/// Every row of tests/data/tiny/llamacpp.jsonl, and PyTorch's two. Takes minutes.
[[nodiscard]] std::vector<KvQualityRow> kv_quality_rows();

}  // namespace kvsim::testing
