// SPDX-License-Identifier: Apache-2.0
// What an inference engine allocates, how large it is, and where it lies.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "configs/spec/run_spec.h"
#include "configs/spec/tensors.h"
#include "traces/record/record.h"

namespace kvsim::trace {

/// What a workload follows from.
struct LlmRun {
  config::LlmSpec model;
  config::EngineSpec engine;
  config::WorkloadSpec workload;
  config::MemorySpec memory;
  Bytes page{4096};  ///< allocations begin at multiples of it
  std::uint64_t seed = 1;
  Address base = 0;  ///< where the first one begins, rounded up to a page
};

/// The workload of a resolved scenario.
[[nodiscard]] LlmRun llm_run(const config::RunSpec& spec);

enum class Region : std::uint8_t {
  weights,
  repacked,  ///< copies of some weights in another order
  kv_cache,
  kv_window,  ///< of layers that see a window
  kv_wide,    ///< tokens that wait in F16
  compute_buffer,
  output_buffer,
  runtime_heap,
  expert_cache,  ///< of streamed experts
};
inline constexpr std::size_t kRegions = 9;

struct Allocation {
  AllocName name{};
  Kind kind = Kind::other;
  Backing backing = Backing::anonymous;
  Bytes bytes{};  ///< as asked for, not rounded to pages; may be 0
};

/// Indexed by Region.
using MemoryLayout = std::array<Allocation, kRegions>;

/// What is allocated for a context of `context_tokens`: the KV cache and the compute buffer grow with it, the
/// rest does not. Rules: llama.cpp's (see README.md). Throws UserError if a size does not fit into 63 bits.
[[nodiscard]] MemoryLayout allocations(const LlmRun& run, std::int64_t context_tokens);

/// The tokens of prompt and answer.
[[nodiscard]] std::int64_t context_tokens(const config::WorkloadSpec& workload);
/// Prompt tokens that are computed together at most.
[[nodiscard]] std::int64_t ubatch_tokens(const config::EngineSpec& engine, std::int64_t context_tokens);
/// llama.cpp copies matrices of these types into an order that its kernels read faster, but not the
/// embedding, from which it looks up rows (ggml-cpu/repack.cpp).
[[nodiscard]] bool is_repacked(const config::EngineSpec& engine, const config::TensorInfo& tensor);

/// Experts are read from storage into a cache.
[[nodiscard]] bool streams_experts(const LlmRun& run);
/// Name of that cache's allocation.
inline constexpr std::string_view kExpertCacheName = "expert cache";
/// Accesses to streamed experts are at addresses of the file, which lies behind all memory that is allocated:
/// where, if the cache ends at `cache_end`. Whoever plays the stream knows where in the cache they are.
[[nodiscard]] Address expert_file(Address cache_end);

/// Addresses of the layout's regions, one behind the other, each at the beginning of a page.
[[nodiscard]] std::array<Address, kRegions> place(const MemoryLayout& layout, Bytes page, Address base);

}  // namespace kvsim::trace
