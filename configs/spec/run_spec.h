// SPDX-License-Identifier: Apache-2.0
// The resolved scenario: every default filled in, every name replaced by what it stands for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/spec/device_spec.h"
#include "configs/spec/kv_spec.h"
#include "configs/spec/kv_tier_spec.h"
#include "configs/spec/model_spec.h"
#include "configs/spec/soak_spec.h"
#include "configs/spec/weight_stream_spec.h"
#include "configs/units/quantity.h"

namespace kvsim::config {

/// In which order pages are handed out: the pool's, or any, as after churn.
enum class KvBlockOrder { in_order, shuffled };

/// kept: what a token made of K and V serves all later tokens; recomputed: there is no cache, and every step
/// computes all tokens so far.
enum class KvCacheUse { kept, recomputed };
/// The attention kernel goes over a KV head's cells once for all its query heads, or once for each.
enum class KvWalk { kv_head, query_head };

/// mapped: experts are part of the model file, as all else; streamed: they are read into a cache of their
/// own.
enum class ExpertPlace { mapped, streamed };
/// Which experts leave a full cache: the least recently or the least often used; or a fixed set stays.
enum class ExpertPolicy { lru, lfu, pinned };

/// Where the experts of a mixture are, and how they are read.
struct ExpertStorage {
  ExpertPlace place = ExpertPlace::mapped;
  Bytes cache{};  ///< what stays between tokens
  ExpertPolicy policy = ExpertPolicy::lru;
  Bytes request{4 << 20};      ///< largest read
  std::int64_t in_flight = 4;  ///< reads at once
  bool overlap = false;        ///< an expert is computed as soon as it is there

  bool operator==(const ExpertStorage&) const = default;
};

/// How the inference engine works. Defaults are llama.cpp's.
struct EngineSpec {
  WeightFormat weights;
  KvSpec kv;  ///< formats of K and V, and which tokens stay
  KvCacheUse kv_cache = KvCacheUse::kept;
  KvLayout kv_layout = KvLayout::token_major;
  std::int64_t kv_block = 16;  ///< tokens of a page
  KvBlockOrder kv_block_order = KvBlockOrder::in_order;
  Bytes kv_row_alignment{1};           ///< a head's vector is padded to a multiple of this
  std::int64_t ubatch = 512;           ///< prompt tokens computed together
  std::int64_t context_padding = 256;  ///< the KV cache's length is a multiple of this
  std::int64_t prefill_columns = 16;   ///< prompt tokens per pass over a weight matrix
  std::int64_t kv_tile = 128;          ///< cached tokens per tile of the attention kernel
  KvWalk kv_walk = KvWalk::kv_head;
  std::int64_t kv_read_padding = 1;      ///< attention reads whole multiples of so many cells
  bool v_transposed = false;             ///< V lies [head][number][token], as without flash attention
  std::optional<KvTierSpec> kv_tiers{};  ///< none: the KV cache is in memory, all of it
  bool repack = false;                   ///< matrices of some types are copied into another order at load
  ExpertStorage experts{};               ///< of a mixture of experts
  /// SIMD operations per vocabulary entry to choose the next token from the logits, on one thread; 0 does
  /// without, as llama-bench does.
  double sampler_operations = 0;
  Picoseconds barrier;  ///< threads meet after each operator: cost of one meeting
  Bytes runtime_heap;   ///< tokenizer, graph, stacks, code

  bool operator==(const EngineSpec&) const = default;
};

/// Which experts tokens take, where the model has any. There is no text that would tell.
struct ExpertUse {
  double popularity = 1.5;  ///< exponent of Zipf's law over a layer's experts; 0: all alike
  double reuse = 0.05;      ///< probability that a token keeps an expert which the token before took

  bool operator==(const ExpertUse&) const = default;
};

/// Which pages of a head's keys a token reads where engine.kv has `topk`. There are no keys that would tell.
struct PageUse {
  double popularity = 1.0;  ///< exponent of Zipf's law over a head's pages; 0: all alike
  double reuse = 0.8;       ///< probability that a token keeps a page which the token before read

  bool operator==(const PageUse&) const = default;
};

struct WorkloadSpec {
  std::int64_t prompt = 512;    ///< tokens
  std::int64_t cached = 0;      ///< of the prompt, already in the KV cache at the start
  std::int64_t generate = 256;  ///< tokens
  std::int64_t threads = 4;
  double duty = 24;  ///< hours a day that it runs: how fast flash wears
  ExpertUse experts{};
  PageUse pages{};

  bool operator==(const WorkloadSpec&) const = default;
};

/// streamed: the engine reads them past the page cache, layer by layer, into buffers of its own.
enum class WeightBacking { mapped, anonymous, streamed };

/// populated: the loader has the whole file read in order (MAP_POPULATE, FADV_SEQUENTIAL); on_demand: pages
/// come when they are touched.
enum class MapLoad { populated, on_demand };

struct MemorySpec {
  WeightBacking weights = WeightBacking::mapped;
  MapLoad load = MapLoad::populated;  ///< of mapped weights that are paged
  Bytes locked{};                     ///< of mapped or streamed weights, the first ones: never leave memory
  WeightStream stream{};              ///< of streamed weights

  bool operator==(const MemorySpec&) const = default;
};

enum class Fidelity { exact, train, automatic };

struct RunOptions {
  Fidelity fidelity = Fidelity::automatic;
  double relative_error = 0.01;  ///< half-width of the interval that sampling aims for
  std::int64_t seed = 1;

  bool operator==(const RunOptions&) const = default;
};

/// A file that went into the run, for provenance.
struct InputFile {
  std::string path;
  /// 64-bit FNV-1a of the content, 16 hex digits; of a GGUF file above 64 MiB, "header:" and that of its
  /// header.
  std::string hash;

  bool operator==(const InputFile&) const = default;
};

struct RunSpec {
  std::string name;
  std::string description;
  DeviceSpec device;
  LlmSpec model;
  EngineSpec engine;
  WorkloadSpec workload;
  MemorySpec memory;
  RunOptions run;
  std::optional<SoakSpec> soak{};

  bool operator==(const RunSpec&) const = default;
};

}  // namespace kvsim::config
