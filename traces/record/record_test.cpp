// SPDX-License-Identifier: Apache-2.0
#include "traces/record/record.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/error.h"
#include "traces/record/random_records.h"
#include "traces/record/sinks.h"

namespace kvsim::trace {
namespace {

constexpr Address kLastByte = std::numeric_limits<Address>::max();
constexpr std::int64_t kHuge = std::int64_t{1} << 62;

Extent extent() {
  return {.address = 64, .row_bytes = Bytes(32), .rows = 2, .stride = Bytes(64)};
}

template <class R, class Change>
bool fits(R record, Change change) {
  change(record);
  return well_formed(Record(record));
}

TEST(WellFormed, AcceptsWhatIsAtTheLimit) {
  EXPECT_TRUE(fits(extent(), [](Extent&) {}));
  EXPECT_TRUE(fits(extent(), [](Extent& e) { e.stride = e.row_bytes; }));
  EXPECT_TRUE(fits(extent(), [](Extent& e) { e.address = kLastByte - 95; }));
  EXPECT_TRUE(fits(extent(), [](Extent& e) { e.stream = Stream(kMaxStreams - 1); }));
  EXPECT_TRUE(fits(Alloc{.address = kLastByte, .bytes = Bytes(1)}, [](Alloc&) {}));
  EXPECT_TRUE(fits(Alloc{.bytes = Bytes(1)}, [](Alloc& a) { a.name.fill('x'), a.name.back() = '\0'; }));
}

TEST(WellFormed, RefusesExtentsThatOverflow) {
  EXPECT_FALSE(fits(extent(), [](Extent& e) { e.address = kLastByte - 94; }));
  EXPECT_FALSE(fits(extent(), [](Extent& e) { e.row_bytes = e.stride = Bytes(kHuge); }));
  EXPECT_FALSE(fits(extent(), [](Extent& e) { e.rows = 0xffffffff, e.stride = Bytes(kHuge); }));
}

TEST(WellFormed, RefusesSizesThatMakeNoSense) {
  EXPECT_FALSE(fits(extent(), [](Extent& e) { e.rows = 0; }));
  EXPECT_FALSE(fits(extent(), [](Extent& e) { e.row_bytes = Bytes(0); }));
  EXPECT_FALSE(fits(extent(), [](Extent& e) { e.row_bytes = Bytes(-1); }));
  EXPECT_FALSE(fits(extent(), [](Extent& e) { e.stride = Bytes(31); }));
  EXPECT_FALSE(fits(Alloc{}, [](Alloc&) {}));
  EXPECT_FALSE(fits(Free{.bytes = Bytes(-1)}, [](Free&) {}));
  EXPECT_FALSE(fits(Free{.address = 2, .bytes = Bytes(1)},
                    [](Free& f) { f.address = kLastByte, f.bytes = Bytes(2); }));
}

TEST(WellFormed, RefusesWhatIsNoEnumeratorOrStream) {
  EXPECT_FALSE(fits(extent(), [](Extent& e) { e.kind = static_cast<Kind>(kKinds); }));
  EXPECT_FALSE(fits(extent(), [](Extent& e) { e.access = static_cast<Access>(2); }));
  EXPECT_FALSE(fits(extent(), [](Extent& e) { e.stream = Stream(kMaxStreams); }));
  EXPECT_FALSE(fits(Compute{}, [](Compute& c) { c.stream = Stream(kMaxStreams); }));
  EXPECT_FALSE(fits(Compute{}, [](Compute& c) { c.unit = static_cast<Compute::Unit>(1); }));
  EXPECT_TRUE(fits(Mark{}, [](Mark& m) { m.op = static_cast<Operator>(kOperators - 1); }));
  EXPECT_FALSE(fits(Mark{}, [](Mark& m) { m.op = static_cast<Operator>(kOperators); }));
  EXPECT_FALSE(fits(Mark{}, [](Mark& m) { m.phase = static_cast<Phase>(4); }));
  EXPECT_FALSE(fits(Mark{}, [](Mark& m) { m.what = static_cast<Mark::What>(3); }));
  EXPECT_FALSE(fits(Alloc{.bytes = Bytes(1)}, [](Alloc& a) { a.backing = static_cast<Backing>(3); }));
}

TEST(WellFormed, RefusesNamesThatATerminalOrReaderCouldTripOver) {
  const Alloc named{.bytes = Bytes(1), .name = alloc_name("KV cache")};
  EXPECT_TRUE(well_formed(Record(named)));
  EXPECT_FALSE(fits(named, [](Alloc& a) { a.name[0] = '\x1b'; }));
  EXPECT_FALSE(fits(named, [](Alloc& a) { a.name[20] = 'x'; }));
  EXPECT_FALSE(fits(named, [](Alloc& a) { a.name.fill('x'); }));
}

TEST(Names, AreWhatTheyWereMadeFrom) {
  EXPECT_EQ(to_string(alloc_name("KV cache")), "KV cache");
  EXPECT_EQ(to_string(alloc_name("")), "");
  EXPECT_THROW(static_cast<void>(alloc_name(std::string(32, 'x'))), InternalError);
  EXPECT_EQ(to_string(Operator::none), "none");
  EXPECT_EQ(to_string(Operator::attn_output), "attn_output");
  EXPECT_EQ(to_string(Operator::logits), "logits");
  EXPECT_EQ(to_string(Operator::sampling), "sampling");
  EXPECT_EQ(to_string(Kind::kv), "kv");
  EXPECT_EQ(to_string(Phase::decode), "decode");
}

/// Hands out given batches.
class Batches final : public AccessSource {
 public:
  explicit Batches(std::vector<std::vector<Record>> batches) : batches_(std::move(batches)) {}
  bool next(std::vector<Record>& batch) override {
    batch = at_ < batches_.size() ? batches_[at_] : std::vector<Record>{};
    return at_++ < batches_.size();
  }

 private:
  std::vector<std::vector<Record>> batches_;
  std::size_t at_ = 0;
};

TEST(Tee, PassesOnAndKeepsEveryRecord) {
  Rng rng(1);
  std::vector<std::vector<Record>> batches(5);
  std::vector<Record> all;
  for (auto& batch : batches) {
    for (std::uint64_t i = 0; i <= rng.below(10); ++i) {
      batch.push_back(random_record(rng));
      all.push_back(batch.back());
    }
  }
  Batches source(batches);
  std::vector<Record> kept;
  VectorSink sink(kept);
  Tee tee(source, sink);
  std::vector<Record> passed;
  for (std::vector<Record> batch; tee.next(batch);) {
    passed.insert(passed.end(), batch.begin(), batch.end());
  }
  EXPECT_EQ(passed, all);
  EXPECT_EQ(kept, all);
}

}  // namespace
}  // namespace kvsim::trace
