// SPDX-License-Identifier: Apache-2.0
// 64 B requests per second through streams, interconnect and DRAM of the RK3588, in exact and in train
// fidelity.
#include <cstdint>
#include <functional>
#include <vector>

#include <benchmark/benchmark.h>

#include "configs/spec/resolve.h"
#include "models/memory_path/memory_path.h"

namespace kvsim::model {
namespace {

constexpr std::int64_t kLines = 1 << 18;  // a measurement
constexpr int kEngines = 4;

using Pattern = std::function<Segment(std::uint64_t index)>;  // of one engine

Segment run_of(trace::Address address, Bytes bytes) {
  return {.address = address, .row_bytes = bytes, .stride = bytes};
}

/// 1 MiB after the other.
Segment sequential(std::uint64_t index) {
  return run_of(index << 20, Bytes(1 << 20));
}

/// Single lines anywhere in 4 GiB.
Segment random_line(std::uint64_t index) {
  std::uint64_t z = (index + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  return run_of((z >> 38U) << 6U, Bytes(kLineBytes));
}

/// One head's keys of 512 tokens: 256 B of each token's 2 KiB.
Segment kv_like(std::uint64_t index) {
  Segment rows = run_of((index / 8 << 20) + index % 8 * 256, Bytes(256));
  rows.rows = 512;
  rows.stride = Bytes(2048);
  return rows;
}

/// Four engines work through `pattern`, each in a GiB of its own.
void run_engines(const config::DeviceSpec& device, Granularity granularity, const Pattern& pattern) {
  const std::unique_ptr<MemoryPath> made = make_memory_path(device, granularity);
  MemoryPath& path = *made;
  std::vector<EngineStream*> streams;
  for (std::uint64_t engine = 0; engine < kEngines; ++engine) {
    EngineStream& stream = path.add_stream({.in_flight = 32, .ahead = 64, .stores = 8});
    stream.begin(Picoseconds());
    std::int64_t lines = 0;
    for (std::uint64_t index = 0; lines < kLines / kEngines; ++index) {
      Segment segment = pattern(index + (engine << 32U));
      segment.address = (segment.address & ((1ULL << 30U) - 1)) + (engine << 30U);
      lines += segment.row_bytes.count() * segment.rows / kLineBytes;
      stream.push(segment);
    }
    streams.push_back(&stream);
  }
  while (path.run() != EngineStream::kNever) {
    for (EngineStream* stream : streams) {
      while (!stream->finished().empty()) {
        stream->finished().pop();
      }
    }
  }
}

void requests(benchmark::State& state, Granularity granularity, const Pattern& pattern) {
  const config::DeviceSpec device = config::load_device("rk3588");
  for (auto _ : state) {
    run_engines(device, granularity, pattern);
  }
  state.SetItemsProcessed(state.iterations() * kLines);
}

BENCHMARK_CAPTURE(requests, exact_sequential, Granularity::burst, sequential)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(requests, exact_random, Granularity::burst, random_line)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(requests, exact_kv_like, Granularity::burst, kv_like)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(requests, train_sequential, Granularity::train, sequential)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(requests, train_random, Granularity::train, random_line)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(requests, train_kv_like, Granularity::train, kv_like)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace kvsim::model
