// SPDX-License-Identifier: Apache-2.0
// Speed of decode attention: 32 query heads over 8 KV heads of 128, 4096 tokens, on one thread, by KV format.
// In F16 K and V are 16 MiB. Beside it a plain loop, and how fast one thread reads as much.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "traces/attention/attention.h"
#include "traces/number/half.h"
#include "traces/record/random_records.h"
#include "traces/simd/simd.h"

namespace kvsim::trace {
namespace {

constexpr std::int64_t kHeads = 32, kKvHeads = 8, kHeadDim = 128;
constexpr std::uint32_t kTokens = 4096;

class Nowhere final : public AccessSink {
 public:
  void put(const Record& /*record*/) override {}
};

std::vector<float> random(std::size_t count) {
  Rng rng(1);
  std::vector<float> numbers(count);
  std::generate(numbers.begin(), numbers.end(), [&] { return rng.real(); });
  return numbers;
}

void attention(benchmark::State& state, const char* kv) {
  KvCache cache({.layers = 1,
                 .kv_heads = kKvHeads,
                 .head_dim = kHeadDim,
                 .capacity = kTokens,
                 .spec = config::parse_kv_spec(kv),
                 .batch = kTokens,
                 .layout = config::KvLayout::head_major},
                0, KvPayload::numbers);
  Nowhere sink;
  const std::vector<float> numbers = random(kTokens * kKvHeads * kHeadDim);
  cache.apply(std::get<KvPlan>(cache.plan(kTokens)));
  cache.append({.tokens = kTokens, .k = numbers, .v = numbers}, sink);
  const std::vector<float> q = random(kHeads * kHeadDim);
  std::vector<float> out(q.size());
  for (auto _ : state) {
    attend(
        {.heads = kHeads, .kv_tile = 64}, cache,
        {.first = Token(kTokens - 1), .queries = 1, .kv_heads = {.first = Head(0), .last = Head(kKvHeads)}},
        {.q = q, .out = out}, sink);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetBytesProcessed(state.iterations() *
                          (bytes_per_token(cache.shape()) * std::int64_t{kTokens}).count());
}

BENCHMARK_CAPTURE(attention, f32, "f32");
BENCHMARK_CAPTURE(attention, f16, "f16");
BENCHMARK_CAPTURE(attention, bf16, "bf16");
BENCHMARK_CAPTURE(attention, q8_0, "q8_0");
BENCHMARK_CAPTURE(attention, q4_0, "q4_0");
BENCHMARK_CAPTURE(attention, int8_g64, "int8:g64");
BENCHMARK_CAPTURE(attention, int4_g32, "int4:g32");

/// The same in F16 as one would first write it.
void plain_attention(benchmark::State& state) {
  const std::vector<float> numbers = random(kKvHeads * kTokens * kHeadDim);
  std::vector<Half> kv(numbers.size());
  std::transform(numbers.begin(), numbers.end(), kv.begin(), to_half);
  const std::vector<float> q = random(kHeads * kHeadDim);
  std::vector<float> out(q.size()), scores(kTokens);
  for (auto _ : state) {
    for (std::size_t head = 0; head < kHeads; ++head) {
      const Half* of_head = &kv[head / (kHeads / kKvHeads) * kTokens * kHeadDim];
      float largest = -std::numeric_limits<float>::infinity(), sum = 0;
      for (std::size_t t = 0; t < kTokens; ++t) {
        scores[t] = 0;
        for (std::size_t d = 0; d < kHeadDim; ++d) {
          scores[t] += q[head * kHeadDim + d] * to_float(of_head[t * kHeadDim + d]);
        }
        largest = std::max(largest, scores[t]);
      }
      float* row = &out[head * kHeadDim];
      std::fill_n(row, kHeadDim, 0.0F);
      for (std::size_t t = 0; t < kTokens; ++t) {
        const float weight = std::exp(scores[t] - largest);
        sum += weight;
        for (std::size_t d = 0; d < kHeadDim; ++d) {
          row[d] += weight * to_float(of_head[t * kHeadDim + d]);
        }
      }
      std::for_each(row, row + kHeadDim, [sum](float& x) { x /= sum; });
    }
    benchmark::DoNotOptimize(out.data());
  }
  state.SetBytesProcessed(state.iterations() * 2 * kKvHeads * kTokens * kHeadDim * 2);
}
BENCHMARK(plain_attention);

/// Reads 16 MiB with vector loads.
void streaming_read(benchmark::State& state) {
  const std::vector<float> numbers(4U << 20U, 1.0F);
  for (auto _ : state) {
    benchmark::DoNotOptimize(simd::maximum(numbers));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(numbers.size() * sizeof(float)));
}
BENCHMARK(streaming_read);

}  // namespace
}  // namespace kvsim::trace
