// SPDX-License-Identifier: Apache-2.0
// The kernel against a plain reference in double precision that materialises the scores, and its accesses.
#include "traces/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/error.h"
#include "traces/number/half.h"
#include "traces/record/random_records.h"
#include "traces/record/sinks.h"

namespace kvsim::trace {
namespace {

constexpr double kEpsilon = 0x1p-24;  // unit roundoff of FP32

struct Problem {
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t head_dim = 32;
  std::uint32_t depth = 0;  ///< tokens in the cache before the queries
  std::uint32_t queries = 1;
  std::int64_t kv_tile = 16;
  std::int64_t query_tile = 4;
  float q_scale = 1;  ///< logits grow with it
  config::KvLayout layout = config::KvLayout::token_major;
  std::int64_t block = 16;
  AttentionMethod method = AttentionMethod::tiled;
};

KvShape kv_shape(const Problem& p) {
  return {.layers = 2,
          .kv_heads = p.kv_heads,
          .head_dim = p.head_dim,
          .capacity = p.depth + p.queries,
          .layout = p.layout,
          .block = p.block,
          .block_order = config::KvBlockOrder::shuffled};
}

AttentionShape attention_shape(const Problem& p) {
  return {.heads = p.heads, .kv_tile = p.kv_tile, .query_tile = p.query_tile, .method = p.method};
}

std::uint32_t u32(std::int64_t value) {
  return static_cast<std::uint32_t>(value);
}
std::size_t size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

/// A cache filled up in layer 1 with given numbers, and queries.
struct Instance {
  explicit Instance(const Problem& problem)
      : p(problem),
        cache(kv_shape(p), 0, KvPayload::numbers),
        q(size(p.queries * p.heads * p.head_dim)),
        k(size((p.depth + p.queries) * p.kv_heads * p.head_dim)),
        v(k.size()),
        out(q.size()) {}

  void random(Rng& rng) {
    std::generate(q.begin(), q.end(), [&] { return p.q_scale * rng.real(); });
    std::generate(k.begin(), k.end(), [&] { return 2 * rng.real(); });
    std::generate(v.begin(), v.end(), [&] { return 2 * rng.real(); });
  }

  void fill() {
    std::vector<Record> ignored;
    VectorSink sink(ignored);
    cache.apply(std::get<KvPlan>(cache.plan(p.depth + p.queries)));
    cache.append({.layer = Layer(1), .tokens = p.depth + p.queries, .k = k, .v = v}, sink);
  }

  std::vector<Record> attend_heads(std::uint32_t first, std::uint32_t last) {
    std::vector<Record> records;
    VectorSink sink(records);
    attend(attention_shape(p), cache, task(first, last), {.q = q, .out = out}, sink);
    return records;
  }
  std::vector<Record> attend_all() { return attend_heads(0, u32(p.kv_heads)); }

  [[nodiscard]] AttentionTask task(std::uint32_t first, std::uint32_t last) const {
    const bool naive = p.method == AttentionMethod::naive;
    return {.layer = Layer(1),
            .first = Token(p.depth),
            .queries = p.queries,
            .kv_heads = {.first = Head(first), .last = Head(last)},
            .stream = Stream(3),
            .memory = naive ? std::optional(AttentionMemory()) : std::nullopt};
  }

  Problem p;
  KvCache cache;
  std::vector<float> q, k, v, out;
};

struct Expected {
  std::vector<double> values;
  double bound = 0;
};

std::vector<float> cached(const Instance& s, KvSide side, std::uint32_t token, Head head) {
  std::vector<float> numbers(size(s.p.head_dim));
  s.cache.pool(KvPoolKind::main)
      .load({.layer = Layer(1), .side = side, .head = head}, {.first = token, .count = 1}, numbers);
  return numbers;
}

/// Output of one query and head. The bound, with u the unit roundoff: a score is off by at most
/// d = (head_dim + 3) u x scale x sum |q k|, so a weight by a factor of e^2d at most; std::exp is good to one
/// unit in the last place; summing n weighted values, rescaling once per tile and the division add (n + 2
/// tiles + 8) u. All relative to the largest |v|, of which the output is a weighted mean.
Expected reference(const Instance& s, std::uint32_t query, std::uint32_t head) {
  const auto kv_head = Head(head / u32(s.p.heads / s.p.kv_heads));
  const std::size_t dim = size(s.p.head_dim);
  const float* q = &s.q[(query * size(s.p.heads) + head) * dim];
  const double scale = 1 / std::sqrt(static_cast<double>(dim));
  const std::uint32_t visible = s.p.depth + query + 1;
  std::vector<double> scores(visible);
  double largest_sum = 0, largest_v = 0, maximum = -std::numeric_limits<double>::infinity();
  for (std::uint32_t t = 0; t < visible; ++t) {
    const auto k = cached(s, KvSide::k, t, kv_head);
    double magnitude = 0;
    for (std::size_t i = 0; i < dim; ++i) {
      const double product = double{q[i]} * double{k[i]} * scale;
      scores[t] += product;
      magnitude += std::abs(product);
    }
    largest_sum = std::max(largest_sum, magnitude);
    maximum = std::max(maximum, scores[t]);
  }
  double sum = 0;
  std::vector<double> values(dim);
  for (std::uint32_t t = 0; t < visible; ++t) {
    const auto v = cached(s, KvSide::v, t, kv_head);
    const double weight = std::exp(scores[t] - maximum);
    sum += weight;
    for (std::size_t i = 0; i < dim; ++i) {
      const double number = double{v[i]};
      values[i] += weight * number;
      largest_v = std::max(largest_v, std::abs(number));
    }
  }
  for (double& value : values) {
    value /= sum;
  }
  const double score_error = (static_cast<double>(dim) + 3) * kEpsilon * largest_sum;
  const double tiles = std::ceil(static_cast<double>(visible) / static_cast<double>(s.p.kv_tile));
  const double sum_error = 2 * (visible + 2 * tiles + 8) * kEpsilon;
  return {.values = std::move(values), .bound = largest_v * (std::expm1(2 * score_error) + sum_error)};
}

void expect_close(const Instance& s) {
  const std::size_t dim = size(s.p.head_dim);
  for (std::uint32_t query = 0; query < s.p.queries; ++query) {
    for (std::uint32_t head = 0; head < u32(s.p.heads); ++head) {
      const Expected expected = reference(s, query, head);
      for (std::size_t i = 0; i < dim; ++i) {
        const double got = s.out[(query * size(s.p.heads) + head) * dim + i];
        ASSERT_NEAR(got, expected.values[i], expected.bound) << "query " << query << " head " << head;
      }
    }
  }
}

Problem random_problem(Rng& rng) {
  Problem p;
  p.kv_heads = rng.between(1, 4);
  p.heads = p.kv_heads * rng.between(1, 7);
  p.head_dim = rng.between(1, 5) * rng.between(1, 32);
  p.depth = static_cast<std::uint32_t>(rng.below(150));
  p.queries = static_cast<std::uint32_t>(rng.below(2) == 0 ? 1 : rng.between(1, 30));
  p.kv_tile = rng.between(1, 64);
  p.query_tile = rng.between(1, 12);
  p.q_scale = static_cast<float>(rng.between(1, 4));
  p.layout = static_cast<config::KvLayout>(rng.below(3));
  p.block = rng.between(1, 40);
  return p;
}

TEST(Attention, AgreesWithThePlainReference) {
  Rng rng(1);
  for (int round = 0; round < 300; ++round) {
    Problem p = random_problem(rng);
    p.method = round % 2 == 0 ? AttentionMethod::tiled : AttentionMethod::naive;
    Instance s(p);
    s.random(rng);
    s.fill();
    s.attend_all();
    ASSERT_NO_FATAL_FAILURE(expect_close(s)) << "round " << round;
  }
}

TEST(Attention, LargeLogitsNeitherOverflowNorLosePrecision) {
  // Scores of several hundred, whose exponential FP32 cannot hold; the largest comes first, last, and in
  // between.
  Rng rng(2);
  for (int round = 0; round < 6; ++round) {
    const auto slope = static_cast<float>(round % 3 - 1);
    Instance s({.depth = 200,
                .queries = 3,
                .q_scale = 60,
                .method = round < 3 ? AttentionMethod::tiled : AttentionMethod::naive});
    s.random(rng);
    const std::size_t row = size(s.p.kv_heads * s.p.head_dim);
    for (std::size_t i = 0; i < s.k.size(); ++i) {
      s.k[i] = slope == 0
                   ? s.k[i] * 3
                   : (s.q[i % row] > 0 ? 1.0F : -1.0F) * slope * (static_cast<float>(i / row) - 100) / 50;
    }
    s.fill();
    s.attend_all();
    ASSERT_NO_FATAL_FAILURE(expect_close(s)) << "slope " << slope;
  }
}

TEST(Attention, EqualScoresGiveTheMean) {
  Instance s({.depth = 99, .queries = 1});
  for (std::size_t i = 0; i < s.v.size(); ++i) {
    s.v[i] = static_cast<float>(i / size(s.p.kv_heads * s.p.head_dim));  // the token's position
  }
  s.fill();
  s.attend_all();
  EXPECT_THAT(s.out, ::testing::Each(::testing::FloatNear(49.5F, 1e-4F)));
}

TEST(Attention, OneTokenIsItsValueExactly) {
  Instance s({.depth = 0, .queries = 1});
  Rng rng(5);
  s.random(rng);
  s.fill();
  s.attend_all();
  EXPECT_EQ(s.out[0], to_float(to_half(s.v[0])));
}

/// The KV head that each query head reads, seen through V (each head's values name it) or through K (each
/// head's keys point at one token, whose value names it).
std::vector<int> heads_read(std::int64_t heads, std::int64_t kv_heads, KvSide through) {
  Instance s({.heads = heads, .kv_heads = kv_heads, .depth = 40, .queries = 2});
  std::fill(s.q.begin(), s.q.end(), 10.0F);
  for (std::size_t i = 0; i < s.k.size(); ++i) {
    const std::size_t head = i / size(s.p.head_dim) % size(kv_heads);
    const std::size_t token = i / size(s.p.head_dim * kv_heads);
    s.k[i] = through == KvSide::k && token == head ? 10.0F : 0.0F;
    s.v[i] = static_cast<float>(through == KvSide::k ? token : head);
  }
  s.fill();
  s.attend_all();
  std::vector<int> read;
  for (std::size_t i = 0; i < s.out.size(); i += size(s.p.head_dim)) {
    read.push_back(static_cast<int>(std::lround(s.out[i])));
  }
  return read;
}

TEST(Attention, QueryHeadsReadTheirGroupsKvHead) {
  for (const auto& [heads, kv_heads] : {std::pair{32, 8}, {14, 2}, {9, 3}, {8, 8}, {7, 1}, {32, 4}}) {
    std::vector<int> expected;
    for (int query = 0; query < 2; ++query) {
      for (int head = 0; head < heads; ++head) {
        expected.push_back(head / (heads / kv_heads));
      }
    }
    EXPECT_EQ(heads_read(heads, kv_heads, KvSide::v), expected) << heads << ":" << kv_heads;
    EXPECT_EQ(heads_read(heads, kv_heads, KvSide::k), expected) << heads << ":" << kv_heads;
  }
}

TEST(Attention, TokensAfterAQueryDoNotMatter) {
  Rng rng(6);
  Instance a({.depth = 10, .queries = 6}), b(a.p);
  a.random(rng);
  b.q = a.q, b.k = a.k, b.v = a.v;
  const std::size_t row = size(a.p.kv_heads * a.p.head_dim);
  const std::size_t seen = 14;  // by the query at position 13
  for (std::size_t i = seen * row; i < b.k.size(); ++i) {
    b.k[i] = 7;
    b.v[i] = -7;
  }
  a.fill(), b.fill();
  a.attend_all(), b.attend_all();
  const auto until = static_cast<std::ptrdiff_t>(4 * size(a.p.heads * a.p.head_dim));
  EXPECT_TRUE(std::equal(a.out.begin(), a.out.begin() + until, b.out.begin()));
  EXPECT_FALSE(std::equal(a.out.begin() + until, a.out.end(), b.out.begin() + until));
}

TEST(Attention, SplittingHeadsOverThreadsChangesNoNumber) {
  Rng rng(7);
  Instance whole({.heads = 12, .kv_heads = 4, .depth = 33, .queries = 5}), parts(whole.p);
  whole.random(rng);
  parts.q = whole.q, parts.k = whole.k, parts.v = whole.v;
  whole.fill(), parts.fill();
  whole.attend_all();
  parts.attend_heads(2, 4);
  parts.attend_heads(0, 1);
  parts.attend_heads(1, 2);
  EXPECT_EQ(whole.out, parts.out);
}

TEST(AttentionAccesses, AreTheSameWithAndWithoutPayload) {
  Rng rng(8);
  for (int round = 0; round < 100; ++round) {
    Problem p = random_problem(rng);
    p.method = round % 2 == 0 ? AttentionMethod::tiled : AttentionMethod::naive;
    Instance s(p);
    s.random(rng);
    s.fill();
    KvCache bare(kv_shape(s.p), 0, KvPayload::none);
    bare.apply(std::get<KvPlan>(bare.plan(s.p.depth + s.p.queries)));
    std::vector<Record> records;
    VectorSink sink(records);
    attend(attention_shape(s.p), bare, s.task(0, u32(s.p.kv_heads)), {}, sink);
    ASSERT_EQ(s.attend_all(), records) << "round " << round;
  }
}

/// Token, KV head and side of each row an extent reads, as the cache's layout has them.
using RowKey = std::tuple<std::uint32_t, std::uint32_t, KvSide>;
void count_rows(const Problem& p, const KvCache& cache, const Extent& e, std::map<RowKey, int>& reads) {
  for (std::uint32_t h = 0; h < u32(p.kv_heads); ++h) {
    for (const KvSide side : {KvSide::k, KvSide::v}) {
      for (std::uint32_t t = 0; t < p.depth + p.queries; ++t) {
        std::vector<Record> records;
        VectorSink sink(records);
        cache.pool(KvPoolKind::main)
            .access_head({.layer = Layer(1), .side = side, .head = Head(h)}, {.first = t, .count = 1},
                         Access::read, Stream(0), sink);
        const Extent row = std::get<Extent>(records.at(0));
        const auto stride = static_cast<Address>(e.stride.count());
        const Address offset = row.address - e.address;
        const bool inside = row.address >= e.address && offset / stride < e.rows &&
                            offset % stride < static_cast<Address>(e.row_bytes.count());
        reads[{t, h, side}] += inside ? 1 : 0;
      }
    }
  }
}

TEST(AttentionAccesses, ReadWhatAQueryTileSeesOncePerKvHead) {
  Rng rng(9);
  for (int round = 0; round < 40; ++round) {
    Problem p = random_problem(rng);
    p.depth %= 40;
    Instance s(p);
    s.fill();
    std::map<RowKey, int> reads;
    for (const Record& record : s.attend_all()) {
      if (const auto* e = std::get_if<Extent>(&record)) {
        ASSERT_EQ(e->access, Access::read);
        ASSERT_EQ(e->kind, Kind::kv);
        ASSERT_EQ(e->stream, Stream(3));
        count_rows(p, s.cache, *e, reads);
      }
    }
    for (const auto& [key, count] : reads) {
      int expected = 0;  // query tiles whose last query sees the token
      for (std::uint32_t q = 0; q < p.queries; q += u32(p.query_tile)) {
        const std::uint32_t last = std::min(q + u32(p.query_tile), p.queries) - 1;
        expected += std::get<0>(key) <= p.depth + last ? 1 : 0;
      }
      ASSERT_EQ(count, expected) << "round " << round << " token " << std::get<0>(key);
    }
  }
}

TEST(AttentionAccesses, OfADecodeStepAreOneKAndOneVPerTileAndHead) {
  Instance s({.heads = 8, .kv_heads = 2, .depth = 767, .queries = 1, .kv_tile = 128});
  s.fill();
  const auto records = s.attend_all();
  EXPECT_EQ(records.size(), 2U * 2U * 6U + 1U);
  Bytes bytes;
  for (const Record& record : records) {
    if (const auto* e = std::get_if<Extent>(&record)) {
      bytes += total_bytes(*e);
    }
  }
  EXPECT_EQ(bytes.count(), 768 * 2 * 2 * 32 * 2) << "tokens x (K and V) x heads x head_dim x 2 B";
}

TEST(AttentionAccesses, ComputeFollowsItsFormula) {
  Instance s({.heads = 8, .kv_heads = 2, .head_dim = 64, .depth = 10, .queries = 3});
  s.fill();
  // Pairs: 11 + 12 + 13. Each: 64/32 x 8 operations for QK, the same for PV, 6 for the softmax.
  const Compute all{.operations = (11 + 12 + 13) * 8 * (2 * 2 * 8 + 6), .stream = Stream(3)};
  EXPECT_EQ(std::get<Compute>(s.attend_all().back()), all);
  const Compute half{.operations = all.operations / 2, .stream = Stream(3)};
  EXPECT_EQ(std::get<Compute>(s.attend_heads(1, 2).back()), half);
}

TEST(AttentionAccesses, ScoresStayInATile) {
  // A full 2048 x 2048 matrix of half-precision scores is 8 MiB; K and V of a tile are far below an NPU's
  // SRAM.
  constexpr std::int64_t kTokens = 2048;
  EXPECT_EQ(Bytes(kTokens * kTokens * 2), Bytes(8 << 20));
  Instance s({.heads = 1,
              .kv_heads = 1,
              .head_dim = 128,
              .depth = 0,
              .queries = u32(kTokens),
              .kv_tile = 128,
              .query_tile = 64});
  KvCache bare(kv_shape(s.p), 0, KvPayload::none);
  bare.apply(std::get<KvPlan>(bare.plan(u32(kTokens))));
  std::vector<Record> records;
  VectorSink sink(records);
  attend(attention_shape(s.p), bare, s.task(0, 1), {}, sink);
  for (const Record& record : records) {
    if (const auto* e = std::get_if<Extent>(&record)) {
      ASSERT_LE(total_bytes(*e) * 2, Bytes(256 << 10));
    }
  }
}

TEST(Attention, VisiblePairsAreCountedExactly) {
  EXPECT_EQ(visible_pairs(Token(0), 1), 1U);
  EXPECT_EQ(visible_pairs(Token(0), 10), 55U);
  EXPECT_EQ(visible_pairs(Token(767), 1), 768U);
  EXPECT_EQ(visible_pairs(Token(5), 3), 6U + 7U + 8U);
  EXPECT_EQ(visible_pairs(Token(0xffffffff), 1), 1ULL << 32U);
}

TEST(Attention, MisuseIsABug) {
  Instance s({.depth = 3});
  s.fill();
  std::vector<Record> records;
  VectorSink sink(records);
  const auto run = [&](AttentionShape shape, AttentionTask task, AttentionValues values) {
    attend(shape, s.cache, task, values, sink);
  };
  const AttentionShape good = attention_shape(s.p);
  const AttentionValues values{.q = s.q, .out = s.out};
  EXPECT_NO_THROW(run(good, s.task(0, 2), values));
  EXPECT_THROW(run(good, s.task(1, 1), values), InternalError);
  EXPECT_THROW(run(good, s.task(0, 3), values), InternalError) << "there are two KV heads";
  EXPECT_THROW(run(good, s.task(0, 2), {}), InternalError);
  EXPECT_THROW(run({.heads = 3, .kv_tile = 1}, s.task(0, 2), values), InternalError);
  AttentionShape naive = good;
  naive.method = AttentionMethod::naive;
  EXPECT_THROW(run(naive, s.task(0, 2), values), InternalError) << "its scores have no place";
  AttentionTask later = s.task(0, 2);
  later.first = Token(4);
  EXPECT_THROW(run(good, later, values), InternalError) << "its token is not in the cache";
}

}  // namespace
}  // namespace kvsim::trace
