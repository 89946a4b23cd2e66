// SPDX-License-Identifier: Apache-2.0
// Turns an operator of the graph into the records its threads make.
#pragma once

#include <cstdint>

#include "traces/attention/attention.h"
#include "traces/kv_cache/kv_cache.h"
#include "traces/record/source.h"
#include "traces/workload/graph.h"

namespace kvsim::trace {

/// Items [first, last) of a whole that threads share.
struct Share {
  std::int64_t first = 0;
  std::int64_t last = 0;

  [[nodiscard]] std::int64_t count() const { return last - first; }
  bool operator==(const Share&) const = default;
};

/// Sizes that differ by one at most: how ggml-cpu shares the rows of a weight matrix.
[[nodiscard]] Share even_share(std::int64_t items, std::int64_t threads, std::int64_t thread);
/// ceil(items / threads) for the first threads, so that one item is thread 0's: how it shares tokens and
/// heads.
[[nodiscard]] Share leading_share(std::int64_t items, std::int64_t threads, std::int64_t thread);

struct OperatorSettings {
  std::int64_t threads = 1;
  std::int64_t columns = 16;  ///< tokens per pass over a weight matrix
  AttentionShape attention;
};

/// Tokens of a step that an operator works on: rows [first, first + count) of the activations, of which row 0
/// is the token at position `step_first`.
struct StepRows {
  Token step_first{};
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

class OperatorEmitter {
 public:
  /// `cache` outlives the emitter.
  OperatorEmitter(const OperatorSettings& settings, KvCache& cache) : settings_(settings), cache_(cache) {}

  /// One thread's part of an operator: its extents, then its Compute. A thread without a share has neither.
  void emit(const Node& node, const StepRows& rows, std::int64_t thread, AccessSink& sink);

 private:
  struct Thread;

  void emit(const Gather& work, const Thread& thread);
  void emit(const Product& work, const Thread& thread);
  void emit(const RowWise& work, const Thread& thread);
  void emit(const HeadWise& work, const Thread& thread);
  void emit(const Append& work, const Thread& thread);
  void emit(const Attend& work, const Thread& thread);

  OperatorSettings settings_;
  KvCache& cache_;
  Layer layer_;
  StepRows rows_;
};

}  // namespace kvsim::trace
