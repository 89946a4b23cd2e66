// SPDX-License-Identifier: Apache-2.0
// The bytes of tiled and naive attention against closed forms, and naive attention under policies. That its
// results are right is in attention_test.cpp.
#include "traces/attention/naive.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/error.h"
#include "traces/record/random_records.h"
#include "traces/record/sinks.h"

namespace kvsim::trace {
namespace {

// Far enough apart that an extent's address tells what it is of.
constexpr Address kFar = 1ULL << 40U;
constexpr AttentionMemory kMemory{.q = kFar, .out = 2 * kFar, .scores = 3 * kFar, .weights = 4 * kFar};

struct Case {
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::uint32_t depth = 0, queries = 1;  ///< the last `queries` of depth + queries tokens
  std::int64_t kv_tile = 0, query_tile = 0;
  AttentionMethod method = AttentionMethod::tiled;
  const char* kv = "f16";
};

Case random_case(Rng& rng) {
  Case c;
  c.kv_heads = rng.between(1, 4);
  c.heads = c.kv_heads * rng.between(1, 5);
  c.head_dim = 32 * rng.between(1, 4);
  c.depth = static_cast<std::uint32_t>(rng.below(200));
  c.queries = static_cast<std::uint32_t>(rng.between(1, 90));
  c.kv_tile = rng.between(1, 64);
  c.query_tile = rng.between(1, 40);
  c.kv = rng.below(2) == 0 ? "f16" : "k=q8_0,v=q4_0";
  return c;
}

KvShape shape_of(const Case& c) {
  return {.layers = 1,
          .kv_heads = c.kv_heads,
          .head_dim = c.head_dim,
          .capacity = c.depth + c.queries,
          .spec = config::parse_kv_spec(c.kv),
          .batch = c.depth + c.queries};
}

/// By place (0: the cache, 1: Q, 2: O, 3: S, 4: P) and direction.
using Traffic = std::map<std::pair<Address, Access>, Bytes>;

Traffic traffic(const Case& c) {
  KvCache cache(shape_of(c), 0, KvPayload::none);
  cache.apply(std::get<KvPlan>(cache.plan(c.depth + c.queries)));
  std::vector<Record> records;
  VectorSink sink(records);
  attend({.heads = c.heads, .kv_tile = c.kv_tile, .query_tile = c.query_tile, .method = c.method}, cache,
         {.first = Token(c.depth),
          .queries = c.queries,
          .kv_heads = {.first = Head(0), .last = Head(static_cast<std::uint32_t>(c.kv_heads))},
          .memory = kMemory},
         {}, sink);
  Traffic bytes;
  for (const Record& record : records) {
    if (const auto* e = std::get_if<Extent>(&record)) {
      EXPECT_TRUE(well_formed(*e));
      EXPECT_EQ(e->kind, e->address < kFar ? Kind::kv : Kind::scratch);
      bytes[{e->address / kFar, e->access}] += total_bytes(*e);
    }
  }
  return bytes;
}

/// K and V of one token and KV head.
Bytes pair_bytes(const Case& c) {
  const KvShape shape = shape_of(c);
  return head_bytes(shape, shape.spec.k) + head_bytes(shape, shape.spec.v);
}

/// Q and O once.
Traffic operands(const Case& c) {
  const Bytes once(c.queries * c.heads * c.head_dim * 4);
  return {{{1, Access::read}, once}, {{2, Access::write}, once}};
}

/// K and V once per query tile and KV head, as far as its last query sees.
Traffic tiled_form(const Case& c) {
  std::int64_t tokens = 0;
  for (std::int64_t first = 0; first < c.queries; first += c.query_tile) {
    tokens += c.depth + std::min<std::int64_t>(first + c.query_tile, c.queries);
  }
  Traffic bytes = operands(c);
  bytes[{0, Access::read}] = pair_bytes(c) * (c.kv_heads * tokens);
  return bytes;
}

/// K and V once per query tile and query head; S and P written and read once per query head.
Traffic naive_form(const Case& c) {
  const std::int64_t tokens = c.depth + c.queries;
  const std::int64_t query_tiles = (c.queries + c.query_tile - 1) / c.query_tile;
  const Bytes matrix(c.heads * c.queries * tokens * 4);
  Traffic bytes = operands(c);
  bytes[{0, Access::read}] = pair_bytes(c) * (c.heads * query_tiles * tokens);
  for (const Address place : {3, 4}) {
    bytes[{place, Access::read}] = bytes[{place, Access::write}] = matrix;
  }
  return bytes;
}

TEST(AttentionBytes, OfTilesAreTheirClosedForm) {
  Rng rng(1);
  for (int round = 0; round < 200; ++round) {
    const Case c = random_case(rng);
    ASSERT_EQ(traffic(c), tiled_form(c)) << "round " << round;
  }
}

TEST(AttentionBytes, OfScoreMatricesAreTheirClosedForm) {
  Rng rng(2);
  for (int round = 0; round < 200; ++round) {
    Case c = random_case(rng);
    c.method = AttentionMethod::naive;
    ASSERT_EQ(traffic(c), naive_form(c)) << "round " << round;
  }
}

TEST(AttentionBytes, OfAPromptOf2048TokensByHand) {
  // Llama 3 8B, one layer, tiles of 64 queries: 32 tiles see 64, 128, ... 2048 tokens of 8 heads x 512 B.
  Case c{.heads = 32, .kv_heads = 8, .head_dim = 128, .queries = 2048, .kv_tile = 128, .query_tile = 64};
  EXPECT_EQ((traffic(c)[{0, Access::read}]), Bytes(64 * (32 * 33 / 2) * 8 * 512));
  c.method = AttentionMethod::naive;
  EXPECT_EQ((traffic(c)[{3, Access::write}]), Bytes(32LL * 2048 * 2048 * 4)) << "512 MiB of scores";
}

TEST(NaiveAttention, CountsMaskedScoresToo) {
  Case c{.heads = 8, .kv_heads = 2, .head_dim = 64, .depth = 10, .queries = 3, .kv_tile = 4, .query_tile = 2};
  c.method = AttentionMethod::naive;
  KvCache cache(shape_of(c), 0, KvPayload::none);
  cache.apply(std::get<KvPlan>(cache.plan(13)));
  std::vector<Record> records;
  VectorSink sink(records);
  attend({.heads = 8, .kv_tile = 4, .query_tile = 2, .method = c.method}, cache,
         {.first = Token(10), .queries = 3, .kv_heads = {Head(0), Head(2)}, .memory = kMemory}, {}, sink);
  EXPECT_EQ(std::get<Compute>(records.back()).operations, 3U * 13 * 8 * (2 * 2 * 8 + 6));
}

/// What a policy has let go, and what is kept in F16, is the same to both.
TEST(NaiveAttention, IsTheTiledOneUnderPolicies) {
  for (const char* kv : {"f16+window=20+sinks=3", "q8_0+recent=9", "int4:g32+first=5", "f16+window=7"}) {
    Rng rng(3);
    KvShape shape{.layers = 1, .kv_heads = 2, .head_dim = 32, .capacity = 64};
    shape.spec = config::parse_kv_spec(kv);
    shape.batch = 3;
    KvCache cache(shape, 0, KvPayload::numbers);
    std::vector<Record> ignored;
    VectorSink sink(ignored);
    for (std::uint32_t first = 0; first < 63; first += 3) {
      std::vector<float> k(3 * 2 * 32), v(k.size()), q(3 * 6 * 32), tiled(q.size()), naive(q.size());
      for (std::vector<float>* numbers : {&k, &v, &q}) {
        std::generate(numbers->begin(), numbers->end(), [&] { return 2 * rng.real(); });
      }
      cache.apply(std::get<KvPlan>(cache.plan(3)));
      cache.append({.first = Token(first), .tokens = 3, .k = k, .v = v}, sink);
      const AttentionTask task{
          .first = Token(first), .queries = 3, .kv_heads = {Head(0), Head(2)}, .memory = kMemory};
      attend({.heads = 6, .kv_tile = 8}, cache, task, {.q = q, .out = tiled}, sink);
      attend({.heads = 6, .kv_tile = 8, .method = AttentionMethod::naive}, cache, task,
             {.q = q, .out = naive}, sink);
      ASSERT_THAT(naive, ::testing::Pointwise(::testing::FloatNear(2e-5F), tiled)) << kv << " at " << first;
    }
  }
}

TEST(NaiveAttention, OfPoliciesThatRankIsABug) {
  KvShape shape{.layers = 1, .kv_heads = 1, .head_dim = 32, .capacity = 64};
  std::vector<Record> records;
  VectorSink sink(records);
  for (const char* kv : {"f16+h2o=16", "f16+topk=16"}) {
    shape.spec = config::parse_kv_spec(kv);
    KvCache cache(shape, 0, KvPayload::none);
    cache.apply(std::get<KvPlan>(cache.plan(1)));
    EXPECT_THROW(attend({.heads = 1, .method = AttentionMethod::naive}, cache,
                        {.queries = 1, .kv_heads = {Head(0), Head(1)}, .memory = kMemory}, {}, sink),
                 InternalError);
  }
}

}  // namespace
}  // namespace kvsim::trace
