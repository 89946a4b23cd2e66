// SPDX-License-Identifier: Apache-2.0
// Turns an operator of the graph into the records its threads make.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "configs/spec/run_spec.h"
#include "traces/attention/attention.h"
#include "traces/kv_cache/kv_cache.h"
#include "traces/record/source.h"
#include "traces/workload/expert_router.h"
#include "traces/workload/graph.h"
#include "traces/workload/page_chooser.h"

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
  std::int64_t heads = 1;     ///< query heads
  std::int64_t kv_tile = 128;
  config::KvWalk kv_walk = config::KvWalk::kv_head;
  std::int64_t kv_read_padding = 1;
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
  /// What is drawn for want of a text.
  struct Draws {
    ExpertRouter& router;
    PageChooser& pages;
  };
  /// `caches`, one per class of layers, and `draws` outlive the emitter.
  OperatorEmitter(const OperatorSettings& settings, std::span<KvCache> caches, const Draws& draws)
      : settings_(settings), caches_(caches), router_(draws.router), pages_(draws.pages) {}

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
  void emit(const Choose& work, const Thread& thread);
  void emit(const ExpertProduct& work, const Thread& thread);
  /// One pass over the thread's share of an expert's rows for some of its tokens.
  void pass(const ExpertProduct& work, std::int64_t expert, std::span<const ExpertGroup::Member> members,
            const Thread& thread) const;

  /// Once over the cells of some KV heads, for as many query heads each.
  struct Walk {
    HeadRange kv_heads;
    std::int64_t query_heads = 0;
  };
  [[nodiscard]] std::vector<Walk> walks(Share query_heads, std::int64_t group) const;
  void attend_walk(const Attend& work, const Walk& walk, Stream stream, AccessSink& sink);
  void read_padding(const KvLayer& kv, const HeadRange& heads, Stream stream, AccessSink& sink) const;

  OperatorSettings settings_;
  std::span<KvCache> caches_;
  ExpertRouter& router_;
  PageChooser& pages_;
  StepRows rows_;
  Layer layer_;
  std::vector<ExpertGroup> groups_;  ///< of the layer's experts, since its choice
};

}  // namespace kvsim::trace
