// SPDX-License-Identifier: Apache-2.0
// Files that are damaged or made to harm, and places that cannot be written to: a clear message, never a
// crash.
#include <csignal>
#include <functional>
#include <string>
#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include "configs/error/error.h"
#include "traces/codec/codec_testing.h"
#include "traces/codec/frame.h"
#include "traces/codec/trace.pb.h"
#include "traces/record/random_records.h"

namespace kvsim::trace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<Record> some_records() {
  Rng rng(11);
  std::vector<Record> records;
  for (int i = 0; i < 25; ++i) {
    records.push_back(random_record(rng));
  }
  return records;
}

/// What the UserError says that `action` throws; a test failure if it does not.
std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no UserError";
  return {};
}

class DamagedTrace : public TemporaryFolder {
 protected:
  [[nodiscard]] std::string message_for(std::string_view bytes) const {
    set_content(file(), bytes);
    return message_of([this] { static_cast<void>(read_trace(file())); });
  }

  /// A file with the given frames after the magic number and version.
  [[nodiscard]] static std::string file_of(const std::vector<std::string>& frames,
                                           std::uint32_t version = 1) {
    const auto bytes = to_bytes(version);
    std::string result = std::string(kMagic) + std::string(bytes.data(), bytes.size());
    for (const std::string& frame : frames) {
      result += frame;
    }
    return result;
  }
  template <class Message>
  [[nodiscard]] static std::string frame_of(const Message& message) {
    Compressor compressor;
    return std::string(compressor.frame(message.SerializeAsString()));
  }
  [[nodiscard]] static std::string framed(std::string_view zstd) {
    const auto length = to_bytes(static_cast<std::uint32_t>(zstd.size()));
    return std::string(length.data(), length.size()) + std::string(zstd);
  }
  /// What reading says about a file whose only block is `block`.
  [[nodiscard]] std::string message_for_block(const pb::Block& block) const {
    return message_for(file_of({frame_of(pb::Header{}), frame_of(block)}));
  }
};

TEST_F(DamagedTrace, EveryTruncationIsSeen) {
  write_trace(file(), some_records());
  const std::string whole = content(file());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::string message = message_for(whole.substr(0, length));
    ASSERT_THAT(message, AllOf(HasSubstr(file().string()), HasSubstr("byte "))) << length;
  }
}

TEST_F(DamagedTrace, EveryChangedByteIsSeenOrHarmless) {
  // Harmless: zstd's format has bits that decoders ignore. Its checksum covers what is decoded, so the
  // records hold.
  const auto records = some_records();
  write_trace(file(), records);
  const std::string whole = content(file());
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int flip : {0x01, 0x10, 0xff}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      set_content(file(), damaged);
      try {
        ASSERT_EQ(read_trace(file()), records) << at << " ^ " << flip;
        ASSERT_EQ(TraceReader(file()).header(), test_header());
      } catch (const UserError& error) {
        ASSERT_THAT(error.what(), HasSubstr("byte ")) << at << " ^ " << flip;
      }
    }
  }
}

TEST_F(DamagedTrace, RandomBytesAfterTheMagicNumberAreRefused) {
  Rng rng(5);
  for (int i = 0; i < 500; ++i) {
    std::string bytes = file_of({});
    for (std::uint64_t n = rng.below(200); n > 0; --n) {
      bytes += static_cast<char>(rng.next());
    }
    ASSERT_THAT(message_for(bytes), HasSubstr("byte "));
  }
}

TEST_F(DamagedTrace, WhatIsNoTraceIsNamedSo) {
  EXPECT_THAT(message_for(""), HasSubstr("is not a kvsim trace"));
  EXPECT_THAT(message_for("device: rk3588\n"),
              AllOf(HasSubstr("is not a kvsim trace"), HasSubstr("--record")));
  EXPECT_THAT(message_for(std::string(100, '\0')), HasSubstr("is not a kvsim trace"));
}

TEST_F(DamagedTrace, NewerVersionsAreNamed) {
  EXPECT_THAT(message_for(file_of({}, 2)), AllOf(HasSubstr("format version 2"), HasSubstr("newer kvsim")));
  EXPECT_THAT(message_for(file_of({}, 0)), HasSubstr("no format version 0"));
}

TEST_F(DamagedTrace, MissingFilesAndFoldersAreNamed) {
  const auto missing = file("missing.kvt");
  EXPECT_THAT(message_of([&] { TraceReader reader(missing); }),
              AllOf(HasSubstr(missing.string()), HasSubstr("No such file")));
  EXPECT_THAT(message_of([&] { TraceReader reader(file(".")); }), HasSubstr("is a folder"));
}

TEST_F(DamagedTrace, LyingLengthsAreRefusedBeforeMemoryIsTaken) {
  EXPECT_THAT(message_for(file_of({std::string("\xff\xff\xff\x7f", 4)})),
              AllOf(HasSubstr("byte 12"), HasSubstr("a block of 2147483647 bytes")));
  EXPECT_THAT(message_for(file_of({std::string(4, '\0')})), HasSubstr("a block of 0 bytes"));
  EXPECT_THAT(message_for(file_of({std::string("\x10\0\0\0", 4)})), HasSubstr("ends within a block"));
}

TEST_F(DamagedTrace, BombsAreRefusedBeforeTheyGoOff) {
  const std::string large(std::size_t{64} << 20U, '\0');
  std::string bomb(ZSTD_compressBound(large.size()), '\0');
  bomb.resize(ZSTD_compress(bomb.data(), bomb.size(), large.data(), large.size(), 1));
  EXPECT_THAT(message_for(file_of({framed(bomb)})), HasSubstr("claims 67108864 bytes"));
  // Two honest small frames in one: the second does not fit into what the first announces.
  Compressor compressor;
  const std::string small(compressor.frame("abc").substr(kLengthBytes));
  EXPECT_THAT(message_for(file_of({framed(small + small)})), HasSubstr("does not decompress"));
}

TEST_F(DamagedTrace, ContentAfterTheEndIsRefused) {
  write_trace(file(), some_records());
  EXPECT_THAT(message_for(content(file()) + "x"), HasSubstr("goes on after its end"));
}

TEST_F(DamagedTrace, MissingBlocksAreSeen) {
  pb::Block last;
  last.mutable_totals()->set_records(1);
  last.mutable_totals()->set_blocks(1);
  EXPECT_THAT(message_for(file_of({frame_of(pb::Header{}), frame_of(last)})),
              HasSubstr("holds 0 records in 0 blocks, and its end says 1 in 1"));
  EXPECT_THAT(message_for(file_of({frame_of(pb::Header{})})), HasSubstr("ends before its last block"));
  EXPECT_THAT(message_for_block(pb::Block{}), HasSubstr("is empty"));
}

/// A block with one good extent, for tests to spoil.
pb::Block one_extent() {
  pb::Block block;
  block.add_tag(0);
  block.add_extent_address(0);
  block.add_extent_row_bytes(64);
  block.add_extent_rows(1);
  block.add_extent_gap(0);
  block.add_extent_stream(0);
  return block;
}

TEST_F(DamagedTrace, ColumnsOfDifferentLengthAreRefused) {
  EXPECT_THAT(message_for_block(one_extent()), HasSubstr("ends before its last block"))
      << "the block is good";
  pb::Block block = one_extent();
  block.add_extent_stream(0);
  EXPECT_THAT(message_for_block(block), HasSubstr("different lengths"));
  block = one_extent();
  block.clear_extent_gap();
  EXPECT_THAT(message_for_block(block), HasSubstr("different lengths"));
  block = one_extent();
  block.add_mark_layer(3);
  EXPECT_THAT(message_for_block(block), HasSubstr("different lengths"));
  block = one_extent();
  block.add_tag(0);
  EXPECT_THAT(message_for_block(block), HasSubstr("record 1 of the block"));
  block = one_extent();
  block.clear_tag();
  EXPECT_THAT(message_for_block(block), HasSubstr("columns without a record"));
  block = one_extent();
  block.set_tag(0, 1);
  EXPECT_THAT(message_for_block(block), HasSubstr("record 0 of the block"));
}

TEST_F(DamagedTrace, BlocksOfTooManyRecordsAreRefused) {
  pb::Block block;
  for (std::size_t i = 0; i <= kBlockRecords; ++i) {
    block.add_tag(1);
  }
  EXPECT_THAT(message_for_block(block), HasSubstr("more records than a block may have"));
}

TEST_F(DamagedTrace, ValuesThatNoRecordHasAreRefused) {
  const auto spoiled = [&](const std::function<void(pb::Block&)>& spoil) {
    pb::Block block = one_extent();
    spoil(block);
    return message_for_block(block);
  };
  const auto no_record = HasSubstr("record 0 of the block has values that no record can have");
  EXPECT_THAT(spoiled([](pb::Block& b) { b.set_tag(0, 8 * 8); }), no_record) << "kind 4";
  EXPECT_THAT(spoiled([](pb::Block& b) { b.set_extent_rows(0, 0); }), no_record);
  EXPECT_THAT(spoiled([](pb::Block& b) { b.set_extent_rows(0, 1LL << 32); }), no_record);
  EXPECT_THAT(spoiled([](pb::Block& b) { b.set_extent_row_bytes(0, -1); }), no_record);
  EXPECT_THAT(spoiled([](pb::Block& b) { b.set_extent_address(0, -1); }), no_record) << "past the last byte";
  EXPECT_THAT(spoiled([](pb::Block& b) { b.set_extent_gap(0, ~0ULL); }), no_record) << "stride overflows";
  EXPECT_THAT(spoiled([](pb::Block& b) { b.set_extent_stream(0, kMaxStreams); }), no_record);
}

TEST_F(DamagedTrace, ValuesThatNoOtherRecordHasAreRefused) {
  const auto no_record = HasSubstr("values that no record can have");
  for (const std::uint32_t tag : {5U, 7U}) {
    pb::Block block;
    block.add_tag(tag);
    EXPECT_THAT(message_for_block(block), no_record) << "there is no kind of record " << tag;
  }
  pb::Block alloc;
  alloc.add_tag(2);
  alloc.add_alloc_address(0);
  alloc.add_alloc_bytes(1);
  alloc.add_alloc_kind(0);
  alloc.add_alloc_backing(0);
  alloc.add_alloc_name(std::string(32, 'x'));
  EXPECT_THAT(message_for_block(alloc), no_record);
  alloc.set_alloc_name(0, "\x1b[2J");
  EXPECT_THAT(message_for_block(alloc), no_record);
  alloc.set_alloc_name(0, "good");
  alloc.set_alloc_backing(0, 256);
  EXPECT_THAT(message_for_block(alloc), no_record) << "256 is not backing 0";
  alloc.set_alloc_backing(0, 0);
  EXPECT_THAT(message_for_block(alloc), Not(no_record));
}

class UnwritableTrace : public TemporaryFolder {};

TEST_F(UnwritableTrace, PlacesThatCannotBeWrittenToAreNamed) {
  const auto missing = file("no") / "such" / "folder.kvt";
  EXPECT_THAT(message_of([&] { TraceWriter writer(missing, test_header()); }),
              AllOf(HasSubstr(missing.string()), HasSubstr("No such file or directory"),
                    HasSubstr("Create the folder")));
  EXPECT_THAT(message_of([&] { TraceWriter writer(file("."), test_header()); }),
              HasSubstr("not a regular file"));
  EXPECT_THAT(message_of([&] { TraceWriter writer("/dev/null", test_header()); }),
              HasSubstr("not a regular file"));
}

TEST_F(UnwritableTrace, NothingIsLeftWithoutFinish) {
  {
    TraceWriter writer(file(), test_header());
    writer.put(Compute{.operations = 1});
    EXPECT_EQ(files_in_folder(), 1U);
    EXPECT_FALSE(std::filesystem::exists(file()));
  }
  EXPECT_EQ(files_in_folder(), 0U);
}

TEST_F(UnwritableTrace, AnOlderTraceStaysUntilTheNewOneIsWhole) {
  write_trace(file(), some_records());
  const std::string before = content(file());
  {
    TraceWriter writer(file(), test_header());
    writer.put(Compute{.operations = 1});
  }
  EXPECT_EQ(content(file()), before);
  write_trace(file(), {Compute{.operations = 1}});
  EXPECT_EQ(read_trace(file()), std::vector<Record>{Compute{.operations = 1}});
  EXPECT_EQ(files_in_folder(), 1U);
}

TEST_F(UnwritableTrace, ALinkIsWrittenThrough) {
  write_trace(file("real.kvt"), {});
  std::filesystem::create_symlink(file("real.kvt"), file("link.kvt"));
  write_trace(file("link.kvt"), some_records());
  EXPECT_TRUE(std::filesystem::is_symlink(file("link.kvt")));
  EXPECT_EQ(read_trace(file("real.kvt")), some_records());
}

TEST_F(UnwritableTrace, ALinkToNothingStaysAsItIs) {
  std::filesystem::create_symlink(file("none.kvt"), file("link.kvt"));
  EXPECT_THAT(message_of([&] { TraceWriter writer(file("link.kvt"), test_header()); }),
              AllOf(HasSubstr("link.kvt"), HasSubstr("leads nowhere")));
  EXPECT_TRUE(std::filesystem::is_symlink(file("link.kvt")));
  EXPECT_EQ(files_in_folder(), 1U);
}

TEST_F(UnwritableTrace, NamesThatAreTooLongAreRefusedAtOnce) {
  // The second is one that the file system would take, but not with the ending of the temporary file.
  for (const std::size_t length : {300U, 255U}) {
    EXPECT_THAT(message_of([&] { TraceWriter writer(file(std::string(length, 'x')), test_header()); }),
                HasSubstr("a shorter"))
        << length;
  }
}

TEST_F(UnwritableTrace, AFullDiskIsNamedAndNothingIsLeft) {
  // A limit on the file's size stands in for a full disk: write() fails part-way in the same manner.
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{.rlim_cur = 20'000, .rlim_max = RLIM_INFINITY};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  Rng rng(1);
  const auto write = [&] {
    TraceWriter writer(file(), test_header());
    for (int i = 0; i < 20'000; ++i) {
      writer.put(random_record(rng));
    }
    writer.finish();
  };
  EXPECT_THAT(message_of(write), AllOf(HasSubstr(file().string()), HasSubstr("Free some space")));
  EXPECT_EQ(files_in_folder(), 0U);
}

TEST_F(UnwritableTrace, MisuseIsABug) {
  TraceWriter writer(file(), test_header());
  EXPECT_THROW(writer.put(Extent{}), InternalError) << "an extent of no bytes";
  writer.finish();
  EXPECT_THROW(writer.put(Compute{}), InternalError);
  EXPECT_THROW(writer.finish(), InternalError);
}

}  // namespace
}  // namespace kvsim::trace
