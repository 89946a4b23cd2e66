// SPDX-License-Identifier: Apache-2.0
#include "traces/import/lackey_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "traces/import/test_files.h"

namespace kvsim::trace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::gzip;
using ::testing::HasSubstr;
using testing::read_all;
using testing::read_text;
using testing::TemporaryFile;
using testing::zstd;
using What = LackeyEvent::What;

LackeyEvent event(What what, std::uint64_t value, std::uint32_t bytes) {
  return {.value = value, .bytes = bytes, .what = what};
}

/// What is said about a file, with its name taken out.
std::string refusal(std::string_view content) {
  const TemporaryFile file(content);
  std::string message = message_of([&] { static_cast<void>(read_all(file.path())); });
  const std::size_t at = message.find(file.path().string());
  return at == std::string::npos ? message : message.erase(at, file.path().string().size());
}

TEST(LackeyReader, ReadsEveryForm) {
  EXPECT_THAT(read_text("==12== Lackey, an example Valgrind tool\n"
                        "\n"
                        "# made by hand\n"
                        "# token 7 start\n"
                        "SB 00401000\n"
                        "I  00401000,5\n"
                        " L 1ffeffeff8,8\n"
                        " S 04AbCdEf,1\r\n"
                        " M ffffffffffffffef,16\n"
                        "--12-- a debug message\n"
                        "# token 7 end\n"
                        "I  0,2"),
              ElementsAre(event(What::token_start, 7, 0), event(What::instruction, 0x401000, 5),
                          event(What::load, 0x1ffeffeff8, 8), event(What::store, 0x4abcdef, 1),
                          event(What::modify, 0xffffffffffffffef, 16), event(What::token_end, 7, 0),
                          event(What::instruction, 0, 2)));
}

std::string line_of(const LackeyEvent& e) {
  static constexpr const char* kStarts[] = {"I  ", " L ", " S ", " M "};
  char text[64];
  std::snprintf(text, sizeof text, "%s%08llx,%u\n", kStarts[static_cast<int>(e.what)],
                static_cast<unsigned long long>(e.value), e.bytes);
  return text;
}

/// Long enough for the buffer to be filled several times, in every packing.
TEST(LackeyReader, ReadsBackWhatWasWritten) {
  Random random(1);
  std::vector<LackeyEvent> events;
  std::string text;
  for (int i = 0; i < 300'000; ++i) {
    events.push_back(event(static_cast<What>(random.below(4)), static_cast<std::uint64_t>(random.magnitude()),
                           static_cast<std::uint32_t>(1 + random.below(kMostAccessBytes))));
    text += line_of(events.back());
  }
  ASSERT_GT(text.size(), std::size_t{4} << 20);
  EXPECT_EQ(read_text(text), events);
  EXPECT_EQ(read_text(gzip(text)), events);
  EXPECT_EQ(read_text(zstd(text)), events);
  const std::size_t middle = text.size() / 2;
  EXPECT_EQ(read_text(gzip(text.substr(0, middle)) + gzip(text.substr(middle))), events);
  EXPECT_EQ(read_text(zstd(text.substr(0, middle)) + zstd(text.substr(middle))), events);
}

/// The end of the buffer falls on every place of a line.
TEST(LackeyReader, LinesMayCrossTheBuffer) {
  const std::string line = " L 1234abcd,16\n";
  for (std::size_t shift = 0; shift < line.size(); ++shift) {
    std::string text = "#" + std::string(shift, 'x') + "\n";
    std::size_t lines = 0;
    for (; text.size() < (std::size_t{1} << 20) + 100; ++lines) {
      text += line;
    }
    EXPECT_EQ(read_text(text), std::vector<LackeyEvent>(lines, event(What::load, 0x1234abcd, 16)));
  }
}

TEST(LackeyReader, TellsWhereALineIsWrong) {
  EXPECT_THAT(refusal(" L 10,4\nhello\n"), HasSubstr(":2:1: 'hello' is no line of a lackey trace"));
  EXPECT_THAT(refusal(" X 10,4\n"), HasSubstr(":1:1: ' X 10,4'"));
  EXPECT_THAT(refusal(" L ,4\n"), HasSubstr(":1:4: the address is hexadecimal"));
  EXPECT_THAT(refusal(" L 1g,4\n"), HasSubstr(":1:5: the address is hexadecimal"));
  EXPECT_THAT(refusal(" L 10\n"), HasSubstr(":1:6: the address is hexadecimal"));
  EXPECT_THAT(refusal("I  11112222333344445,4\n"), HasSubstr(":1:4: address '11112222333344445' has more"));
  for (const char* size : {"", "0", "-1", "4097", "99999999999999999999", "4x", "0000004"}) {
    EXPECT_THAT(refusal(std::string(" S 10,") + size + "\n"), HasSubstr(":1:7: size '")) << size;
  }
  EXPECT_THAT(refusal(" M ffffffffffffffff,1\n"),
              HasSubstr(":1:4: 1 bytes at address ffffffffffffffff reach"));
  EXPECT_THAT(refusal(" L 10,4\n==pid== text\n"), HasSubstr(":2:1: '==pid== text'"));
  EXPECT_THAT(refusal(""), HasSubstr("is empty"));
}

TEST(LackeyReader, TokensAreInOrder) {
  EXPECT_THAT(refusal("# token x start\n"), HasSubstr(":1:1: '# token x start' is neither"));
  EXPECT_THAT(refusal("# token\n"), HasSubstr("is neither"));
  EXPECT_THAT(refusal("# token 1 starts\n"), HasSubstr("is neither"));
  EXPECT_THAT(refusal("# token 99999999999999999999 start\n"), HasSubstr("is neither"));
  EXPECT_THAT(refusal("# token 1 start\n# token 2 start\n"),
              HasSubstr(":2:1: token 2 starts within token 1"));
  EXPECT_THAT(refusal("# token 1 start\n# token 2 end\n"), HasSubstr(":2:1: token 2 ends within token 1"));
  EXPECT_THAT(refusal(" L 1,1\n# token 2 end\n"), HasSubstr(":2:1: token 2 ends, but has not started"));
  EXPECT_THAT(
      refusal("# token 1 start\n L 1,1\n"),
      AllOf(HasSubstr(":2:1: the trace ends within token 1, which starts on line 1"), HasSubstr("cut")));
}

TEST(LackeyReader, LinesHaveALimit) {
  EXPECT_THAT(refusal("#" + std::string(5000, 'x') + "\n L 1,1\n"), HasSubstr(":1:4097: the line is longer"));
  EXPECT_THAT(refusal(" L 1,1\n" + std::string(3 << 20, 'x')), HasSubstr(":2:4097: the line is longer"));
  EXPECT_THAT(refusal(zstd(std::string(64 << 20, 'x'))), HasSubstr(":1:4097: the line is longer"));
  EXPECT_THAT(refusal(" L " + std::string(100'000, '0') + "1,1\n"), HasSubstr("longer"));
  EXPECT_THAT(refusal(std::string("\0\x01\x02\n", 4)), HasSubstr(":1:1: '?"
                                                                 "?"
                                                                 "?' is no line"));
}

/// Cut anywhere, packed data are told to be cut, with the line that has been reached.
TEST(LackeyReader, PackedDataThatAreCutAreTold) {
  Random random(3);
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text += line_of(event(What::load, random.next() >> 20, 8));
  }
  for (const std::string& packed : {gzip(text), zstd(text)}) {
    for (std::size_t size = 5; size < packed.size(); ++size) {
      ASSERT_THAT(refusal(packed.substr(0, size)), HasSubstr("the file was cut short")) << size;
    }
  }
}

TEST(LackeyReader, PackedDataThatAreDamagedAreTold) {
  Random random(4);
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text += line_of(event(What::load, random.next() >> 20, 8));
  }
  std::string damaged = gzip(text);
  damaged[damaged.size() - 6] ^= 1;  // within the checksum
  EXPECT_THAT(refusal(damaged), HasSubstr(":61:1: the gzip data are damaged here: incorrect data check"));
  EXPECT_THAT(refusal(gzip(text) + "more"), HasSubstr("the gzip data are damaged here"));
  EXPECT_THAT(refusal(zstd(text) + "more"), HasSubstr("the zstd data are damaged here"));
  for (std::string packed : {gzip(text), zstd(text)}) {  // anything may be said, but nothing else may happen
    for (std::size_t i = 4; i < packed.size(); ++i) {
      packed[i] = static_cast<char>(packed[i] ^ 0x55);
      static_cast<void>(refusal(packed));
      packed[i] = static_cast<char>(packed[i] ^ 0x55);
    }
  }
}

TEST(LackeyReader, FilesThatCannotBeReadAreTold) {
  EXPECT_THAT(message_of([] { LackeyReader("/nowhere/trace"); }),
              HasSubstr("/nowhere/trace: cannot be opened (No such file or directory)"));
  EXPECT_THAT(message_of([] { LackeyReader("/tmp"); }), HasSubstr("/tmp: is a folder"));
}

TEST(LackeyReader, KnowsItsFilesByTheirStart) {
  for (const char* text : {" L 1,1\n", "I  1,1\n", "# token 1 start\n", "==1== x\n"}) {
    EXPECT_TRUE(looks_like_lackey(TemporaryFile(text).path())) << text;
  }
  EXPECT_TRUE(looks_like_lackey(TemporaryFile(gzip(" L 1,1\n")).path()));
  EXPECT_TRUE(looks_like_lackey(TemporaryFile(zstd(" L 1,1\n")).path()));
  for (const char* text : {"", "L", "hello\n", "\x89KVT\r\n", "device: rk3588\n", "# a scenario\n"}) {
    EXPECT_FALSE(looks_like_lackey(TemporaryFile(text).path())) << text;
  }
}

}  // namespace
}  // namespace kvsim::trace
