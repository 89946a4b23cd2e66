// SPDX-License-Identifier: Apache-2.0
// Is a trace read as it was written, and a broken one refused?
#include "models/dram/request_source.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/error.h"

namespace kvsim::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RequestSourceTest : public ::testing::Test {
 protected:
  ~RequestSourceTest() override { std::filesystem::remove(path_); }

  std::vector<PackedRequest> read(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    const auto source = open_requests(path_);
    std::vector<PackedRequest> all;
    for (auto batch = source->next(); !batch.empty(); batch = source->next()) {
      all.insert(all.end(), batch.begin(), batch.end());
    }
    return all;
  }
  std::string refusal(const std::string& bytes) {
    try {
      static_cast<void>(read(bytes));
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }

  std::filesystem::path path_ =
      std::filesystem::path(::testing::TempDir()) /
      ("requests_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
};

std::string binary(const std::vector<PackedRequest>& requests) {
  std::string bytes;
  for (const PackedRequest request : requests) {
    for (int byte = 0; byte < 8; ++byte) {
      bytes += static_cast<char>(request >> (8 * byte) & 0xff);
    }
  }
  return bytes;
}

TEST_F(RequestSourceTest, TextIsReadLineByLine) {
  EXPECT_THAT(read("R 0x0\nW 0x40\r\n\nR 0xfF80"), ElementsAre(0, 0x40 << 1 | 1, 0xff80 << 1));
}

TEST_F(RequestSourceTest, LongFilesComeBackWhole) {
  std::string text;
  std::vector<PackedRequest> expected;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    expected.push_back(pack(i * 4160, i % 3 == 0));
    char line[40];
    std::snprintf(line, sizeof line, "%c 0x%llx\n", i % 3 == 0 ? 'W' : 'R',
                  static_cast<unsigned long long>(i * 4160));
    text += line;
  }
  EXPECT_EQ(read(text), expected);
  EXPECT_EQ(read(binary(expected)), expected);
}

TEST_F(RequestSourceTest, NothingIsNothing) {
  EXPECT_THAT(read(""), IsEmpty());
}

TEST_F(RequestSourceTest, TextIsKnownWhateverItBeginsWith) {
  for (const char* start :
       {"# addresses of a run\n", "#\n", "\n", "\r\n", "  \t\n", "\xEF\xBB\xBF", "\xEF\xBB\xBF# \xC3\xA9\n",
        "r 0x40\n", "R  0x40\n", "R\t0x40\n", " R 0x40\n", "R 0X40\n", "R 0x40 # the first\n"}) {
    std::vector<PackedRequest> wanted = {pack(0x40, false), pack(0x80, true)};
    if (std::string(start).find("40") == std::string::npos) {
      wanted.erase(wanted.begin());
    }
    EXPECT_EQ(read(std::string(start) + "w 0x80 \n"), wanted) << start;
  }
  EXPECT_THAT(read("R 0x0"), ElementsAre(0));
  EXPECT_THAT(read("# only this"), IsEmpty());
}

/// The largest memory that a part and a controller may describe has 2^53 bytes.
TEST_F(RequestSourceTest, BinaryIsKnownWhateverItBeginsWith) {
  for (const std::uint64_t address : {std::uint64_t{0}, std::uint64_t{'R'}, std::uint64_t{0x2020202020 / 2},
                                      (std::uint64_t{1} << 53) - 64}) {
    EXPECT_EQ(read(binary({pack(address, false), pack(64, true)})),
              (std::vector<PackedRequest>{pack(address, false), pack(64, true)}))
        << address;
  }
}

TEST_F(RequestSourceTest, BrokenTextIsRefusedWithItsPlace) {
  EXPECT_THAT(refusal("R 0x0\nR 40\n"), HasSubstr(":2:3: 'R 40' is no request"));
  EXPECT_THAT(refusal("R 0x0\nX 0x40\n"), HasSubstr(":2:1: 'X 0x40'"));
  EXPECT_THAT(refusal("R 0x0\nR 0x\n"), HasSubstr(":2:5:"));
  EXPECT_THAT(refusal("R 0x0\nR\n"), HasSubstr(":2:2:"));
  EXPECT_THAT(refusal("R 0x0\nR0x40\n"), HasSubstr(":2:2:"));
  EXPECT_THAT(refusal("R 0x0\n  R 0x40 1\n"), HasSubstr(":2:9:"));
  EXPECT_THAT(refusal("R 0x0\nR 0x-40\n"), HasSubstr(":2:5:"));
  EXPECT_THAT(refusal("R 0x0\nR 0xffffffffffffffffff\n"), HasSubstr(":2:5: the address of"));
  EXPECT_THAT(refusal("R 0x0\nR 0xffffffffffffffff\n"), HasSubstr("63 bits"));
  EXPECT_THAT(refusal("R 0x0\n" + std::string(5000, '0')), HasSubstr(":2:1: a line of more than 4096"));
  EXPECT_THAT(refusal("0x40, R\n"), HasSubstr(":1:1: '0x40, R' is no request"));
  EXPECT_THAT(refusal("read 0x40\n"), HasSubstr(":1:2:"));
  EXPECT_THAT(refusal("# ok\n\n\x1f\x8b\x08\n"), HasSubstr(":3:1: '\?\?\?' is no request"));
}

TEST_F(RequestSourceTest, CutBinaryIsRefused) {
  EXPECT_THAT(refusal(binary({1, 2, 3}).substr(0, 20)), HasSubstr("4 bytes are left after 2 requests"));
}

TEST_F(RequestSourceTest, AMissingFileIsRefused) {
  EXPECT_THROW(static_cast<void>(open_requests("/nonexistent/trace")), UserError);
  EXPECT_THROW(static_cast<void>(open_requests(::testing::TempDir())), UserError);
}

}  // namespace
}  // namespace kvsim::model
