// SPDX-License-Identifier: Apache-2.0
// Records per second of making, writing and reading the stream of Llama-3-8B: 512 prompt tokens, then
// generation.
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "traces/codec/reader.h"
#include "traces/codec/writer.h"
#include "traces/workload/test_models.h"
#include "traces/workload/workload.h"

namespace kvsim::trace {
namespace {

LlmRun benchmark_run() {
  return test_run(llama3_8b(), mixed_format(), {.prompt = 512, .generate = 64, .threads = 4});
}

const std::vector<Record>& stream() {
  static const std::vector<Record> records = [] {
    LlmWorkload workload(benchmark_run());
    std::vector<Record> all;
    for (std::vector<Record> batch; workload.next(batch);) {
      all.insert(all.end(), batch.begin(), batch.end());
    }
    return all;
  }();
  return records;
}

std::filesystem::path file() {
  return std::filesystem::temp_directory_path() / fmt::format("kvsim-codec-benchmark-{}.kvt", ::getpid());
}

void write_stream() {
  TraceWriter writer(file(), {});
  for (const Record& record : stream()) {
    writer.put(record);
  }
  writer.finish();
}

void count_records(benchmark::State& state) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(stream().size()));
}

void make_workload(benchmark::State& state) {
  const LlmRun run = benchmark_run();
  for (auto _ : state) {
    LlmWorkload workload(run);
    for (std::vector<Record> batch; workload.next(batch);) {
      benchmark::DoNotOptimize(batch.data());
    }
  }
  count_records(state);
}
BENCHMARK(make_workload)->Unit(benchmark::kMillisecond);

void write_trace(benchmark::State& state) {
  for (auto _ : state) {
    write_stream();
  }
  count_records(state);
  state.counters["bytes/record"] =
      static_cast<double>(std::filesystem::file_size(file())) / static_cast<double>(stream().size());
  std::filesystem::remove(file());
}
BENCHMARK(write_trace)->Unit(benchmark::kMillisecond);

void read_trace(benchmark::State& state) {
  write_stream();
  for (auto _ : state) {
    TraceReader reader(file());
    for (std::vector<Record> batch; reader.next(batch);) {
      benchmark::DoNotOptimize(batch.data());
    }
  }
  count_records(state);
  std::filesystem::remove(file());
}
BENCHMARK(read_trace)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace kvsim::trace
