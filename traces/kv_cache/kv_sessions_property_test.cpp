// SPDX-License-Identifier: Apache-2.0
// Random legal sequences against a naive model: sessions are lists of tokens, and a shadow memory knows
// nothing but the records.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "traces/kv_cache/kv_sessions.h"
#include "traces/kv_cache/shadow_memory.h"
#include "traces/record/random_records.h"
#include "traces/record/sinks.h"

namespace kvsim::trace {
namespace {

constexpr std::uint32_t kLayers = 2, kHeads = 2, kHeadDim = 4, kLimit = 64, kMemoryTokens = 160,
                        kSessions = 6;
constexpr Address kBase = 4096;

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  return Rng(a * 0x100000001b3ULL + b).next();
}

/// Where one number or byte of a token belongs.
struct Spot {
  std::uint32_t layer = 0;
  KvSide side = KvSide::k;
  std::uint32_t head = 0;
  std::uint32_t index = 0;
};

std::uint64_t content(std::uint64_t token, const Spot& spot) {
  return mixed(
      token, ((spot.layer * 2U + static_cast<unsigned>(spot.side)) * kHeads + spot.head) * 64U + spot.index);
}

struct Mix {
  KvGrowth growth = KvGrowth::paged;
  config::KvLayout layout = config::KvLayout::token_major;
  bool share = false;
  std::int64_t block = 8;
  std::int64_t alignment = 1;
  const char* spec = "f16";
};

/// Two caches, with and without payload, and the naive model.
class Trial {
 public:
  Trial(const Mix& mix, std::uint64_t seed)
      : mix_(mix),
        shadow_(kBase, kMemoryTokens * 64),
        rng_(seed),
        sessions_(config(mix, KvPayload::none)),
        payload_(config(mix, KvPayload::numbers)),
        tokens_(kSessions) {
    for (std::uint32_t i = 0; i < kSessions; ++i) {
      static_cast<void>(sessions_.open());
      static_cast<void>(payload_.open());
    }
  }

  void step() {
    switch (rng_.below(12)) {
      case 0:
        fork();
        break;
      case 1:
      case 2:
        keep();
        break;
      case 3:
        reset(SessionId(any_session()));
        break;
      default:
        batch();
    }
    check_books();
    const auto session = any_session();
    check_bytes(session);
    check_numbers(session);
  }

  void finish() {
    for (std::uint32_t i = 0; i < tokens_.size(); ++i) {
      reset(SessionId(i));
    }
    EXPECT_EQ(shadow_.live_bytes(), Bytes(0));
    EXPECT_EQ(sessions_.usage().occupied, Bytes(0));
    sessions_.audit();
  }

  [[nodiscard]] std::uint64_t refusals() const { return sessions_.counters().failures; }
  [[nodiscard]] Bytes copied() const { return sessions_.counters().copied; }
  [[nodiscard]] std::uint64_t shared() const { return shared_; }

 private:
  /// One token of a session, and what its K and V are: they follow from all that the session has seen.
  struct TokenModel {
    TokenId id = 0;
    std::uint64_t state = 0;
  };

  static KvSessionsConfig config(const Mix& mix, KvPayload payload) {
    return {.shape = {.layers = kLayers,
                      .kv_heads = kHeads,
                      .head_dim = kHeadDim,
                      .capacity = kLimit,
                      .spec = config::parse_kv_spec(mix.spec),
                      .head_alignment = Bytes(mix.alignment),
                      .layout = mix.layout,
                      .block = mix.block},
            .growth = mix.growth,
            .base = kBase,
            .memory = Bytes(kMemoryTokens * 64),
            .share_prefixes = mix.share,
            .payload = payload};
  }

  std::uint32_t any_session() { return static_cast<std::uint32_t>(rng_.below(tokens_.size())); }
  [[nodiscard]] std::uint32_t depth(std::uint32_t session) const {
    return static_cast<std::uint32_t>(tokens_[session].size());
  }

  /// What an action does to both caches goes into the shadow once, if it is the same.
  template <class Action>
  std::vector<Record> both(Action action) {
    std::vector<Record> bare, full;
    VectorSink bare_sink(bare), full_sink(full);
    action(sessions_, bare_sink);
    action(payload_, full_sink);
    EXPECT_EQ(bare, full);
    for (const Record& record : bare) {
      EXPECT_TRUE(well_formed(record));
    }
    return bare;
  }
  template <class Action>
  void both_settled(Action action) {
    for (const Record& record : both(action)) {
      shadow_.put(record);
    }
    EXPECT_TRUE(shadow_.settled());
  }

  void batch() {
    std::vector<std::vector<TokenId>> ids;
    std::vector<std::uint32_t> who;
    for (std::uint64_t i = 1 + rng_.below(3); i > 0; --i) {
      const std::uint32_t session = any_session();
      if (std::find(who.begin(), who.end(), session) == who.end()) {
        who.push_back(session);
        ids.push_back(random_ids(depth(session) == 0 ? 40 : 8));
      }
    }
    std::vector<KvDemand> demands;
    for (std::size_t i = 0; i < who.size(); ++i) {
      demands.push_back({.session = SessionId(who[i]), .tokens = static_cast<std::uint32_t>(ids[i].size())});
      demands.back().ids = mix_.share ? std::span<const TokenId>(ids[i]) : std::span<const TokenId>();
    }
    const auto answer = sessions_.plan(demands);
    ASSERT_EQ(answer, payload_.plan(demands));
    if (const auto* refusal = std::get_if<KvBatchRefusal>(&answer)) {
      check_refusal(*refusal, demands);
      return;
    }
    const auto& plan = std::get<KvBatchPlan>(answer);
    both_settled([&](KvSessions& sessions, AccessSink& sink) { sessions.apply(plan, sink); });
    ASSERT_EQ(shadow_.live_bytes(), plan.occupied);
    ASSERT_GE(sessions_.counters().peak, plan.peak);
    for (std::size_t i = 0; i < who.size(); ++i) {
      come_in(who[i], ids[i]);
    }
    for (const KvIntake& intake : plan.intakes) {
      shared_ += intake.shared;
      append(intake);
    }
  }

  /// Few different ones, and beginnings that are alike.
  std::vector<TokenId> random_ids(std::uint64_t most) {
    std::vector<TokenId> ids(1 + rng_.below(most));
    const std::uint64_t alike = rng_.below(most);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ids[i] = i < alike ? 7 : static_cast<TokenId>(rng_.below(2));
    }
    return ids;
  }

  /// Without sharing, all K and V are different.
  void come_in(std::uint32_t session, const std::vector<TokenId>& ids) {
    for (const TokenId id : ids) {
      auto& tokens = tokens_[session];
      const std::uint64_t before = tokens.empty() ? 0 : tokens.back().state;
      tokens.push_back({.id = id, .state = mixed(before, mix_.share ? id : rng_.next())});
    }
  }

  void check_refusal(const KvBatchRefusal& refusal, const std::vector<KvDemand>& demands) {
    sessions_.refuse(refusal);
    payload_.refuse(refusal);
    if (refusal.why == KvBatchRefusal::Why::length) {
      ASSERT_TRUE(std::any_of(demands.begin(), demands.end(), [&](const KvDemand& d) {
        return depth(d.session.value()) + d.tokens > kLimit;
      }));
    } else {
      ASSERT_GT(refusal.asked, refusal.largest_hole);
      if (demands.size() == 1) {                           // nothing of the batch has come before
        const Bytes rest((kMemoryTokens * 64) % whole());  // less than a block
        ASSERT_EQ(refusal.left, Bytes(kMemoryTokens * 64) - rest - shadow_.live_bytes());
        ASSERT_TRUE(mix_.growth == KvGrowth::paged || refusal.largest_hole == shadow_.largest_hole());
      }
    }
  }

  [[nodiscard]] std::vector<float> numbers(const KvIntake& intake, const Spot& spot,
                                           std::uint32_t from) const {
    std::vector<float> numbers;
    Spot at = spot;
    for (std::size_t token = from; token < intake.first.pos() + intake.tokens; ++token) {
      for (at.head = 0; at.head < kHeads; ++at.head) {
        for (at.index = 0; at.index < kHeadDim; ++at.index) {
          numbers.push_back(number(tokens_[intake.session.pos()][token].state, at));
        }
      }
    }
    return numbers;
  }
  static float number(std::uint64_t state, const Spot& spot) {
    return static_cast<float>(content(state, spot) % 2048);  // exact in half precision
  }

  void append(const KvIntake& intake) {
    const std::uint32_t from = intake.first.value() + intake.shared;
    for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
      const std::vector<float> k = numbers(intake, {.layer = layer, .side = KvSide::k}, from);
      const std::vector<float> v = numbers(intake, {.layer = layer, .side = KvSide::v}, from);
      KvAppend append{.layer = Layer(layer), .first = Token(from), .tokens = intake.tokens - intake.shared};
      const std::vector<Record> records = both([&](KvSessions& sessions, AccessSink& sink) {
        const bool full = sessions.config().payload == KvPayload::numbers;
        append.k = full ? std::span<const float>(k) : std::span<const float>();
        append.v = full ? std::span<const float>(v) : std::span<const float>();
        sessions.append(intake.session, append, sink);
      });
      write(records, intake.session.value(), layer, from);
    }
  }

  /// Fills what an append wrote: K of all runs, then V of all runs.
  void write(const std::vector<Record>& records, std::uint32_t session, std::uint32_t layer,
             std::uint32_t from) {
    for (std::size_t i = 0, token = from; i < records.size(); ++i) {
      token = i == records.size() / 2 ? from : token;
      const Extent& e = std::get<Extent>(records[i]);
      const KvSide side = i < records.size() / 2 ? KvSide::k : KvSide::v;
      const std::uint32_t size = head_size(side);
      const auto count = static_cast<std::uint32_t>(total_bytes(e).count() / (kHeads * size));
      std::uint32_t at = 0;
      shadow_.for_each_byte(e, [&](std::uint8_t& byte) {
        const std::uint32_t vector = at / size;
        const bool by_token = mix_.layout == config::KvLayout::token_major;
        const Spot spot{.layer = layer,
                        .side = side,
                        .head = by_token ? vector % kHeads : vector / count,
                        .index = at++ % size};
        const std::uint32_t which = by_token ? vector / kHeads : vector % count;
        byte = static_cast<std::uint8_t>(content(tokens_[session][token + which].state, spot));
      });
      token += count;
    }
  }

  /// What allocations are a multiple of.
  [[nodiscard]] std::int64_t whole() const {
    const KvShape& shape = sessions_.config().shape;
    return mix_.growth == KvGrowth::paged
               ? AddressAllocator::rounded(bytes_per_token(shape) * shape.block).count()
               : 64;
  }

  [[nodiscard]] std::uint32_t head_size(KvSide side) const {
    const KvShape& shape = sessions_.config().shape;
    return static_cast<std::uint32_t>(
        head_bytes(shape, side == KvSide::k ? shape.spec.k : shape.spec.v).count());
  }

  void check_bytes(std::uint32_t session) {
    const std::uint32_t first = static_cast<std::uint32_t>(rng_.below(depth(session) + 1));
    const TokenRange range{.first = first, .count = depth(session) - first};
    for (std::uint32_t i = 0; i < kLayers * 2 * kHeads && range.count > 0; ++i) {
      Spot spot{.layer = i / (2 * kHeads), .side = static_cast<KvSide>(i / kHeads % 2), .head = i % kHeads};
      const KvPlace place{.layer = Layer(spot.layer), .side = spot.side, .head = Head(spot.head)};
      std::uint32_t at = 0;
      bool equal = true;
      for (const Record& record : both([&](KvSessions&sessions, AccessSink&sink) {
             sessions.read(SessionId(session), place, range, sink);
           })) {
        shadow_.for_each_byte(std::get<Extent>(record), [&](std::uint8_t byte) {
          spot.index = at % head_size(spot.side);
          const std::uint64_t state = tokens_[session][first + at++ / head_size(spot.side)].state;
          equal &= byte == static_cast<std::uint8_t>(content(state, spot));
        });
      }
      ASSERT_TRUE(equal && at == range.count * head_size(spot.side));
    }
  }

  void check_numbers(std::uint32_t session) {
    Spot spot{.layer = static_cast<std::uint32_t>(rng_.below(kLayers)),
              .side = static_cast<KvSide>(rng_.below(2)),
              .head = static_cast<std::uint32_t>(rng_.below(kHeads))};
    std::vector<float> loaded(std::size_t{depth(session)} * kHeadDim);
    payload_.load(SessionId(session),
                  {.layer = Layer(spot.layer), .side = spot.side, .head = Head(spot.head)},
                  {.first = 0, .count = depth(session)}, loaded);
    for (std::size_t i = 0; i < loaded.size(); ++i) {
      spot.index = static_cast<std::uint32_t>(i % kHeadDim);
      ASSERT_EQ(loaded[i], number(tokens_[session][i / kHeadDim].state, spot));
    }
  }

  void fork() {
    if (mix_.growth != KvGrowth::paged || tokens_.size() >= 2 * kSessions) {
      return;
    }
    const std::uint32_t parent = any_session();
    ASSERT_EQ(sessions_.fork(SessionId(parent)), payload_.fork(SessionId(parent)));
    tokens_.push_back(tokens_[parent]);
  }

  void keep() {
    const std::uint32_t session = any_session();
    if (depth(session) == 0) {
      return;
    }
    const std::uint32_t unit = mix_.growth == KvGrowth::paged ? static_cast<std::uint32_t>(mix_.block) : 1;
    const auto first = rng_.below(2) == 0
                           ? 0U
                           : static_cast<std::uint32_t>(rng_.below((depth(session) - 1) / unit + 1)) * unit;
    const TokenRange kept{.first = first,
                          .count = 1 + static_cast<std::uint32_t>(rng_.below(depth(session) - first))};
    both_settled(
        [&](KvSessions& sessions, AccessSink& sink) { sessions.keep(SessionId(session), kept, sink); });
    auto& tokens = tokens_[session];
    tokens.resize(first + kept.count);
    tokens.erase(tokens.begin(), tokens.begin() + first);
  }

  void reset(SessionId session) {
    both_settled([&](KvSessions& sessions, AccessSink& sink) { sessions.reset(session, sink); });
    tokens_[session.pos()].clear();
  }

  void check_books() {
    sessions_.audit();
    payload_.audit();
    const KvUsage usage = sessions_.usage();
    std::int64_t tokens = 0;
    for (std::uint32_t i = 0; i < tokens_.size(); ++i) {
      ASSERT_EQ(sessions_.depth(SessionId(i)), depth(i));
      tokens += depth(i);
    }
    KvShape bare = sessions_.config().shape;
    bare.head_alignment = Bytes(1);
    const Bytes token_bytes = bytes_per_token(bare);
    ASSERT_EQ(usage.stored + usage.shared, token_bytes * tokens);
    ASSERT_EQ(usage.occupied, shadow_.live_bytes());
    ASSERT_EQ(usage.padding, usage.occupied - usage.stored);
    ASSERT_GE(usage.padding, Bytes(0));
    ASSERT_LE(sessions_.counters().peak, Bytes(kMemoryTokens * 64));
  }

  Mix mix_;
  ShadowMemory shadow_;
  Rng rng_;
  KvSessions sessions_, payload_;
  std::vector<std::vector<TokenModel>> tokens_;
  std::uint64_t shared_ = 0;
};

class RandomSessions : public testing::TestWithParam<Mix> {};

TEST_P(RandomSessions, AreWhatANaiveModelSays) {
  Trial run(GetParam(), 1);
  for (int step = 0; step < 10'000; ++step) {
    run.step();
    ASSERT_FALSE(HasFailure()) << "step " << step;
  }
  run.finish();
  EXPECT_GT(run.refusals(), 0U);
  EXPECT_GT(run.copied(), Bytes(0));
  EXPECT_EQ(run.shared() > 0, GetParam().share);
}

constexpr auto kTokenMajor = config::KvLayout::token_major;
constexpr auto kHeadMajor = config::KvLayout::head_major;

INSTANTIATE_TEST_SUITE_P(
    EveryGrowth, RandomSessions,
    testing::Values(Mix{.growth = KvGrowth::preallocate, .layout = kTokenMajor},
                    Mix{.growth = KvGrowth::doubled, .layout = kHeadMajor},
                    Mix{.growth = KvGrowth::concatenate, .layout = kTokenMajor},
                    Mix{.growth = KvGrowth::concatenate, .layout = kHeadMajor, .alignment = 16},
                    Mix{.growth = KvGrowth::doubled, .layout = kTokenMajor, .spec = "k=f32,v=f16"},
                    Mix{.growth = KvGrowth::paged, .layout = kHeadMajor, .block = 4, .spec = "k=f16,v=f32"},
                    Mix{.growth = KvGrowth::paged, .layout = kTokenMajor},
                    Mix{.growth = KvGrowth::paged, .layout = config::KvLayout::paged, .block = 5},
                    Mix{.growth = KvGrowth::paged, .layout = kHeadMajor, .share = true, .block = 4},
                    Mix{.growth = KvGrowth::paged, .layout = kTokenMajor, .share = true, .block = 8}));

}  // namespace
}  // namespace kvsim::trace
