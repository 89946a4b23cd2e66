// SPDX-License-Identifier: Apache-2.0
#include "traces/kv_cache/kv_cache.h"

#include <algorithm>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/error.h"
#include "traces/number/half.h"
#include "traces/record/random_records.h"
#include "traces/record/sinks.h"

namespace kvsim::trace {
namespace {

using namespace kvsim::literals;

KvShape small_shape() {
  return {.layers = 3, .kv_heads = 2, .head_dim = 8, .capacity = 16};
}

struct SizeCase {
  const char* name;
  std::int64_t layers, kv_heads, head_dim, tokens;
  Bytes bytes;
};

TEST(Sizes, AreExactInEveryKnownCase) {
  const std::vector<SizeCase> cases = {
      {"7B with 32 heads, 2048 tokens", 32, 32, 128, 2048, 1_GiB},
      // Claimed as "about 67 MB", which is K alone; K and V are twice that.
      {"0.5B with 16 heads of 64, 2048 tokens", 16, 16, 64, 2048, 134'217'728_B},
      {"Qwen-7B, 512 tokens", 32, 32, 128, 512, 256_MiB},
      {"Qwen-7B, 2048 tokens", 32, 32, 128, 2048, 1_GiB},
      {"Qwen-7B, 8192 tokens", 32, 32, 128, 8192, 4_GiB},
      {"Qwen-7B, 32768 tokens", 32, 32, 128, 32768, 16_GiB},
      {"Qwen-7B, 131072 tokens", 32, 32, 128, 131072, 64_GiB},
      // Claimed with 32 KV heads (one layer's K = n x 8192 B); Llama-3-8B has 8.
      {"Llama-3-8B, one token", 32, 8, 128, 1, 131'072_B},
      {"one layer's K and V with 32 KV heads, one token", 1, 32, 128, 1, 2 * 8192_B},
      // llama.cpp's own logs
      {"Qwen3-1.7B, 4096 tokens", 28, 8, 128, 4096, 448_MiB},
      {"TinyLlama, 2048 tokens", 22, 4, 64, 2048, 44_MiB},
      {"Phi-3.5-mini, 131072 tokens", 32, 32, 96, 131072, 51'539'607'552_B}};
  for (const SizeCase& c : cases) {
    const KvShape shape{
        .layers = c.layers, .kv_heads = c.kv_heads, .head_dim = c.head_dim, .capacity = c.tokens};
    EXPECT_EQ(total_bytes(shape), c.bytes) << c.name;
    EXPECT_EQ(bytes_per_token(shape) * c.tokens, c.bytes) << c.name;
  }
}

TEST(Sizes, FollowTheFormula) {
  Rng rng(1);
  for (int i = 0; i < 1000; ++i) {
    const KvShape s{.layers = rng.between(1, 100),
                    .kv_heads = rng.between(1, 64),
                    .head_dim = rng.between(1, 256),
                    .capacity = rng.between(1, 100'000)};
    ASSERT_EQ(total_bytes(s).count(), 2 * s.layers * s.kv_heads * s.head_dim * s.capacity * 2);
  }
}

TEST(Sizes, GroupedQueriesDivideBytesByTheGroup) {
  // Llama-2-70B: 64 query heads share 8 KV heads.
  const KvShape grouped{.layers = 80, .kv_heads = 8, .head_dim = 128, .capacity = 4096};
  KvShape full = grouped;
  full.kv_heads = 64;
  EXPECT_EQ(total_bytes(full), total_bytes(grouped) * (64 / 8));
}

TEST(Sizes, HeadsArePaddedToTheLineOnlyWhenAsked) {
  struct Case {
    std::int64_t head_dim;
    Bytes plain, padded;
  };
  for (const Case& c : {Case{64, 128_B, 128_B}, Case{80, 160_B, 192_B}, Case{96, 192_B, 192_B},
                        Case{100, 200_B, 256_B}, Case{1, 2_B, 64_B}}) {
    KvShape shape{.layers = 2, .kv_heads = 3, .head_dim = c.head_dim, .capacity = 5};
    EXPECT_EQ(head_bytes(shape, shape.spec.k), c.plain);
    EXPECT_EQ(bytes_per_token(shape), c.plain * (3 * 2 * 2));
    shape.head_alignment = 64_B;
    EXPECT_EQ(head_bytes(shape, shape.spec.k), c.padded);
    EXPECT_EQ(total_bytes(shape), c.padded * (3 * 2 * 2 * 5));
  }
}

TEST(Sizes, QuantisedHeadsAreWholeBlocks) {
  KvShape shape = small_shape();
  shape.spec = config::parse_kv_spec("q8_0");
  shape.head_dim = 64;
  EXPECT_EQ(head_bytes(shape, shape.spec.k), 68_B);
  shape.head_dim = 80;
  EXPECT_THROW(
      {
        try {
          static_cast<void>(head_bytes(shape, shape.spec.k));
        } catch (const UserError& error) {
          EXPECT_THAT(error.what(),
                      ::testing::AllOf(::testing::HasSubstr("q8_0"), ::testing::HasSubstr("32")));
          throw;
        }
      },
      UserError);
}

TEST(Sizes, ThatOverflowAreTheUsersMistake) {
  KvShape shape = small_shape();
  shape.capacity = std::numeric_limits<std::int64_t>::max() / 100;
  EXPECT_THROW(static_cast<void>(total_bytes(shape)), UserError);
  EXPECT_THROW(static_cast<void>(padded_context(std::numeric_limits<std::int64_t>::max(), 256)), UserError);
}

TEST(Sizes, ContextsArePadded) {
  EXPECT_EQ(padded_context(1, 256), 256);
  EXPECT_EQ(padded_context(256, 256), 256);
  EXPECT_EQ(padded_context(768, 256), 768);
  EXPECT_EQ(padded_context(769, 256), 1024);
  EXPECT_EQ(padded_context(769, 1), 769);
}

/// Appends `tokens` to every layer and returns what was emitted.
std::vector<Record> append_everywhere(KvCache& cache, std::uint32_t tokens, std::span<const float> k = {},
                                      std::span<const float> v = {}) {
  const auto plan = std::get<KvPlan>(cache.plan(tokens));
  cache.apply(plan);
  std::vector<Record> records;
  VectorSink sink(records);
  for (std::int64_t layer = 0; layer < cache.shape().layers; ++layer) {
    cache.append({.layer = Layer(static_cast<std::uint32_t>(layer)),
                  .first = plan.first,
                  .tokens = tokens,
                  .stream = Stream(0),
                  .k = k,
                  .v = v},
                 sink);
  }
  return records;
}

/// Cells of one head in the cache's own format.
struct Tile {
  Layer layer{};
  KvSide side = KvSide::k;
  Head head{};
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  Stream stream{};
};

std::vector<Record> reads_of(const KvCache& cache, const Tile& tile) {
  std::vector<Record> records;
  VectorSink sink(records);
  cache.pool(KvPoolKind::main)
      .access_head({.layer = tile.layer, .side = tile.side, .head = tile.head},
                   {.first = tile.first, .count = tile.count}, Access::read, tile.stream, sink);
  return records;
}

std::vector<float> values(const KvCache& cache, const KvPlace& place, std::uint32_t cell) {
  std::vector<float> numbers(static_cast<std::size_t>(cache.shape().head_dim));
  cache.pool(KvPoolKind::main).load(place, {.first = cell, .count = 1}, numbers);
  return numbers;
}

TEST(KvCache, PlansChangeNothingUntilTheyAreApplied) {
  KvCache cache(small_shape(), 0, KvPayload::none);
  EXPECT_EQ(std::get<KvPlan>(cache.plan(10)), (KvPlan{.first = Token(0), .tokens = 10}));
  EXPECT_EQ(std::get<KvPlan>(cache.plan(10)), (KvPlan{.first = Token(0), .tokens = 10}));
  EXPECT_EQ(cache.depth(), 0U);
  cache.apply(std::get<KvPlan>(cache.plan(10)));
  EXPECT_EQ(cache.depth(), 10U);
  EXPECT_EQ(std::get<KvPlan>(cache.plan(6)), (KvPlan{.first = Token(10), .tokens = 6}));
  EXPECT_EQ(std::get<DoesNotFit>(cache.plan(7)), (DoesNotFit{.asked = 7, .left = 6}));
}

TEST(KvCache, StalePlansAndUnplannedAccessesAreBugs) {
  KvCache cache(small_shape(), 0, KvPayload::none);
  const auto plan = std::get<KvPlan>(cache.plan(4));
  std::vector<Record> records;
  VectorSink sink(records);
  EXPECT_THROW(cache.append({.tokens = 4}, sink), InternalError);
  cache.apply(plan);
  EXPECT_THROW(cache.apply(plan), InternalError);
  EXPECT_THROW(cache.apply({.first = Token(4), .tokens = 13}), InternalError);
  EXPECT_THROW(reads_of(cache, {.first = 16, .count = 1}), InternalError);
  EXPECT_THROW(reads_of(cache, {.head = Head(2), .count = 4}), InternalError);
  EXPECT_THROW(reads_of(cache, {.layer = Layer(3), .count = 4}), InternalError);
}

TEST(KvCache, AppendsAreContiguousRowsAtTheStatedPlace) {
  KvCache cache(small_shape(), 4096, KvPayload::none);
  append_everywhere(cache, 5);
  const std::vector<Record> records = append_everywhere(cache, 2);
  ASSERT_EQ(records.size(), 6U);
  // [layer][K, V][16 tokens][2 heads x 8 numbers x 2 B = 32 B]
  for (std::uint64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(std::get<Extent>(records[i]), (Extent{.address = 4096 + i * 16 * 32 + 5 * 32,
                                                    .row_bytes = 64_B,
                                                    .rows = 1,
                                                    .stride = 64_B,
                                                    .access = Access::write,
                                                    .kind = Kind::kv}));
  }
}

TEST(KvCache, TilesAreStridedRowsOfOneHead) {
  KvCache cache(small_shape(), 4096, KvPayload::none);
  append_everywhere(cache, 9);
  const std::vector<Record> tile = reads_of(
      cache,
      {.layer = Layer(1), .side = KvSide::v, .head = Head(1), .first = 3, .count = 6, .stream = Stream(2)});
  ASSERT_EQ(tile.size(), 1U);
  EXPECT_EQ(std::get<Extent>(tile[0]), (Extent{.address = 4096 + 3 * 16 * 32 + 3 * 32 + 16,
                                               .row_bytes = 16_B,
                                               .rows = 6,
                                               .stride = 32_B,
                                               .access = Access::read,
                                               .kind = Kind::kv,
                                               .stream = Stream(2)}));
}

TEST(KvCache, TilesOfTheOnlyHeadAreOneRun) {
  KvShape shape = small_shape();
  shape.kv_heads = 1;
  KvCache cache(shape, 0, KvPayload::none);
  append_everywhere(cache, 4);
  EXPECT_EQ(std::get<Extent>(reads_of(cache, {.first = 1, .count = 3}).at(0)),
            (Extent{.address = 16, .row_bytes = 48_B, .rows = 1, .stride = 48_B, .kind = Kind::kv}));
}

/// Marks the bytes of an extent; returns false if one was marked before.
bool mark_bytes(const Extent& e, std::set<Address>& marked) {
  bool fresh = true;
  for (std::uint32_t row = 0; row < e.rows; ++row) {
    for (std::int64_t byte = 0; byte < e.row_bytes.count(); ++byte) {
      fresh &=
          marked.insert(e.address + row * static_cast<Address>(e.stride.count()) + static_cast<Address>(byte))
              .second;
    }
  }
  return fresh;
}

/// Every layout, pages of which the last is not full among them.
std::vector<KvShape> every_layout(KvShape shape) {
  using config::KvBlockOrder;
  using config::KvLayout;
  std::vector<KvShape> shapes(2, shape);
  shapes[1].layout = KvLayout::head_major;
  for (const std::int64_t block : {1, 4, 5, 16, 64}) {
    for (const KvBlockOrder order : {KvBlockOrder::in_order, KvBlockOrder::shuffled}) {
      KvShape& paged = shapes.emplace_back(shape);
      paged.layout = KvLayout::paged;
      paged.block = block;
      paged.block_order = order;
      paged.seed = 7;
    }
  }
  return shapes;
}

TEST(KvCache, AppendsAreDisjointAndTilesReadJustThemInEveryLayout) {
  for (const Bytes alignment : {1_B, 64_B}) {
    KvShape plain = small_shape();
    plain.head_alignment = alignment;
    for (const KvShape& shape : every_layout(plain)) {
      KvCache cache(shape, 4096, KvPayload::none);
      std::set<Address> written;
      for (const std::uint32_t tokens : {1U, 7U, 8U}) {
        for (const Record& record : append_everywhere(cache, tokens)) {
          ASSERT_TRUE(well_formed(record));
          ASSERT_TRUE(mark_bytes(std::get<Extent>(record), written));
        }
      }
      EXPECT_EQ(written.size(), static_cast<std::size_t>((bytes_per_token(shape) * 16).count()));
      EXPECT_GE(*written.begin(), 4096U);
      EXPECT_LT(*written.rbegin(), 4096U + static_cast<Address>(total_bytes(shape).count()));
      std::set<Address> read;
      for (std::uint32_t i = 0; i < 24; ++i) {  // in two tiles each, of which the second begins within a page
        const Tile tile{.layer = Layer(i / 8),
                        .side = static_cast<KvSide>(i / 4 % 2),
                        .head = Head(i / 2 % 2),
                        .first = i % 2 == 0 ? 0U : 6U,
                        .count = i % 2 == 0 ? 6U : 10U};
        Bytes bytes;
        for (const Record& record : reads_of(cache, tile)) {
          ASSERT_TRUE(well_formed(record));
          ASSERT_TRUE(mark_bytes(std::get<Extent>(record), read));
          bytes += total_bytes(std::get<Extent>(record));
        }
        EXPECT_EQ(bytes, head_bytes(shape, shape.spec.k) * std::int64_t{tile.count});
      }
      EXPECT_EQ(read, written);
    }
  }
}

TEST(KvCache, HasRoomForWholePages) {
  for (const KvShape& shape : every_layout(small_shape())) {
    const bool paged = shape.layout == config::KvLayout::paged;
    const std::int64_t cells = paged ? (16 + shape.block - 1) / shape.block * shape.block : 16;
    EXPECT_EQ(total_bytes(shape), Bytes(3 * 2 * 2 * 8 * 2 * cells));
  }
}

TEST(KvCache, HeadMajorTilesAreOneRunAndAppendsOneVectorPerHead) {
  KvShape shape = small_shape();
  shape.layout = config::KvLayout::head_major;
  KvCache cache(shape, 4096, KvPayload::none);
  const std::vector<Record> appended = append_everywhere(cache, 5);
  // [layer][K, V][2 heads][16 tokens][8 numbers x 2 B]: a head is 256 B
  EXPECT_EQ(std::get<Extent>(appended.at(1)), (Extent{.address = 4096 + 512,
                                                      .row_bytes = 80_B,
                                                      .rows = 2,
                                                      .stride = 256_B,
                                                      .access = Access::write,
                                                      .kind = Kind::kv}));
  const std::vector<Record> read =
      reads_of(cache, {.layer = Layer(1), .side = KvSide::v, .head = Head(1), .first = 2, .count = 3});
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(std::get<Extent>(read[0]), (Extent{.address = 4096 + 3 * 512 + 256 + 32,
                                               .row_bytes = 48_B,
                                               .rows = 1,
                                               .stride = 48_B,
                                               .kind = Kind::kv}));
}

TEST(KvCache, PagedTilesAreARunPerPage) {
  KvShape shape = small_shape();
  shape.layout = config::KvLayout::paged;
  shape.block = 4;
  KvCache cache(shape, 0, KvPayload::none);
  append_everywhere(cache, 16);
  // [layer][K, V][4 pages][2 heads][4 tokens][16 B]: a page is 128 B, a head's part of it 64 B
  const std::vector<Record> read = reads_of(cache, {.head = Head(1), .first = 3, .count = 6});
  ASSERT_EQ(read.size(), 3U);
  const std::vector<std::pair<Address, Bytes>> expected = {
      {64 + 48, 16_B}, {128 + 64, 64_B}, {256 + 64, 16_B}};
  for (std::size_t i = 0; i < 3; ++i) {
    const Extent& e = std::get<Extent>(read[i]);
    EXPECT_EQ(e.address, expected[i].first);
    EXPECT_EQ(e.row_bytes, expected[i].second);
    EXPECT_EQ(e.rows, 1U);
  }
}

/// Where the pages of a cache of 64 pages are, by the K of layer 0.
std::vector<Address> pages_of(config::KvBlockOrder order, std::uint64_t seed) {
  KvShape shape = small_shape();
  shape.capacity = 256;
  shape.layout = config::KvLayout::paged;
  shape.block = 4;
  shape.block_order = order;
  shape.seed = seed;
  KvCache cache(shape, 0, KvPayload::none);
  append_everywhere(cache, 256);
  std::vector<Address> pages;
  for (const Record& record : reads_of(cache, {.count = 256})) {
    pages.push_back(std::get<Extent>(record).address / 128);
  }
  return pages;
}

TEST(KvCache, ShuffledPagesAreAPermutationBySeed) {
  using config::KvBlockOrder;
  const std::vector<Address> in_order = pages_of(KvBlockOrder::in_order, 1);
  EXPECT_TRUE(std::is_sorted(in_order.begin(), in_order.end()));
  std::vector<Address> shuffled = pages_of(KvBlockOrder::shuffled, 1);
  EXPECT_EQ(shuffled, pages_of(KvBlockOrder::shuffled, 1));
  EXPECT_NE(shuffled, pages_of(KvBlockOrder::shuffled, 2));
  EXPECT_FALSE(std::is_sorted(shuffled.begin(), shuffled.end()));
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_EQ(shuffled, in_order);
}

TEST(KvCache, PayloadIsKeptInEveryLayout) {
  Rng rng(5);
  std::vector<float> k(16 * 16), v(16 * 16);
  std::generate(k.begin(), k.end(), [&] { return rng.real(); });
  std::generate(v.begin(), v.end(), [&] { return rng.real(); });
  for (const KvShape& shape : every_layout(small_shape())) {
    KvCache cache(shape, 0, KvPayload::numbers);
    const std::span<const float> all_k(k), all_v(v);
    append_everywhere(cache, 7, all_k.first(7 * 16), all_v.first(7 * 16));
    append_everywhere(cache, 9, all_k.subspan(7 * 16), all_v.subspan(7 * 16));
    for (std::uint32_t i = 0; i < 3 * 16 * 2 * 8; ++i) {
      const Layer layer(i / 256);
      const std::uint32_t token = i / 16 % 16, head = i / 8 % 2, at = i % 256;
      ASSERT_EQ(values(cache, {.layer = layer, .side = KvSide::k, .head = Head(head)}, token)[i % 8],
                to_float(to_half(k[at])));
      ASSERT_EQ(values(cache, {.layer = layer, .side = KvSide::v, .head = Head(head)}, token)[i % 8],
                to_float(to_half(v[at])));
    }
  }
}

TEST(KvCache, PayloadIsWhatWasAppendedRoundedToHalf) {
  KvCache cache(small_shape(), 0, KvPayload::numbers);
  Rng rng(3);
  std::vector<float> k(5 * 16), v(5 * 16);
  std::generate(k.begin(), k.end(), [&] { return rng.real(); });
  std::generate(v.begin(), v.end(), [&] { return rng.real(); });
  append_everywhere(cache, 3, std::vector<float>(3 * 16), std::vector<float>(3 * 16));
  append_everywhere(cache, 5, k, v);
  for (std::uint32_t i = 0; i < 3 * 5 * 2 * 8; ++i) {
    const Layer layer(i / 80);
    const std::uint32_t token = i / 16 % 5, head = i / 8 % 2, at = i % 80;
    ASSERT_EQ(values(cache, {.layer = layer, .side = KvSide::k, .head = Head(head)}, 3 + token)[i % 8],
              to_float(to_half(k[at])));
    ASSERT_EQ(values(cache, {.layer = layer, .side = KvSide::v, .head = Head(head)}, 3 + token)[i % 8],
              to_float(to_half(v[at])));
  }
}

TEST(KvCache, HalvesAreSeenInPlaceWhereTheyLieAtEqualDistances) {
  Rng rng(12);
  for (const config::KvLayout layout :
       {config::KvLayout::token_major, config::KvLayout::head_major, config::KvLayout::paged}) {
    KvShape shape = small_shape();
    shape.layout = layout;
    shape.block = 4;
    shape.head_alignment = 64_B;
    KvCache cache(shape, 0, KvPayload::numbers);
    std::vector<float> numbers(16 * 2 * 8);
    std::generate(numbers.begin(), numbers.end(), [&] { return rng.real(); });
    std::vector<Record> ignored;
    VectorSink sink(ignored);
    cache.apply(std::get<KvPlan>(cache.plan(16)));
    cache.append({.layer = Layer(2), .tokens = 16, .k = numbers, .v = numbers}, sink);
    const KvPool& pool = cache.pool(KvPoolKind::main);
    for (std::uint32_t first = 0; first < 16; ++first) {
      for (std::uint32_t count = 1; first + count <= 16; ++count) {
        const KvPlace place{.layer = Layer(2), .side = KvSide::v, .head = Head(1)};
        const auto seen = pool.in_place(place, {.first = first, .count = count});
        const bool one_run = layout != config::KvLayout::paged || first / 4 == (first + count - 1) / 4;
        ASSERT_EQ(seen.has_value(), one_run);
        std::vector<float> loaded(count * 8), widened;
        pool.load(place, {.first = first, .count = count}, loaded);
        for (std::uint32_t i = 0; seen && i < count; ++i) {
          std::vector<float> row(8);
          simd::widen({seen->first + 2 * i * seen->stride, 16}, row);
          widened.insert(widened.end(), row.begin(), row.end());
        }
        ASSERT_TRUE(!seen || (seen->rows == count && seen->columns == 8 && widened == loaded));
      }
    }
  }
  KvShape wider = small_shape();
  wider.spec = config::parse_kv_spec("bf16");
  EXPECT_FALSE(KvCache(wider, 0, KvPayload::numbers).pool(KvPoolKind::main).in_place({}, {.count = 1}));
}

TEST(KvCache, EmitsTheSameWithAndWithoutPayload) {
  Rng rng(4);
  for (int round = 0; round < 50; ++round) {
    KvShape shape{.layers = rng.between(1, 4),
                  .kv_heads = rng.between(1, 4),
                  .head_dim = rng.between(1, 40),
                  .capacity = 64,
                  .head_alignment = rng.below(2) == 0 ? 1_B : 64_B};
    KvCache with(shape, 128, KvPayload::numbers), without(shape, 128, KvPayload::none);
    EXPECT_TRUE(with.has_payload());
    EXPECT_FALSE(without.has_payload());
    while (with.depth() < 64) {
      const auto tokens = static_cast<std::uint32_t>(1 + rng.below(64 - with.depth()));
      const std::vector<float> numbers(static_cast<std::size_t>(tokens * shape.kv_heads * shape.head_dim),
                                       0.5F);
      ASSERT_EQ(append_everywhere(with, tokens, numbers, numbers), append_everywhere(without, tokens));
      const Tile tile{
          .head = Head(static_cast<std::uint32_t>(rng.below(static_cast<std::uint64_t>(shape.kv_heads)))),
          .count = with.depth()};
      ASSERT_EQ(reads_of(with, tile), reads_of(without, tile));
    }
  }
}

TEST(KvCache, MissingOrSurplusNumbersAreABug) {
  KvCache cache(small_shape(), 0, KvPayload::numbers);
  const std::vector<float> short_by_one(15);
  EXPECT_THROW(append_everywhere(cache, 1, short_by_one, short_by_one), InternalError);
}

}  // namespace
}  // namespace kvsim::trace
