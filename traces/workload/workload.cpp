// SPDX-License-Identifier: Apache-2.0
#include "traces/workload/workload.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "traces/kv_cache/kv_cache.h"
#include "traces/record/sinks.h"
#include "traces/workload/graph.h"
#include "traces/workload/kv_classes.h"
#include "traces/workload/operators.h"

namespace kvsim::trace {
namespace {

/// A batch ends with the thread's part of an operator that makes it this long: long enough to make the call
/// free, short enough to stay in the cache.
constexpr std::size_t kBatchRecords = 2048;

void check_run(const LlmRun& run) {
  const auto refuse = [](const char* what) { throw UserError(what); };
  if (run.workload.threads < 1 || run.workload.threads > kMaxStreams) {
    refuse("workload.threads must be from 1 to 1024");
  }
  if (run.workload.prompt < 0 || run.workload.generate < 0 || context_tokens(run.workload) == 0) {
    refuse("workload.prompt and workload.generate must not be negative, nor both 0");
  }
  if (run.workload.cached > 0 && run.engine.kv_cache == config::KvCacheUse::recomputed) {
    refuse("workload.cached must be 0 where engine.kv_cache is recomputed: there is no cache");
  }
  if (run.workload.cached < 0 || run.workload.cached >= std::max<std::int64_t>(1, run.workload.prompt)) {
    refuse("workload.cached must be from 0 to one less than workload.prompt");
  }
  if (run.engine.ubatch < 1 || run.engine.prefill_columns < 1 || run.engine.kv_tile < 1 ||
      run.engine.context_padding < 1 || run.engine.kv_block < 1 || run.engine.kv_read_padding < 1 ||
      run.engine.kv_row_alignment < Bytes(1)) {
    refuse(
        "engine.ubatch, prefill_columns, kv_tile, context_padding, kv_block, kv_read_padding and "
        "kv_row_alignment must be at least 1");
  }
  const config::LlmSpec& m = run.model;
  if (std::min({m.layers, m.width, m.heads, m.kv_heads, m.head_dim, m.ffn, m.vocabulary}) < 1) {
    refuse("a model's layers, width, heads, kv_heads, head_dim, ffn and vocabulary must be at least 1");
  }
  if (m.heads % m.kv_heads != 0) {
    refuse("a model's heads must be a multiple of its kv_heads");
  }
  if (m.experts && (m.experts->ffn < 1 || m.experts->used < 1 || m.experts->used > m.experts->count)) {
    refuse("a model's experts must be at least as many as a token uses, 1 or more, of a width of 1 or more");
  }
}

/// 0, 512, 1024, 2048, ... as far as they lie within the prompt, deepest first, so that the cache only
/// shrinks.
std::vector<std::uint32_t> probe_depths(const config::WorkloadSpec& workload) {
  std::vector<std::uint32_t> depths;
  if (workload.generate > 0 && workload.prompt > 0) {
    depths.push_back(0);
  }
  for (std::int64_t depth = 512; workload.generate > 0 && depth < workload.prompt; depth *= 2) {
    depths.insert(depths.begin(), static_cast<std::uint32_t>(depth));
  }
  return depths;
}

const LlmRun& checked(const LlmRun& run) {
  check_run(run);
  return run;
}

}  // namespace

class LlmWorkload::Impl {
 public:
  explicit Impl(const LlmRun& run)
      : workload_(checked(run).workload),
        context_(context_tokens(run.workload)),
        ubatch_(ubatch_tokens(run.engine, context_)),
        layout_(allocations(run, context_)),
        addresses_(place(layout_, run.page, run.base)),
        graph_(make_graph(run)),
        caches_(make_caches(run)),
        router_(run.model, run.workload.experts, run.seed),
        pages_(run.workload.pages, run.seed),
        recomputed_(run.engine.kv_cache == config::KvCacheUse::recomputed),
        emitter_({.threads = run.workload.threads,
                  .columns = run.engine.prefill_columns,
                  .heads = run.model.heads,
                  .kv_tile = run.engine.kv_tile,
                  .kv_walk = run.engine.kv_walk,
                  .kv_read_padding = run.engine.kv_read_padding},
                 caches_, {.router = router_, .pages = pages_}) {}

  bool next(std::vector<Record>& batch) {
    batch.clear();
    VectorSink sink(batch);
    if (!loaded_) {
      load(sink);
    } else if (step_ || begin_step()) {
      advance(sink, batch);
    }
    return !batch.empty();
  }

 private:
  struct Step {
    Mark mark;  // of its beginning
    Token first{};
    bool with_logits = false;
    std::size_t node = 0;     // in hand
    std::int64_t thread = 0;  // next in the node
  };

  [[nodiscard]] Address address(Region region) const { return addresses_[static_cast<std::size_t>(region)]; }

  [[nodiscard]] Address end_of(Region region) const {
    return address(region) + static_cast<Address>(layout_[static_cast<std::size_t>(region)].bytes.count());
  }

  [[nodiscard]] std::vector<Node> make_graph(const LlmRun& run) const {
    return build_graph(run,
                       {.weights = address(Region::weights),
                        .repacked = address(Region::repacked),
                        .expert_file = expert_file(end_of(Region::expert_cache)),
                        .activations = place_activations(run.model, ubatch_, address(Region::compute_buffer)),
                        .logits = address(Region::output_buffer)});
  }

  [[nodiscard]] std::vector<KvCache> make_caches(const LlmRun& run) const {
    std::vector<KvCache> caches;
    Address wide = address(Region::kv_wide);
    for (const KvClass& c : kv_classes(run, context_)) {
      caches.emplace_back(c.shape, address(c.region), KvPayload::none, wide);
      wide += static_cast<Address>(wide_bytes(c.shape).count());
    }
    return caches;
  }

  void load(AccessSink& sink) {
    for (std::size_t i = 0; i < kRegions; ++i) {
      if (layout_[i].bytes > Bytes(0)) {
        sink.put(Alloc{.address = addresses_[i],
                       .bytes = layout_[i].bytes,
                       .kind = layout_[i].kind,
                       .backing = layout_[i].backing,
                       .name = layout_[i].name});
      }
    }
    if (workload_.cached > 0) {
      take_cells(workload_.cached);
      depth_ = workload_.cached;
    }
    loaded_ = true;
  }

  void take_cells(std::int64_t tokens) {
    while (tokens > 0) {
      const std::int64_t count = std::min(tokens, ubatch_);
      for (KvCache& cache : caches_) {
        const auto plan = cache.plan(static_cast<std::uint32_t>(count));
        check(std::holds_alternative<KvPlan>(plan), "the KV cache has room for prompt and answer");
        cache.apply(std::get<KvPlan>(plan));
      }
      tokens -= count;
    }
  }

  void truncate(std::int64_t tokens) {
    for (KvCache& cache : caches_) {
      cache.truncate(static_cast<std::uint32_t>(tokens));
    }
  }

  void advance(AccessSink& sink, const std::vector<Record>& batch) {
    if (step_->node == 0 && step_->thread == 0) {
      sink.put(step_->mark);
    }
    while (step_->node < graph_.size() && batch.size() < kBatchRecords) {
      advance_node(graph_[step_->node], sink);
    }
    if (step_->node == graph_.size()) {
      Mark end = step_->mark;
      end.what = Mark::What::step_end;
      sink.put(end);
      step_.reset();
    }
  }

  /// Takes the next step's cells in the KV cache. False if there is no further step.
  bool begin_step() {
    const bool run_done = depth_ == context_ || !probes_.empty();
    if (run_done) {
      return begin_probe();
    }
    const bool prefill = depth_ < workload_.prompt;
    start_step(prefill ? Phase::prefill : Phase::decode,
               prefill ? std::min(ubatch_, workload_.prompt - depth_) : 1);
    return true;
  }

  bool begin_probe() {
    if (probes_.empty()) {
      probes_ = probe_depths(workload_);
    }
    if (next_probe_ == probes_.size()) {
      return false;
    }
    depth_ = probes_[next_probe_++];
    truncate(recomputed_ ? 0 : depth_);
    start_step(Phase::probe, 1);
    return true;
  }

  /// Of `tokens` new ones; without a cache all before them are computed again.
  void start_step(Phase phase, std::int64_t tokens) {
    const std::int64_t first = recomputed_ ? 0 : depth_;
    if (recomputed_) {
      truncate(0);
    }
    const std::int64_t computed = depth_ + tokens - first;
    take_cells(computed);
    step_ = Step{.mark = {.what = Mark::What::step_begin,
                          .phase = phase,
                          .tokens = static_cast<std::uint32_t>(computed),
                          .depth = static_cast<std::uint32_t>(depth_)},
                 .first = Token(static_cast<std::uint32_t>(first)),
                 .with_logits = phase != Phase::prefill || depth_ + tokens >= workload_.prompt};
    depth_ += tokens;
  }

  /// Emits the part of the next thread, after the operator's mark if it is the first.
  void advance_node(const Node& node, AccessSink& sink) {
    StepRows rows{.step_first = step_->first, .first = 0, .count = step_->mark.tokens};
    if (node.tokens == Node::Tokens::outputs) {
      rows.first = rows.count - 1;
      rows.count = 1;
    }
    const bool skipped = node.tokens == Node::Tokens::outputs && !step_->with_logits;
    if (!skipped) {
      if (step_->thread == 0) {
        sink.put(mark_of(node));
      }
      emitter_.emit(node, rows, step_->thread, sink);
    }
    if (skipped || ++step_->thread == workload_.threads) {
      step_->thread = 0;
      ++step_->node;
    }
  }

  [[nodiscard]] Mark mark_of(const Node& node) const {
    Mark mark = step_->mark;
    mark.what = Mark::What::operator_begin;
    mark.op = node.op;
    mark.layer = node.layer;
    return mark;
  }

  config::WorkloadSpec workload_;
  std::int64_t context_;
  std::int64_t ubatch_;
  MemoryLayout layout_;
  std::array<Address, kRegions> addresses_;
  std::vector<Node> graph_;
  std::vector<KvCache> caches_;  ///< by class of layers
  ExpertRouter router_;
  PageChooser pages_;
  bool recomputed_;
  std::int64_t depth_ = 0;  ///< tokens of the steps begun so far
  OperatorEmitter emitter_;
  bool loaded_ = false;
  std::vector<std::uint32_t> probes_;  ///< depths, deepest first; filled when the run is done
  std::size_t next_probe_ = 0;
  std::optional<Step> step_;
};

LlmWorkload::LlmWorkload(const LlmRun& run) : impl_(std::make_unique<Impl>(run)) {}

LlmWorkload::~LlmWorkload() = default;

bool LlmWorkload::next(std::vector<Record>& batch) {
  return impl_->next(batch);
}

}  // namespace kvsim::trace
