// SPDX-License-Identifier: Apache-2.0
// What is written is what is read, byte for byte the same each time.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/error.h"
#include "traces/codec/codec_testing.h"
#include "traces/codec/reader.h"
#include "traces/codec/writer.h"
#include "traces/record/random_records.h"

namespace kvsim::trace {
namespace {

using ::testing::ElementsAre;

std::vector<Record> random_records(std::uint64_t seed, std::size_t count) {
  Rng rng(seed);
  std::vector<Record> records;
  while (records.size() < count) {
    records.push_back(random_record(rng));
  }
  return records;
}

class Codec : public TemporaryFolder {};

TEST_F(Codec, ReadsBackRandomRecordsOfAnyMagnitude) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    const auto records = random_records(seed, 1 + rng.below(300));
    write_trace(file(), records);
    ASSERT_EQ(read_trace(file()), records) << "seed " << seed;
  }
}

TEST_F(Codec, ReadsBackExactlyFullAndOverfullBlocks) {
  for (const std::size_t count :
       {std::size_t{1}, kBlockRecords - 1, kBlockRecords, kBlockRecords + 1, 3 * kBlockRecords}) {
    const auto records = random_records(count, count);
    write_trace(file(), records);
    ASSERT_EQ(read_trace(file()), records) << count;
  }
}

TEST_F(Codec, HandsOutNoMoreThanABlockAtATime) {
  write_trace(file(), random_records(7, 2 * kBlockRecords + 5));
  TraceReader reader(file());
  std::vector<std::size_t> sizes;
  for (std::vector<Record> batch; reader.next(batch);) {
    sizes.push_back(batch.size());
  }
  EXPECT_THAT(sizes, ElementsAre(kBlockRecords, kBlockRecords, 5));
}

TEST_F(Codec, ExtremesKeepTheirValue) {
  constexpr Address kTop = ~Address{0};
  constexpr Bytes kLarge = Bytes(std::int64_t{1} << 62);
  const std::vector<Record> records = {
      Extent{.address = kTop, .row_bytes = Bytes(1), .stride = kLarge},
      Extent{.address = 0, .row_bytes = kLarge, .stride = kLarge},
      Extent{.address = kTop - (Address{1} << 62) + 1, .row_bytes = kLarge, .stride = kLarge},
      Extent{.row_bytes = Bytes(1), .rows = 0xffffffff, .stride = Bytes(1LL << 31)},
      Compute{.operations = ~std::uint64_t{0}},
      Compute{.operations = 0},
      Mark{.tokens = 0xffffffff, .depth = 0xffffffff},
      Mark{},
  };
  write_trace(file(), records);
  EXPECT_EQ(read_trace(file()), records);
}

TEST_F(Codec, AnEmptyTraceHasAHeaderAndNoRecords) {
  write_trace(file(), {});
  EXPECT_TRUE(read_trace(file()).empty());
}

TEST_F(Codec, ReadsBackItsHeader) {
  write_trace(file(), {});
  EXPECT_EQ(TraceReader(file()).header(), test_header());
}

TEST_F(Codec, StaysAtItsEnd) {
  write_trace(file(), random_records(1, 1));
  TraceReader reader(file());
  std::vector<Record> batch;
  EXPECT_TRUE(reader.next(batch));
  EXPECT_FALSE(reader.next(batch));
  EXPECT_FALSE(reader.next(batch));
  EXPECT_TRUE(batch.empty());
}

TEST_F(Codec, SameRecordsGiveTheSameBytes) {
  const auto records = random_records(3, 5000);
  write_trace(file("a.kvt"), records);
  write_trace(file("b.kvt"), records);
  EXPECT_EQ(content(file("a.kvt")), content(file("b.kvt")));
}

TEST_F(Codec, RegularStreamsTakeAFewBytesPerRecord) {
  std::vector<Record> records;
  for (std::uint64_t i = 0; i < 8 * kBlockRecords; ++i) {
    records.push_back(Extent{.address = i * 4096, .row_bytes = Bytes(4096), .stride = Bytes(4096)});
  }
  write_trace(file(), records);
  EXPECT_LT(std::filesystem::file_size(file()), records.size() / 10);
}

/// A file as the first version of the format wrote it.
constexpr std::string_view kVersionOneFile =
    "894b56540d0a1a0a010000003600000028b52ffd24294901000a05302e312e3012027b7d180d221a0a06612e79616d6c1210"
    "303132333435363738396162636465667c7f48797b00000028b52ffd246e7103000a06020410280103120580800180401a04"
    "8004800822038002022a03800e00320201023a01004204aab4de754a0101520280205a038080406201006a01017207776569"
    "676874737a0280208201038080408a010101920101029a010103a2010103aa010102b201028008ba0101020c046e04140000"
    "0028b52ffd2407390000c20104080610012f47e89c";

TEST_F(Codec, FilesOfVersionOneStayReadable) {
  std::string bytes;
  for (std::size_t i = 0; i < kVersionOneFile.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(kVersionOneFile.substr(i, 2)), nullptr, 16));
  }
  set_content(file(), bytes);
  const TraceHeader header{.kvsim_version = "0.1.0",
                           .configuration = "{}",
                           .seed = -7,
                           .inputs = {{.path = "a.yaml", .hash = "0123456789abcdef"}}};
  EXPECT_EQ(TraceReader(file()).header(), header);
  const std::vector<Record> records = {
      Alloc{.address = 4096,
            .bytes = Bytes(1 << 20),
            .kind = Kind::weights,
            .backing = Backing::file_mapped,
            .name = alloc_name("weights")},
      Mark{.what = Mark::What::operator_begin,
           .phase = Phase::decode,
           .op = Operator::q_proj,
           .layer = Layer(3),
           .tokens = 1,
           .depth = 512,
           .request = 2},
      Extent{.address = 8192,
             .row_bytes = Bytes(256),
             .rows = 128,
             .stride = Bytes(2048),
             .kind = Kind::kv,
             .stream = Stream(1)},
      Extent{.address = 4096,
             .row_bytes = Bytes(512),
             .stride = Bytes(512),
             .access = Access::write,
             .kind = Kind::scratch,
             .stream = Stream(2)},
      Compute{.operations = 123'456'789, .stream = Stream(1)},
      Free{.address = 4096, .bytes = Bytes(1 << 20)},
  };
  EXPECT_EQ(read_trace(file()), records);
}

}  // namespace
}  // namespace kvsim::trace
