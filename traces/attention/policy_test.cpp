// SPDX-License-Identifier: Apache-2.0
// Formats, layouts and policies together: which tokens stay, what is read back, and that the accesses do not
// depend on there being numbers.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/error.h"
#include "traces/attention/attention.h"
#include "traces/number/half.h"
#include "traces/number/kv_codec.h"
#include "traces/record/random_records.h"
#include "traces/record/sinks.h"

namespace kvsim::trace {
namespace {

constexpr std::int64_t kHeadDim = 64;
constexpr std::int64_t kKvHeads = 2;
constexpr std::int64_t kHeads = 4;

KvShape shape_of(const std::string& spec, config::KvLayout layout, std::int64_t capacity,
                 std::int64_t batch) {
  return {.layers = 1,
          .kv_heads = kKvHeads,
          .head_dim = kHeadDim,
          .capacity = capacity,
          .spec = config::parse_kv_spec(spec),
          .batch = batch,
          .layout = layout,
          .block = 32,
          .block_order = config::KvBlockOrder::shuffled};
}

/// The mass of every query, kept to be given back.
class Recorded final : public MassSink, public MassSource {
 public:
  void put(const MassQuery& of, std::span<const Token> /*tokens*/, std::span<const float> mass) override {
    mass_[{of.head, of.query}].assign(mass.begin(), mass.end());
  }
  void fill(const MassQuery& of, std::span<const Token> tokens, std::span<float> mass) const override {
    const std::vector<float>& kept = mass_.at({of.head, of.query});
    ASSERT_EQ(kept.size(), tokens.size());
    std::copy(kept.begin(), kept.end(), mass.begin());
  }

 private:
  std::map<std::pair<Head, Token>, std::vector<float>> mass_;
};

/// A cache, what was put in, and what came of it.
class Session {
 public:
  Session(const KvShape& shape, KvPayload payload) : cache(shape, 1 << 20, payload) {}

  /// Returns all that is emitted.
  std::vector<Record> step(std::uint32_t tokens, Rng& rng, Recorded& mass) {
    const auto random = [&](std::int64_t heads) {
      std::vector<float> numbers(static_cast<std::size_t>(tokens * heads * kHeadDim));
      std::generate(numbers.begin(), numbers.end(), [&] { return 3 * rng.real(); });
      return numbers;
    };
    const std::vector<float> k = random(kKvHeads), v = random(kKvHeads), q = random(kHeads);
    std::vector<float> out(q.size());
    const auto plan = std::get<KvPlan>(cache.plan(tokens));
    cache.apply(plan);
    std::vector<Record> records;
    VectorSink sink(records);
    const bool numbers = cache.has_payload();
    const auto given = [&](const std::vector<float>& all) {
      return numbers ? std::span(all) : std::span<const float>();
    };
    cache.append({.first = plan.first, .tokens = tokens, .k = given(k), .v = given(v)}, sink);
    AttentionValues values{.q = given(q), .source = &mass};
    if (numbers) {
      values.out = out;
      values.mass = &mass;
      remember(k, v);
    }
    attend({.heads = kHeads, .kv_tile = 24, .query_tile = 5}, cache,
           {.first = plan.first, .queries = tokens, .kv_heads = {.first = Head(0), .last = Head(kKvHeads)}},
           values, sink);
    return records;
  }

  KvCache cache;
  std::vector<float> all_k, all_v;  // [token][KV head][head_dim]

 private:
  void remember(const std::vector<float>& k, const std::vector<float>& v) {
    all_k.insert(all_k.end(), k.begin(), k.end());
    all_v.insert(all_v.end(), v.begin(), v.end());
  }
};

std::vector<std::pair<KvCell, Token>> residents(const KvCache& cache, Head head) {
  std::vector<std::pair<KvCell, Token>> result;
  const KvLane& lane = cache.lane(Layer(0), head);
  for (const KvPoolKind pool : kKvPools) {
    for (KvCell cell{.pool = pool}; cell.index < lane.end(pool); ++cell.index) {
      if (lane.at(cell)) {
        result.emplace_back(cell, lane.at(cell)->token);
      }
    }
  }
  return result;
}

std::vector<std::uint32_t> tokens_of(const KvCache& cache, Head head = Head(0)) {
  std::vector<std::uint32_t> tokens;
  for (const auto& [cell, token] : residents(cache, head)) {
    tokens.push_back(token.value());
  }
  std::sort(tokens.begin(), tokens.end());
  return tokens;
}

std::vector<float> rounded(const config::KvFormat& format, std::span<const float> numbers) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(config::kv_vector_bytes(format, kHeadDim).count()));
  encode(format, numbers, bytes);
  std::vector<float> result(numbers.size());
  decode(format, bytes, result);
  return result;
}

/// Every token in the cache is what was put in, rounded by its pool's format; first to F16 if it waited
/// there.
void expect_read_back(const Session& s) {
  const config::KvSpec& spec = s.cache.shape().spec;
  const bool waited = spec.recent > 0;
  const config::KvFormat f16{.number = config::KvNumber::f16};
  for (Head head(0); head.value() < kKvHeads; ++head) {
    for (const auto& [cell, token] : residents(s.cache, head)) {
      for (const KvSide side : {KvSide::k, KvSide::v}) {
        const auto& all = side == KvSide::k ? s.all_k : s.all_v;
        const std::size_t at = (token.pos() * kKvHeads + head.pos()) * kHeadDim;
        std::vector<float> expected(all.begin() + static_cast<std::ptrdiff_t>(at),
                                    all.begin() + static_cast<std::ptrdiff_t>(at + kHeadDim));
        if (cell.pool == KvPoolKind::wide || waited) {
          expected = rounded(f16, expected);
        }
        if (cell.pool == KvPoolKind::main) {
          expected = rounded(side == KvSide::k ? spec.k : spec.v, expected);
        }
        std::vector<float> got(kHeadDim);
        s.cache.pool(cell.pool).load({.layer = Layer(0), .side = side, .head = head},
                                     {.first = cell.index, .count = 1}, got);
        ASSERT_EQ(got, expected) << "token " << token.value();
      }
    }
  }
}

void expect_within_capacity(const KvCache& cache, const std::vector<Record>& records) {
  const Address end = (1 << 20) + static_cast<Address>(total_bytes(cache.shape()).count());
  for (const Record& record : records) {
    ASSERT_TRUE(well_formed(record));
    if (const auto* e = std::get_if<Extent>(&record)) {
      ASSERT_GE(e->address, 1U << 20);
      ASSERT_LE(e->address + static_cast<Address>(e->stride.count()) * (e->rows - 1) +
                    static_cast<Address>(e->row_bytes.count()),
                end);
    }
  }
}

const std::vector<std::string> kFormats = {
    "f32",           "f16",  "bf16", "fp8_e4m3", "fp8_e5m2", "int8:g64", "int8:head", "int4:g32",
    "int4:g32:asym", "q8_0", "q5_1", "q5_0",     "q4_1",     "q4_0",     "iq4_nl",    "k=q8_0,v=q4_0"};
const std::vector<std::string> kPolicies = {"",
                                            "+window=20",
                                            "+window=20+sinks=4",
                                            "+h2o=24",
                                            "+h2o=24+sinks=3+window=9",
                                            "+entropy=20",
                                            "+first=6",
                                            "+first=10%",
                                            "+recent=7",
                                            "+first=5+recent=9+window=30",
                                            "+recent=5+h2o=24"};

TEST(Policies, EmitTheSameWithAndWithoutPayloadAndKeepWhatWasPutIn) {
  Rng rng(11);
  std::uint32_t steps = 0;
  for (const std::string& format : kFormats) {
    for (const std::string& policy : kPolicies) {
      for (const auto layout :
           {config::KvLayout::token_major, config::KvLayout::head_major, config::KvLayout::paged}) {
        SCOPED_TRACE(format + policy + " layout " + std::to_string(static_cast<int>(layout)));
        const KvShape shape = shape_of(format + policy, layout, 72, 8);
        Session with(shape, KvPayload::numbers), without(shape, KvPayload::none);
        while (with.cache.depth() < 72) {
          const std::uint32_t left = 72 - with.cache.depth();
          const auto tokens = static_cast<std::uint32_t>(
              std::min<std::int64_t>(left, rng.below(3) == 0 ? rng.between(1, 8) : 1));
          Recorded mass;
          const std::vector<Record> records = with.step(tokens, rng, mass);
          ASSERT_EQ(without.step(tokens, rng, mass), records);
          ASSERT_NO_FATAL_FAILURE(expect_within_capacity(with.cache, records));
          ++steps;
        }
        ASSERT_NO_FATAL_FAILURE(expect_read_back(with));
        EXPECT_EQ(with.cache.counters().peak_bytes, without.cache.counters().peak_bytes);
        EXPECT_LE(with.cache.counters().peak_bytes, total_bytes(shape));
      }
    }
  }
  EXPECT_GE(steps, 10'000U);
}

/// All mass on the tokens that a query was seen to read.
class SeenBefore final : public MassSink, public MassSource {
 public:
  void put(const MassQuery& of, std::span<const Token> tokens, std::span<const float> /*mass*/) override {
    seen[{of.head, of.query}].insert(tokens.begin(), tokens.end());
  }
  void fill(const MassQuery& of, std::span<const Token> tokens, std::span<float> mass) const override {
    const std::set<Token>& mine = seen.at({of.head, of.query});
    std::transform(tokens.begin(), tokens.end(), mass.begin(),
                   [&](Token t) { return mine.contains(t) ? 1.0F : 0.0F; });
  }
  std::map<std::pair<Head, Token>, std::set<Token>> seen;
};

TEST(Policies, TopkReadsThePagesWithTheHighestBounds) {
  constexpr std::uint32_t kDepth = 150;
  const KvShape shape = shape_of("f16+topk=48", config::KvLayout::head_major, kDepth, 1);
  KvCache with(shape, 0, KvPayload::numbers), without(shape, 0, KvPayload::none);
  SeenBefore seen;
  for (std::uint32_t t = 0; t < kDepth; ++t) {
    std::vector<float> k(kKvHeads * kHeadDim), v(k.size(), 1.0F), q(kHeads * kHeadDim, 1.0F), out(q.size());
    // Head 0 likes pages 1 and 4, head 1 pages 0 and 2: one token in each has a large key.
    for (std::uint32_t head = 0; head < kKvHeads; ++head) {
      const bool liked = head == 0 ? t == 20 || t == 70 : t == 3 || t == 47;
      std::fill_n(k.begin() + head * kHeadDim, kHeadDim, liked ? 1.0F : 0.01F);
    }
    std::vector<Record> a, b;
    VectorSink sink_a(a), sink_b(b);
    with.apply(std::get<KvPlan>(with.plan(1)));
    without.apply(std::get<KvPlan>(without.plan(1)));
    with.append({.first = Token(t), .tokens = 1, .k = k, .v = v}, sink_a);
    without.append({.first = Token(t), .tokens = 1}, sink_b);
    const AttentionTask task{
        .first = Token(t), .queries = 1, .kv_heads = {.first = Head(0), .last = Head(kKvHeads)}};
    attend({.heads = kHeads}, with, task, {.q = q, .out = out, .mass = &seen}, sink_a);
    attend({.heads = kHeads}, without, task, {.source = &seen}, sink_b);
    ASSERT_EQ(a, b) << "token " << t;
    for (const Record& record : a) {
      if (const auto* e = std::get_if<Extent>(&record)) {
        ASSERT_LE(e->address + static_cast<Address>(e->row_bytes.count()),
                  static_cast<Address>(total_bytes(shape).count()));
      }
    }
  }
  const auto pages = [&](std::uint32_t head) {
    std::set<std::uint32_t> result;
    for (const Token t : seen.seen.at({Head(head), Token(kDepth - 1)})) {
      result.insert(t.value() / 16);
    }
    return result;
  };
  EXPECT_THAT(pages(0), ::testing::ElementsAre(1, 4, 9));
  EXPECT_THAT(pages(1), ::testing::ElementsAre(0, 2, 9));
  EXPECT_EQ(seen.seen.at({Head(0), Token(47)}).size(), 48U) << "as long as all fit, all are read";
  EXPECT_EQ(total_bytes(shape), bytes_per_token(shape) * std::int64_t{kDepth} + Bytes(10 * 2 * 64 * 2 * 2));
}

TEST(Policies, RangesByChannelQuantiseWholeGroupsAndKeepTheRestInF16) {
  Rng rng(12);
  for (const auto layout : {config::KvLayout::head_major, config::KvLayout::paged}) {
    const KvShape shape = shape_of("k=int4:g32:channel,v=int4:g32+first=3", layout, 110, 4);
    Session with(shape, KvPayload::numbers), without(shape, KvPayload::none);
    for (std::uint32_t depth = 1; depth <= 110; ++depth) {
      Recorded mass;
      const std::vector<Record> records = with.step(1, rng, mass);
      ASSERT_EQ(without.step(1, rng, mass), records);
      const KvLane& lane = with.cache.lane(Layer(0), Head(0));
      const std::uint32_t grouped = depth <= 3 ? 0 : (depth - 3) / 32 * 32;
      ASSERT_EQ(lane.size(KvPoolKind::main), grouped);
      ASSERT_EQ(lane.size(KvPoolKind::wide), depth - grouped);
    }
    // A channel's numbers are off by half a step at most: its range over 7 steps each way, and half a unit of
    // F16.
    const KvPlace place{.layer = Layer(0), .side = KvSide::k, .head = Head(1)};
    std::vector<float> got(32 * kHeadDim);
    with.cache.pool(KvPoolKind::main).load(place, {.first = 32, .count = 32}, got);
    for (std::size_t i = 0; i < got.size(); ++i) {
      const std::size_t token = 3 + 32 + i / kHeadDim;
      const float exact = with.all_k[(token * kKvHeads + 1) * kHeadDim + i % kHeadDim];
      ASSERT_NEAR(got[i], exact, 3.0F / 7 / 2 * 1.01F + 0.002F);
    }
  }
  EXPECT_THROW(
      KvCache(shape_of("int4:g32:channel", config::KvLayout::token_major, 64, 1), 0, KvPayload::none),
      UserError);
}

/// A prompt's old tokens go into the cache's own format with the prompt, not with the first token after it.
TEST(Policies, APromptLeavesOnlyItsRecentTokensInF16) {
  struct Case {
    const char* spec;
    std::uint32_t quantised;  // of a prompt of 100
    std::uint32_t next;       // and by the token after it
  };
  for (const Case& c : {Case{"q8_0+recent=7", 93, 1}, Case{"k=int4:g32:channel,v=int4:g32", 96, 0},
                        Case{"k=int4:g32:channel,v=int4:g32+first=10+recent=25", 64, 0},
                        Case{"q8_0+first=10+recent=7", 83, 1}}) {
    SCOPED_TRACE(c.spec);
    const KvShape shape = shape_of(c.spec, config::KvLayout::head_major, 128, 100);
    Session with(shape, KvPayload::numbers), without(shape, KvPayload::none);
    Rng rng(21), other(21);
    Recorded mass;
    const Address wide = (1 << 20) + static_cast<Address>((total_bytes(shape) - wide_bytes(shape)).count());
    const auto written = [&](const std::vector<Record>& records, bool own) {
      Bytes bytes;
      for (const Record& record : records) {
        const auto* e = std::get_if<Extent>(&record);
        bytes += e != nullptr && e->access == Access::write && (e->address < wide) == own ? total_bytes(*e)
                                                                                          : Bytes();
      }
      return bytes;
    };
    const std::vector<Record> prompt = with.step(100, rng, mass);
    ASSERT_EQ(without.step(100, other, mass), prompt);
    EXPECT_EQ(written(prompt, true), bytes_per_token(shape) * std::int64_t{c.quantised});
    EXPECT_EQ(written(prompt, false), Bytes(100 * 2 * kKvHeads * kHeadDim * 2));
    EXPECT_EQ(with.cache.lane(Layer(0), Head(0)).size(KvPoolKind::main), c.quantised);
    EXPECT_EQ(with.cache.lane(Layer(0), Head(0)).size(KvPoolKind::wide), 100 - c.quantised);
    const std::vector<Record> token = with.step(1, rng, mass);
    ASSERT_EQ(without.step(1, other, mass), token);
    EXPECT_EQ(written(token, true), bytes_per_token(shape) * std::int64_t{c.next});
  }
}

/// Steps of one token up to `depth`, without numbers.
KvCache filled(const std::string& spec, std::uint32_t depth) {
  KvCache cache(shape_of(spec, config::KvLayout::head_major, depth, 1), 0, KvPayload::none);
  std::vector<Record> records;
  VectorSink sink(records);
  for (std::uint32_t i = 0; i < depth; ++i) {
    cache.apply(std::get<KvPlan>(cache.plan(1)));
    attend({.heads = kHeads}, cache,
           {.first = Token(i), .queries = 1, .kv_heads = {.first = Head(0), .last = Head(kKvHeads)}}, {},
           sink);
  }
  return cache;
}

TEST(Policies, AWindowKeepsTheLastTokensAndSinksTheFirst) {
  const KvCache window = filled("f16+window=5", 20);
  EXPECT_THAT(tokens_of(window), ::testing::ElementsAre(15, 16, 17, 18, 19));
  EXPECT_EQ(window.counters().evictions, 15U);
  EXPECT_THAT(tokens_of(filled("f16+window=3+sinks=2", 20)), ::testing::ElementsAre(0, 1, 17, 18, 19));
  EXPECT_THAT(tokens_of(filled("f16+window=3+sinks=2", 4)), ::testing::ElementsAre(0, 1, 2, 3));
}

TEST(Policies, AWindowIsARing) {
  const KvCache cache = filled("f16+window=5", 23);
  for (const auto& [cell, token] : residents(cache, Head(0))) {
    EXPECT_EQ(cell.index, token.value() % 5);
  }
  EXPECT_EQ(total_bytes(cache.shape()), bytes_per_token(cache.shape()) * 5);
}

TEST(Policies, CellsThatWereLeftAreNotReadAgain) {
  // A batch of 40 makes room for 47 cells; then a window of 8 is spread over them, with holes between.
  KvCache cache(shape_of("f16+window=8", config::KvLayout::head_major, 100, 40), 0, KvPayload::none);
  for (const std::uint32_t tokens : {40U, 1U, 1U, 1U}) {
    const auto plan = std::get<KvPlan>(cache.plan(tokens));
    cache.apply(plan);
    std::vector<Record> records;
    VectorSink sink(records);
    attend({.heads = kHeads}, cache,
           {.first = plan.first, .queries = tokens, .kv_heads = {.first = Head(0), .last = Head(1)}}, {},
           sink);
    Bytes bytes;
    for (const Record& record : records) {
      if (const auto* e = std::get_if<Extent>(&record)) {
        bytes += total_bytes(*e);
      }
    }
    EXPECT_EQ(bytes, Bytes(2 * kHeadDim * 2) * std::int64_t{tokens == 1 ? 8 : 40}) << tokens;
  }
}

/// All mass on one token.
class Favourite final : public MassSource {
 public:
  explicit Favourite(std::uint32_t head0, std::uint32_t head1) : tokens_{head0, head1} {}
  void fill(const MassQuery& of, std::span<const Token> tokens, std::span<float> mass) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      mass[i] = tokens[i].value() == tokens_[of.head.pos()] ? 1.0F : 0.01F;
    }
  }

 private:
  std::uint32_t tokens_[2];
};

TEST(Policies, HeavyHittersStayInTheirHead) {
  KvCache cache(shape_of("f16+h2o=6+window=4", config::KvLayout::head_major, 40, 1), 0, KvPayload::none);
  std::vector<Record> records;
  VectorSink sink(records);
  const Favourite mass(3, 7);
  for (std::uint32_t i = 0; i < 40; ++i) {
    cache.apply(std::get<KvPlan>(cache.plan(1)));
    attend({.heads = kHeads}, cache,
           {.first = Token(i), .queries = 1, .kv_heads = {.first = Head(0), .last = Head(kKvHeads)}},
           {.source = &mass}, sink);
  }
  EXPECT_THAT(tokens_of(cache, Head(0)), ::testing::IsSupersetOf({3, 36, 37, 38, 39}));
  EXPECT_THAT(tokens_of(cache, Head(1)), ::testing::IsSupersetOf({7, 36, 37, 38, 39}));
  EXPECT_THAT(tokens_of(cache, Head(1)), ::testing::Not(::testing::Contains(3)));
  EXPECT_EQ(tokens_of(cache).size(), 6U);
}

TEST(Policies, RefuseWhatDoesNotFit) {
  KvCache cache(shape_of("f16+window=8", config::KvLayout::head_major, 20, 4), 0, KvPayload::none);
  EXPECT_EQ(std::get<DoesNotFit>(cache.plan(5)), (DoesNotFit{.asked = 5, .left = 4})) << "more than a batch";
  for (int i = 0; i < 5; ++i) {
    cache.apply(std::get<KvPlan>(cache.plan(4)));
  }
  EXPECT_EQ(std::get<DoesNotFit>(cache.plan(1)), (DoesNotFit{.asked = 1, .left = 0})) << "the limit is hard";
  cache.reset();
  EXPECT_EQ(cache.counters().resident, 0U);
  EXPECT_TRUE(std::holds_alternative<KvPlan>(cache.plan(4)));
}

/// The output of one query over the tokens that stay, in double precision.
TEST(Policies, AttentionOfAWindowIsThatOverItsTokens) {
  Rng rng(14);
  const KvShape shape = shape_of("f32+window=6+sinks=2", config::KvLayout::token_major, 30, 3);
  KvCache cache(shape, 0, KvPayload::numbers);
  std::vector<float> all_k, all_v;
  std::vector<Record> records;
  VectorSink sink(records);
  for (std::uint32_t first = 0; first < 30; first += 3) {
    std::vector<float> k(3 * kKvHeads * kHeadDim), v(k.size()), q(3 * kHeads * kHeadDim), out(q.size());
    for (std::vector<float>* numbers : {&k, &v, &q}) {
      std::generate(numbers->begin(), numbers->end(), [&] { return rng.real(); });
    }
    all_k.insert(all_k.end(), k.begin(), k.end());
    all_v.insert(all_v.end(), v.begin(), v.end());
    cache.apply(std::get<KvPlan>(cache.plan(3)));
    cache.append({.first = Token(first), .tokens = 3, .k = k, .v = v}, sink);
    attend({.heads = kHeads, .kv_tile = 4, .query_tile = 2}, cache,
           {.first = Token(first), .queries = 3, .kv_heads = {.first = Head(0), .last = Head(kKvHeads)}},
           {.q = q, .out = out}, sink);
    for (std::uint32_t i = 0; i < 3 * kHeads; ++i) {
      const std::uint32_t position = first + i / kHeads, head = i % kHeads / (kHeads / kKvHeads);
      double sum = 0, expected = 0;
      for (std::uint32_t t = 0; t <= position; ++t) {
        if (t >= 2 && t + 6 <= position) {
          continue;
        }
        double score = 0;
        for (std::size_t d = 0; d < kHeadDim; ++d) {
          score += double{q[i * kHeadDim + d]} * double{all_k[(t * kKvHeads + head) * kHeadDim + d]};
        }
        const double weight = std::exp(score / 8);  // sqrt(64)
        sum += weight;
        expected += weight * double{all_v[(t * kKvHeads + head) * kHeadDim + 5]};
      }
      ASSERT_NEAR(double{out[i * kHeadDim + 5]}, expected / sum, 1e-5) << "query at " << position;
    }
  }
}

TEST(SyntheticMass, IsAShareOfOneAndTheSameInEveryRun) {
  const std::vector<Token> tokens = {Token(0), Token(5), Token(90), Token(100)};
  std::vector<float> a(4), b(4), other(4);
  const SyntheticMass mass;
  mass.fill({.query = Token(100)}, tokens, a);
  mass.fill({.query = Token(100)}, tokens, b);
  mass.fill({.head = Head(1), .query = Token(100)}, tokens, other);
  EXPECT_EQ(a, b);
  EXPECT_NEAR(std::accumulate(a.begin(), a.end(), 0.0F), 1.0F, 1e-6F);
  EXPECT_GT(a[0], a[1]);
  EXPECT_GT(a[3], a[2]);
}

}  // namespace
}  // namespace kvsim::trace
