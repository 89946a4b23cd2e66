// SPDX-License-Identifier: Apache-2.0
// The workload's own stream, with a real engine's habits, beside what that engine did: llama.cpp on the CPU
// (34af94cd9, AVX2, one thread) with a small Llama, every load and store of one decode token traced with
// Valgrind and put through an LRU cache of 16 ways that is empty at that token's start. Prints the table of
// traces/workload/README.md.
#include <array>
#include <string>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/cache/cache.h"
#include "traces/kv_cache/kv_shape.h"
#include "traces/workload/workload.h"

namespace kvsim::testing {
namespace {

constexpr std::int64_t kLine = 64;
constexpr std::array kSizes{256 << 10, 1 << 20, 4 << 20, 16 << 20};

/// A row of the measurement. Bytes are of distinct lines.
struct Row {
  const char* name;
  const char* kv;
  std::int64_t cached;
  bool flash;
  bool repack;
  std::int64_t kv_read;
  std::int64_t kv_written;
  std::int64_t overhead;           ///< activations, stack and graph: what this workload has not
  std::array<double, 4> fills_mb;  ///< in kSizes; 0: not measured
};

const std::vector<Row> kRows{{"f16, 129 cached",
                              "f16",
                              129,
                              true,
                              true,
                              266'240,
                              2'048,
                              38'016 + 18'368 + 166'144,
                              {3.29, 3.20, 3.18, 3.18}},
                             {"f16, 129 cached, no repack",
                              "f16",
                              129,
                              true,
                              false,
                              266'240,
                              2'048,
                              38'016 + 18'368 + 164'992,
                              {3.29, 3.20, 3.18, 3.18}},
                             {"q8_0, 129 cached",
                              "q8_0",
                              129,
                              true,
                              true,
                              141'824,
                              1'536,
                              39'168 + 18'304 + 177'600,
                              {3.21, 3.12, 3.10, 0}},
                             {"f16, 4097 cached",
                              "f16",
                              4097,
                              true,
                              true,
                              8'392'704,
                              2'048,
                              48'320 + 18'368 + 311'296,
                              {20.1, 20.1, 11.5, 11.5}},
                             {"f16, 4097 cached, no flash attention",
                              "f16",
                              4097,
                              false,
                              true,
                              8'912'896,
                              33'792,
                              125'568 + 18'496 + 325'184,
                              {13.3, 12.6, 12.1, 12.1}},
                             {"q8_0, 4097 cached",
                              "q8_0",
                              4097,
                              true,
                              true,
                              4'459'008,
                              1'536,
                              48'384 + 18'304 + 323'392,
                              {20.3, 12.4, 7.6, 7.6}},
                             {"q4_0, 4097 cached",
                              "q4_0",
                              4097,
                              true,
                              true,
                              2'360'832,
                              1'024,
                              48'384 + 18'368 + 341'824,
                              {13.0, 5.6, 5.5, 0}}};

config::TensorType type(const char* name, std::int64_t block, std::int64_t bytes) {
  config::TensorType t;
  t.name = name;
  t.block = block;
  t.bytes = Bytes(bytes);
  t.simd_ops_per_32 = 8;
  return t;
}

trace::LlmRun micro(const Row& row) {
  trace::LlmRun run;
  run.model.name = "micro";
  run.model.layers = 4;
  run.model.width = 256;
  run.model.heads = 4;
  run.model.kv_heads = 2;
  run.model.head_dim = 64;
  run.model.ffn = 768;
  run.model.vocabulary = 4096;
  run.model.tied_embeddings = true;
  run.engine.weights.name = run.engine.weights.main = "Q4_0";
  run.engine.weights.rules = {{.role = config::TensorRole::output, .type = "Q6_K"}};
  run.engine.weights.types = {type("F32", 1, 4), type("Q4_0", 32, 18), type("Q6_K", 256, 210)};
  run.engine.kv = config::parse_kv_spec(row.kv);
  run.engine.repack = row.repack;
  run.engine.kv_walk = row.flash ? config::KvWalk::query_head : config::KvWalk::kv_head;
  run.engine.kv_read_padding = row.flash ? 1 : 256;
  run.engine.v_transposed = !row.flash;
  run.workload = {.prompt = row.cached, .cached = row.cached - 1, .generate = 1, .threads = 1};
  return run;
}

/// The records of the decode step.
std::vector<trace::Extent> decode_step(const trace::LlmRun& run) {
  std::vector<trace::Extent> extents;
  trace::LlmWorkload workload(run);
  trace::Phase phase = trace::Phase::load;
  for (std::vector<trace::Record> batch; workload.next(batch);) {
    for (const trace::Record& record : batch) {
      if (const auto* mark = std::get_if<trace::Mark>(&record)) {
        phase = mark->phase;
      } else if (const auto* extent = std::get_if<trace::Extent>(&record);
                 extent != nullptr && phase == trace::Phase::decode) {
        extents.push_back(*extent);
      }
    }
  }
  return extents;
}

template <class Visit>
void for_lines(const trace::Extent& e, Visit visit) {
  for (std::uint32_t row = 0; row < e.rows; ++row) {
    const trace::Address begin = e.address + row * static_cast<trace::Address>(e.stride.count());
    const trace::Address end = begin + static_cast<trace::Address>(e.row_bytes.count());
    for (trace::Address line = begin / kLine; line * kLine < end; ++line) {
      visit(line);
    }
  }
}

std::int64_t distinct(const std::vector<trace::Extent>& extents, trace::Kind kind, trace::Access access) {
  std::unordered_set<trace::Address> lines;
  for (const trace::Extent& e : extents) {
    if (e.kind == kind && e.access == access) {
      for_lines(e, [&](trace::Address line) { lines.insert(line); });
    }
  }
  return std::ssize(lines) * kLine;
}

/// Of weights and KV; everything passes through the cache.
std::int64_t fills(const std::vector<trace::Extent>& extents, std::int64_t size) {
  model::Cache cache({.size = Bytes(size), .ways = 16, .line = Bytes(kLine), .latency = {}, .bandwidth = {}});
  std::int64_t count = 0;
  for (const trace::Extent& e : extents) {
    const bool counted = e.kind == trace::Kind::weights || e.kind == trace::Kind::kv;
    for_lines(e, [&](trace::Address line) {
      const bool hit = cache.access(line * kLine, e.access, model::Owner::other_data).hit;
      count += !hit && counted ? 1 : 0;
    });
  }
  return count * kLine;
}

std::int64_t kv_loads(const std::vector<trace::Extent>& extents) {
  std::int64_t bytes = 0;
  for (const trace::Extent& e : extents) {
    bytes += e.kind == trace::Kind::kv && e.access == trace::Access::read ? total_bytes(e).count() : 0;
  }
  return bytes;
}

class EngineTraffic : public ::testing::TestWithParam<Row> {};

TEST_P(EngineTraffic, IsThatOfTheRealEngine) {
  const Row& row = GetParam();
  const std::vector<trace::Extent> extents = decode_step(micro(row));
  EXPECT_EQ(distinct(extents, trace::Kind::weights, trace::Access::read), 2'638'848);
  EXPECT_EQ(distinct(extents, trace::Kind::kv, trace::Access::read), row.kv_read);
  EXPECT_EQ(distinct(extents, trace::Kind::kv, trace::Access::write), row.kv_written);
  std::string line = fmt::format("| {} |", row.name);
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    const double here = static_cast<double>(fills(extents, kSizes[i]) + row.overhead) / 1e6;
    const double there = row.fills_mb[i];
    line += there > 0 ? fmt::format(" {:.2f} / {:.2f} ({:+.1f} %) |", here, there, 100 * (here / there - 1))
                      : fmt::format(" {:.2f} / - |", here);
    if (there > 0) {
      EXPECT_NEAR(here, there, (kSizes[i] < (4 << 20) ? 0.15 : 0.05) * there) << kSizes[i];
    }
  }
  fmt::print("{}\n", line);
  if (row.flash) {  // each query head's walk; a quantised vector's bytes, of which its lines are more
    const std::int64_t cells = row.cached + 1;
    const std::int64_t cell = trace::bytes_per_token({.layers = 4,
                                                      .kv_heads = 2,
                                                      .head_dim = 64,
                                                      .capacity = 1,
                                                      .spec = config::parse_kv_spec(row.kv)})
                                  .count();
    EXPECT_EQ(kv_loads(extents), 2 * cells * cell);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, EngineTraffic, ::testing::ValuesIn(kRows),
                         [](const auto& row) { return fmt::format("Row{}", row.index + 1); });

}  // namespace
}  // namespace kvsim::testing
