// SPDX-License-Identifier: Apache-2.0
#include "traces/import/trace_info.h"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "traces/import/test_files.h"

namespace kvsim::trace {
namespace {

using ::testing::HasSubstr;
using testing::read_text;
using testing::TemporaryFile;
using What = LackeyEvent::What;

TraceInfo info_of(const std::vector<LackeyEvent>& events, const RegionMap& regions) {
  TraceInfoCollector collector(regions);
  collector.take(events);
  return collector.finish();
}

RegionMap regions(const std::string& lines) {
  return RegionMap::load(TemporaryFile("kind,start,end\n" + lines).path());
}

TEST(TraceInfo, CountsAHandMadeTrace) {
  const RegionMap map = regions("W,0x1000,0x1080\nKV,0x10c0,0x1100\n");
  const TraceInfo info = info_of(read_text(" L 1000,8\n"
                                           "# token 5 start\n"
                                           "I  400000,4\n"
                                           " L 1000,8\n"  // twice, the second in part
                                           " L 1004,8\n"
                                           " S 10c0,64\n"
                                           " M 10c0,4\n"
                                           " L 107c,72\n"  // the end of W, a line between, the start of KV
                                           "# token 5 end\n"),
                                 map);
  ASSERT_EQ(info.tokens.size(), 1U);
  const ScopeInfo& token = info.tokens[0];
  EXPECT_EQ(token.token, 5U);
  EXPECT_EQ(token.instructions, 1U);
  EXPECT_EQ(token.accesses(), 5U);
  EXPECT_EQ(token.loads, 3U);
  EXPECT_EQ(token.stores, 1U);
  EXPECT_EQ(token.modifies, 1U);
  EXPECT_EQ(token.distinct_lines, 4U);
  EXPECT_EQ(token.kinds[0], (KindInfo{.reads = 3,
                                      .read_bytes = 20,
                                      .distinct_read_bytes = 16,
                                      .distinct_read_lines = 2,
                                      .distinct_lines = 2,
                                      .begin = 0x1000,
                                      .end = 0x1080}));
  EXPECT_EQ(token.kinds[1], (KindInfo{.reads = 2,
                                      .writes = 2,
                                      .read_bytes = 8,
                                      .write_bytes = 68,
                                      .distinct_read_bytes = 4,
                                      .distinct_write_bytes = 64,
                                      .distinct_read_lines = 1,
                                      .distinct_lines = 1,
                                      .begin = 0x10c0,
                                      .end = 0x1100}));
  EXPECT_EQ(token.kinds[2], (KindInfo{.reads = 1,
                                      .read_bytes = 64,
                                      .distinct_read_bytes = 64,
                                      .distinct_read_lines = 1,
                                      .distinct_lines = 1,
                                      .begin = 0x1080,
                                      .end = 0x10c0}));
  EXPECT_EQ(info.file.accesses(), 6U);  // with the one before the token
  EXPECT_EQ(info.file.kinds[0].read_bytes, 28U);
  EXPECT_EQ(info.file.kinds[0].distinct_read_bytes, 16U);
}

TEST(TraceInfo, ALineInTwoPiecesOfAKindIsOne) {
  const RegionMap map = regions("W,0,8\nKV,8,16\nW,16,64\n");
  const TraceInfo info = info_of(read_text(" L 0,32\n"), map);
  EXPECT_EQ(info.file.kinds[0].reads, 1U);
  EXPECT_EQ(info.file.kinds[0].read_bytes, 24U);
  EXPECT_EQ(info.file.kinds[0].distinct_lines, 1U);
  EXPECT_EQ(info.file.kinds[0].distinct_read_lines, 1U);
  EXPECT_EQ(info.file.kinds[1].read_bytes, 8U);
}

TEST(TraceInfo, ReachesTheEndOfTheAddressSpace) {
  const RegionMap map = regions("W,0xfffffffffffff000,0xffffffffffffffff\n");
  const TraceInfo info = info_of(read_text(" L fffffffffffff000,4095\n S ffffffffffffefff,2\n"), map);
  EXPECT_EQ(info.file.kinds[0].distinct_read_bytes, 4095U);
  EXPECT_EQ(info.file.kinds[0].distinct_lines, 64U);
  EXPECT_EQ(info.file.kinds[0].end, ~Address{0});
  EXPECT_EQ(info.file.kinds[1].distinct_write_bytes, 1U);
}

/// The same by sets of single bytes.
class NaiveInfo {
 public:
  explicit NaiveInfo(const RegionMap& regions) : regions_(regions) {}

  void take(const LackeyEvent& e) {
    std::set<KindIndex> kinds;
    for (Address at = e.value; at < e.value + e.bytes; ++at) {
      const KindIndex kind = regions_.piece_at(at).kind;
      if (reads(e.what)) {
        ++read_bytes_[kind];
        read_[kind].insert(at);
      }
      if (writes(e.what)) {
        ++write_bytes_[kind];
        written_[kind].insert(at);
      }
      kinds.insert(kind);
      lines_.insert(at / 64);
    }
    for (const KindIndex kind : kinds) {
      reads_[kind] += reads(e.what) ? 1 : 0;
      writes_[kind] += writes(e.what) ? 1 : 0;
    }
    loads_ += e.what == What::load ? 1 : 0;
    stores_ += e.what == What::store ? 1 : 0;
    modifies_ += e.what == What::modify ? 1 : 0;
  }

  ScopeInfo info(std::optional<std::uint64_t> token) {
    ScopeInfo info{.token = token,
                   .loads = loads_,
                   .stores = stores_,
                   .modifies = modifies_,
                   .distinct_lines = lines_.size()};
    for (std::size_t k = 0; k < regions_.kinds().size(); ++k) {
      const auto kind = static_cast<KindIndex>(k);
      std::set<Address> all = read_[kind];
      all.insert(written_[kind].begin(), written_[kind].end());
      info.kinds.push_back({.reads = reads_[kind],
                            .writes = writes_[kind],
                            .read_bytes = read_bytes_[kind],
                            .write_bytes = write_bytes_[kind],
                            .distinct_read_bytes = read_[kind].size(),
                            .distinct_write_bytes = written_[kind].size(),
                            .distinct_read_lines = lines(read_[kind]),
                            .distinct_lines = lines(all),
                            .begin = all.empty() ? 0 : *all.begin(),
                            .end = all.empty() ? 0 : *all.rbegin() + 1});
    }
    return info;
  }

 private:
  static std::uint64_t lines(const std::set<Address>& bytes) {
    std::set<Address> lines;
    for (const Address at : bytes) {
      lines.insert(at / 64);
    }
    return lines.size();
  }

  const RegionMap& regions_;
  std::map<KindIndex, std::set<Address>> read_;
  std::map<KindIndex, std::set<Address>> written_;
  std::map<KindIndex, std::uint64_t> read_bytes_;
  std::map<KindIndex, std::uint64_t> write_bytes_;
  std::map<KindIndex, std::uint64_t> reads_;
  std::map<KindIndex, std::uint64_t> writes_;
  std::set<Address> lines_;
  std::uint64_t loads_ = 0;
  std::uint64_t stores_ = 0;
  std::uint64_t modifies_ = 0;
};

TEST(TraceInfo, IsTheSameAsSetsOfBytes) {
  const RegionMap map = regions(
      "W,0x100,0x1900\nKV,0x1900,0x1903\nW,0x1910,0x1944\nC,0x2000,0x3000\nKV,0x3000,0x5001\nC,0x9ffe,"
      "0xa003\n");
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    Random random(seed);
    std::vector<LackeyEvent> events;
    NaiveInfo file(map);
    std::vector<ScopeInfo> tokens;
    for (std::uint64_t scope = 0; scope < 4; ++scope) {
      const bool token = random.below(3) != 0;
      NaiveInfo naive(map);
      if (token) {
        events.push_back({.value = scope, .bytes = 0, .what = What::token_start});
      }
      for (int i = 0; i < 300; ++i) {
        const std::uint64_t size =
            random.below(8) == 0 ? 1 + random.below(kMostAccessBytes) : 1 + random.below(64);
        events.push_back({.value = random.below(0xb000),
                          .bytes = static_cast<std::uint32_t>(size),
                          .what = static_cast<What>(1 + random.below(3))});
        naive.take(events.back());
        file.take(events.back());
      }
      if (token) {
        events.push_back({.value = scope, .bytes = 0, .what = What::token_end});
        tokens.push_back(naive.info(scope));
      }
    }
    const TraceInfo info = info_of(events, map);
    ASSERT_EQ(info.tokens, tokens) << "seed " << seed;
    ASSERT_EQ(info.file, file.info(std::nullopt)) << "seed " << seed;
  }
}

TEST(TraceInfo, PagesHaveALimit) {
  const RegionMap map;
  TraceInfoCollector collector(map, 3);
  collector.take(read_text(" L 0,1\n L 1000,1\n L 5fff,1\n S 1fff,1\n"));
  const auto fourth = [&] { collector.take(read_text(" L 1fff,2\n")); };
  EXPECT_THAT(message_of(fourth), HasSubstr("touches more than 3 pages of 4 KiB"));
}

TEST(TraceInfo, TokensHaveALimit) {
  std::vector<LackeyEvent> events;
  for (std::uint64_t i = 0; i <= 65'536; ++i) {
    events.push_back({.value = i, .bytes = 0, .what = What::token_start});
    events.push_back({.value = i, .bytes = 0, .what = What::token_end});
  }
  const RegionMap map;
  EXPECT_THAT(message_of([&] { static_cast<void>(info_of(events, map)); }),
              HasSubstr("more than 65536 tokens"));
}

}  // namespace
}  // namespace kvsim::trace
