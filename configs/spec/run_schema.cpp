// SPDX-License-Identifier: Apache-2.0
// Tables of a scenario, and what must hold between its parts.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "configs/spec/kv_tier_schema.h"
#include "configs/spec/memory_schema.h"
#include "configs/spec/schemas.h"
#include "configs/spec/soak_rules.h"
#include "configs/spec/tensors.h"

namespace kvsim::config {
namespace {

using namespace kvsim::literals;

// Far above any context; keeps the size of a KV cache in 64 bits.
constexpr std::int64_t kMaxTokens = 1 << 24;

/// A transposed V has no vectors to lay out: each of its numbers has an address of its own.
void check_transposed(const EngineSpec& engine, const Place& place) {
  const KvNumber v = engine.kv.v.number;
  const bool plain = v == KvNumber::f32 || v == KvNumber::f16 || v == KvNumber::bf16;
  if (engine.v_transposed &&
      (!plain || engine.kv_layout == KvLayout::paged || engine.kv_row_alignment > 1_B)) {
    place.error("engine.v_transposed",
                "needs V in f32, f16 or bf16, a kv_layout that is not paged, and kv_row_alignment 1 B");
  }
}

/// Without a cache no token waits in one, and none leaves it.
void check_recomputed(const RunSpec& run, const Place& place) {
  if (run.engine.kv_cache != KvCacheUse::recomputed) {
    return;
  }
  if (run.workload.cached > 0) {
    place.error("workload.cached", "engine.kv_cache is recomputed: there is no cache to hold tokens");
  }
  KvSpec formats;
  formats.k = run.engine.kv.k;
  formats.v = run.engine.kv.v;
  formats.unrotated = run.engine.kv.unrotated;
  if (run.engine.kv != formats) {
    place.error("engine.kv",
                "engine.kv_cache is recomputed: give formats alone, as nothing stays from step to step");
  }
}

/// Local layers see a window of their own: no other rule about which tokens stay has a meaning there, and
/// where all are local, none at all.
void check_local(const RunSpec& run, const Place& place) {
  const KvSpec& kv = run.engine.kv;
  const bool all_local = run.model.local && run.model.local->count == run.model.local->period;
  if (all_local && (kv.sinks > 0 || kv.h2o > 0 || kv.entropy > 0 || kv.topk > 0)) {
    place.error("engine.kv",
                fmt::format("all layers of {} see {} tokens; of what stays only +window can be chosen for it",
                            run.model.name, run.model.local->window));
  }
}

/// Experts read into a cache of their own.
void check_experts(const RunSpec& run, const Place& place) {
  const ExpertStorage& experts = run.engine.experts;
  if (experts.place == ExpertPlace::mapped) {
    if (experts != ExpertStorage{}) {
      place.error(
          "engine.experts",
          "cache, policy, request, in_flight and overlap are of experts that are streamed: give place: "
          "streamed, or leave them out");
    }
    return;
  }
  if (!run.model.experts) {
    place.error("engine.experts.place", fmt::format("{} has no experts to stream", run.model.name));
  }
  if (!run.device.storage) {
    place.error("engine.experts.place", "streamed experts need a device.storage to be read from");
  }
  if (run.engine.repack) {
    place.error("engine.repack",
                "streamed experts are used as they lie in the file: repack: false, or experts mapped");
  }
  if (experts.policy == ExpertPolicy::pinned && experts.cache == Bytes()) {
    place.error("engine.experts.policy", "a cache of 0 B has no room for pinned experts");
  }
}

void check_swap(const RunSpec& run, const Place& place) {
  if (run.device.os.swap > Bytes() && !run.device.storage) {
    place.error("device.os.swap", "a swap area needs a device.storage");
  }
}

void check_run(const RunSpec& run, const Place& place) {
  check_memory(run, place);
  check_local(run, place);
  check_experts(run, place);
  check_swap(run, place);
  if (const std::int64_t available = core_count(run.device); run.workload.threads > available) {
    place.error("workload.threads", fmt::format("{} threads on the {} cores of {}; give at most {}",
                                                run.workload.threads, available, run.device.name, available));
  }
  if (const std::int64_t tokens = run.workload.prompt + run.workload.generate; tokens > kMaxTokens) {
    place.error(
        "workload.generate",
        fmt::format("prompt and generate are {} tokens together; at most {} can be run", tokens, kMaxTokens));
  }
  if (run.workload.cached >= run.workload.prompt) {
    place.error("workload.cached",
                fmt::format("{} tokens are cached of a prompt of {}; leave at least one to compute",
                            run.workload.cached, run.workload.prompt));
  }
  check_recomputed(run, place);
  check_transposed(run.engine, place);
  const std::size_t before = place.errors().count();
  try {
    static_cast<void>(tensors(run.model, run.engine.weights));
  } catch (const UserError& error) {
    place.error("engine.weights", error.what());
  }
  try {
    for (const KvFormat& format : {run.engine.kv.k, run.engine.kv.v}) {
      static_cast<void>(kv_vector_bytes(format, key_numbers(run.model)));
      check_groups(format, {.layout = run.engine.kv_layout,
                            .block = run.engine.kv_block,
                            .row_alignment = run.engine.kv_row_alignment});
    }
  } catch (const UserError& error) {
    place.error("engine.kv", error.what());
  }
  if (place.errors().count() == before) {
    check_kv_tiers(run, place);
  }
  check_rules(run, place);
}

}  // namespace

template <>
const Schema<ExpertStorage>& schema<ExpertStorage>() {
  using T = ExpertStorage;
  static const Schema<T> kSchema{
      "where the experts of a mixture are; says nothing of a model without experts",
      {field("place", &T::place,
             "mapped: in the model file, as all weights; streamed: read from device.storage past the page "
             "cache "
             "(O_DIRECT) into a cache of their own, in anonymous memory")
           .optional(),
       field("cache", &T::cache,
             "what stays of streamed experts from token to token; less than a token uses, and lru keeps "
             "nothing "
             "of use")
           .between(0_B, 1024_GiB)
           .optional(),
       field("policy", &T::policy,
             "which experts leave a full cache: lru, the least recently used; lfu, the least often used; "
             "pinned: none, the most popular (workload.experts) fill it at load")
           .optional(),
       field("request", &T::request, "largest read; an expert's part of a matrix is read alone")
           .between(4_KiB, 64_MiB)
           .optional(),
       field("in_flight", &T::in_flight, "reads at once, each by a thread of its own")
           .between(1, 256)
           .optional(),
       field("overlap", &T::overlap,
             "an expert is computed as soon as it is there; else a layer waits for all that are missing")
           .optional()}};
  return kSchema;
}

template <>
const Schema<EngineSpec>& schema<EngineSpec>() {
  using T = EngineSpec;
  static const Schema<T> kSchema{
      "how the inference engine works; defaults are llama.cpp's",
      {field("weights", &T::weights,
             "format of the model file; left out if `model` is a GGUF file, which has its own")
           .entry_of("formats", "Q4_K_M"),
       field(
           "kv", &T::kv,
           "formats of K and V, and which tokens stay: f16, k=q8_0,v=q4_0, int8:g64+window=1024+sinks=4; see "
           "`kvsim quality --help`")
           .by_default(KvSpec()),
       field("kv_cache", &T::kv_cache,
             "kept: K and V of a token serve all later ones; recomputed: no cache, every step computes all "
             "tokens so far, K and V of one layer at a time")
           .optional(),
       field(
           "kv_layout", &T::kv_layout,
           "order of the KV cache within a layer's K and V: token_major, [token][head] (llama.cpp with flash "
           "attention); head_major, [head][token]; paged, [block][head][token] (vLLM's HND)")
           .optional(),
       field("kv_block", &T::kv_block, "tokens of a page of a paged KV cache (vLLM: 16)")
           .between(1, 65536)
           .optional(),
       field("kv_block_order", &T::kv_block_order,
             "in which order pages are handed out: in_order, or shuffled by run.seed, as after churn")
           .optional(),
       field("kv_row_alignment", &T::kv_row_alignment,
             "each head's vector in the KV cache is padded to a multiple of this; 64 B is a cache line")
           .between(1_B, 64_KiB)
           .by_default(1_B),
       field("ubatch", &T::ubatch, "prompt tokens computed together (llama.cpp's n_ubatch)")
           .between(1, 65536)
           .optional(),
       field("context_padding", &T::context_padding,
             "the KV cache's length is a multiple of this (llama.cpp pads n_ctx to 256)")
           .between(1, 65536)
           .optional(),
       field("prefill_columns", &T::prefill_columns,
             "prompt tokens per pass over a weight matrix (ggml-cpu multiplies in blocks of 16)")
           .between(1, 65536)
           .optional(),
       field("kv_tile", &T::kv_tile, "cached tokens per tile of the attention kernel (assumed)")
           .between(1, 65536)
           .optional(),
       field(
           "kv_walk", &T::kv_walk,
           "attention goes over a KV head's cells once for all query heads that read them, kv_head, or once "
           "for each, query_head (ggml-cpu's flash attention)")
           .optional(),
       field(
           "kv_read_padding", &T::kv_read_padding,
           "attention reads whole multiples of so many cells and masks what is not in use (llama.cpp without "
           "flash attention: 256); 1: only those in use")
           .between(1, 65536)
           .optional(),
       field("v_transposed", &T::v_transposed,
             "V lies [head][number][token], as llama.cpp keeps it without flash attention: a token's V is "
             "written one number per row")
           .optional(),
       field("kv_tiers", &T::kv_tiers,
             "a KV cache larger than memory: the newest blocks in SRAM and DRAM, all of it in a file on the "
             "device's storage; none: all of it is in memory")
           .optional(),
       field(
           "repack", &T::repack,
           "matrices in Q4_0 and Q4_K are read from a copy in another order, in anonymous memory beside the "
           "file (llama.cpp's CPU_REPACK buffer)")
           .optional(),
       field("experts", &T::experts, "where the experts of a mixture are").optional(),
       field("sampler_operations", &T::sampler_operations,
             "128-bit SIMD operations per vocabulary entry to choose the next token, on one thread (assumed: "
             "llama.cpp's default samplers copy, rescale and partly sort all logits); 0 as in llama-bench")
           .between(0.0, 10000.0)
           .by_default(60.0),
       field("barrier", &T::barrier, "cost of one meeting of the threads, after each operator (assumed)")
           .between(0_ps, 1_ms)
           .by_default(2_us),
       field("runtime_heap", &T::runtime_heap,
             "tokenizer, graph, stacks, code (llama.cpp's resident set minus weights, KV and compute buffer: "
             "10 to 14 "
             "MiB)")
           .between(0_B, 64_GiB)
           .by_default(14_MiB)}};
  return kSchema;
}

template <>
const Schema<ExpertUse>& schema<ExpertUse>() {
  using T = ExpertUse;
  static const Schema<T> kSchema{
      "which experts tokens take, drawn by run.seed; says nothing of a model without experts",
      {field(
           "popularity", &T::popularity,
           "the expert at place r of a layer's own order is drawn in proportion to 1 / r^popularity; 0: all "
           "alike (assumed: with reuse, near the hit shares that a phone's expert cache showed)")
           .between(0.0, 4.0)
           .optional(),
       field("reuse", &T::reuse,
             "probability that a token keeps an expert which the token before took (assumed, as popularity)")
           .between(0.0, 1.0)
           .optional()}};
  return kSchema;
}

template <>
const Schema<PageUse>& schema<PageUse>() {
  using T = PageUse;
  static const Schema<T> kSchema{
      "which pages of 16 tokens a head reads where engine.kv has topk, drawn by run.seed: the one being "
      "filled, and others",
      {field("popularity", &T::popularity,
             "the page at place r of a head's own order, in which the first page of the context leads, is "
             "drawn in proportion to 1 / r^popularity; 0: all alike (assumed)")
           .between(0.0, 4.0)
           .optional(),
       field("reuse", &T::reuse,
             "probability that a token keeps a page which the token before read in this head (assumed)")
           .between(0.0, 1.0)
           .optional()}};
  return kSchema;
}

template <>
const Schema<WorkloadSpec>& schema<WorkloadSpec>() {
  using T = WorkloadSpec;
  static const Schema<T> kSchema{
      "what is asked of the engine",
      {field("prompt", &T::prompt, "tokens of the prompt").between(1, kMaxTokens).optional(),
       field("cached", &T::cached,
             "tokens of the prompt that are in the KV cache already (a conversation that goes on)")
           .between(0, kMaxTokens)
           .optional(),
       field("generate", &T::generate, "tokens to generate").between(0, kMaxTokens).optional(),
       field("threads", &T::threads, "threads, placed on cores in the order of the device's clusters")
           .between(1, 4096)
           .optional(),
       field("duty", &T::duty,
             "hours a day that it runs, after which days to the storage's rated endurance are reckoned")
           .between(0.01, 24.0)
           .optional(),
       field("experts", &T::experts, "which experts tokens take").optional(),
       field("pages", &T::pages, "which pages of the KV cache tokens read with topk").optional()}};
  return kSchema;
}

template <>
const Schema<RunOptions>& schema<RunOptions>() {
  using T = RunOptions;
  static const Schema<T> kSchema{"how the simulation is done",
                                 {field("fidelity", &T::fidelity,
                                        "exact: every DRAM burst; train: bursts of a row together; auto: "
                                        "trains, and samples of like operators")
                                      .optional(),
                                  field("relative_error", &T::relative_error,
                                        "half-width of the interval that sampling aims for, as a share")
                                      .between(0.0001, 0.5)
                                      .optional(),
                                  field("seed", &T::seed,
                                        "of everything random: the order of shuffled pages, experts and "
                                        "pages chosen; stands in the result")
                                      .between(0, std::numeric_limits<std::int64_t>::max())
                                      .optional()}};
  return kSchema;
}

template <>
const Schema<RunSpec>& schema<RunSpec>() {
  using T = RunSpec;
  static const Schema<T> kSchema{
      "a scenario",
      {field("name", &T::name, "what reports call it").by_default(""),
       field("description", &T::description, "what it asks").by_default(""),
       field("device", &T::device, "the board").entry_of("devices"),
       field("model", &T::model, "the language model").entry_of("llms"),
       field("engine", &T::engine, "inference engine").optional(),
       field("workload", &T::workload, "workload").optional(),
       field("memory", &T::memory, "memory").optional(), field("run", &T::run, "simulation").optional(),
       field("soak", &T::soak,
             "answers one after the other, with clocks, power and heat; none: one answer, at the device's "
             "own clocks")
           .optional()},
      check_run};
  return kSchema;
}

}  // namespace kvsim::config
