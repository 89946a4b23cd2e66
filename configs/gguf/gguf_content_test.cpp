// SPDX-License-Identifier: Apache-2.0
#include "configs/gguf/gguf_content.h"

#include <cstring>
#include <functional>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "configs/gguf/gguf_builder.h"

namespace kvsim::config {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

template <class T>
const T& held(const GgufContent& content, std::string_view key) {
  for (const GgufValue& entry : content.metadata) {
    if (entry.key == key) {
      return std::get<T>(entry.value);
    }
  }
  throw std::out_of_range(std::string(key));
}

GgufBuilder every_type() {
  GgufBuilder file;
  file.value("u8", GgufType::u8, std::uint8_t{200})
      .value("i8", GgufType::i8, std::int8_t{-100})
      .value("u16", GgufType::u16, std::uint16_t{60000})
      .value("i16", GgufType::i16, std::int16_t{-30000})
      .u32("u32", 4'000'000'000U)
      .value("i32", GgufType::i32, std::int32_t{-2'000'000'000})
      .value("f32", GgufType::f32, 0.5F)
      .value("bool", GgufType::boolean, std::uint8_t{1})
      .text("text", "h\xC3\xA9llo")
      .value("u64", GgufType::u64, std::numeric_limits<std::uint64_t>::max())
      .value("i64", GgufType::i64, std::numeric_limits<std::int64_t>::min())
      .value("f64", GgufType::f64, 1e300)
      .array("integers", GgufType::i32, std::vector<std::int32_t>{3, -1, 4})
      .array("truths", GgufType::boolean, std::vector<std::uint8_t>{1, 0})
      .array("none", GgufType::u16, std::vector<std::uint16_t>{})
      .texts("texts", {"a", "", "bcd"});
  file.tensor("matrix", {64, 3}, 8, 0).tensor("vector", {5}, 0, 224);
  file.data = 224 + 20;
  return file;
}

TEST(GgufContent, EveryTypeIsRead) {
  for (const std::uint32_t version : {2U, 3U}) {
    GgufBuilder builder = every_type();
    builder.version = version;
    const std::string bytes = builder.bytes();
    const GgufContent file = read(bytes);
    EXPECT_EQ(file.version, version);
    EXPECT_EQ(held<std::uint64_t>(file, "u8"), 200U);
    EXPECT_EQ(held<std::int64_t>(file, "i8"), -100);
    EXPECT_EQ(held<std::uint64_t>(file, "u16"), 60000U);
    EXPECT_EQ(held<std::int64_t>(file, "i16"), -30000);
    EXPECT_EQ(held<std::uint64_t>(file, "u32"), 4'000'000'000U);
    EXPECT_EQ(held<std::int64_t>(file, "i32"), -2'000'000'000);
    EXPECT_EQ(held<double>(file, "f32"), 0.5);
    EXPECT_TRUE(held<bool>(file, "bool"));
    EXPECT_EQ(held<std::string_view>(file, "text"), "h\xC3\xA9llo");
    EXPECT_EQ(held<std::uint64_t>(file, "u64"), std::numeric_limits<std::uint64_t>::max());
    EXPECT_EQ(held<std::int64_t>(file, "i64"), std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(held<double>(file, "f64"), 1e300);
    EXPECT_THAT(held<GgufArray>(file, "integers").integers(), ElementsAre(3, -1, 4));
    EXPECT_THAT(held<GgufArray>(file, "truths").integers(), ElementsAre(1, 0));
    EXPECT_EQ(held<GgufArray>(file, "none").size, 0U);
    EXPECT_THAT(held<GgufArray>(file, "texts").texts(), ElementsAre("a", "", "bcd"));
  }
}

TEST(GgufContent, TensorsHaveTheSizesOfTheirTypes) {
  const std::string bytes = every_type().bytes();
  const GgufContent file = read(bytes);
  ASSERT_EQ(file.tensors.size(), 2U);
  EXPECT_EQ(file.tensors[0].name, "matrix");
  EXPECT_EQ(file.tensors[0].type.name, "Q8_0");
  EXPECT_THAT(file.tensors[0].dims, ElementsAre(64, 3));
  EXPECT_EQ(file.tensors[0].bytes.count(), 3 * 2 * 34);
  EXPECT_EQ(file.tensors[1].offset.count(), 224);
  EXPECT_EQ(file.tensors[1].bytes.count(), 20);
  EXPECT_EQ(file.data_start % 32, 0U);
  EXPECT_EQ(file.data_start + 244, bytes.size());
}

TEST(GgufContent, EveryTensorTypeHasItsSize) {
  struct Case {
    std::uint32_t id;
    std::int64_t bytes;  ///< of 256 elements
  };
  for (const auto& [id, size] :
       {Case{0, 1024},  Case{1, 512},  Case{2, 144},  Case{3, 160},  Case{6, 176},   Case{7, 192},
        Case{8, 272},   Case{10, 84},  Case{11, 110}, Case{12, 144}, Case{13, 176},  Case{14, 210},
        Case{16, 66},   Case{17, 74},  Case{18, 98},  Case{19, 50},  Case{20, 144},  Case{21, 110},
        Case{22, 82},   Case{23, 136}, Case{24, 256}, Case{25, 512}, Case{26, 1024}, Case{27, 2048},
        Case{28, 2048}, Case{29, 56},  Case{30, 512}, Case{34, 54},  Case{35, 66},   Case{39, 136},
        Case{40, 144},  Case{41, 36},  Case{42, 72}}) {
    GgufBuilder file;
    file.tensor("t", {256}, id, 0);
    file.data = 4096;
    const std::string bytes = file.bytes();
    EXPECT_EQ(read(bytes).tensors[0].bytes.count(), size) << id;
  }
}

TEST(GgufContent, AlignmentIsTheFiles) {
  GgufBuilder file;
  file.u32("general.alignment", 256).tensor("a", {8}, 0, 0).tensor("b", {8}, 0, 256);
  file.alignment = 256;
  file.data = 512;
  const std::string bytes = file.bytes();
  EXPECT_EQ(read(bytes).alignment.count(), 256);
  EXPECT_EQ(read(bytes).data_start % 256, 0U);
}

struct Bad {
  const char* what;
  std::function<void(GgufBuilder&)> make;
  const char* message;
};

TEST(GgufContent, WhatIsWrongIsRefusedWithItsPlace) {
  const auto header = [](std::string_view key, GgufType type) {
    return GgufBytes().text(key).add(static_cast<std::uint32_t>(type)).str();
  };
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 62;
  const std::vector<Bad> bads = {
      {"magic", [](auto& f) { f.magic = 0x46554748; }, "byte 0: this is no GGUF file"},
      {"version 1", [](auto& f) { f.version = 1; }, "byte 4: GGUF version 1 is not read, 2 and 3 are"},
      {"big-endian", [](auto& f) { f.version = 0x03000000; }, "byte 4: the file is big-endian"},
      {"tensor count", [](auto& f) { f.extra_tensors = kHuge; },
       "byte 8: 4611686018427387906 tensors do not fit"},
      {"entry count", [](auto& f) { f.extra_metadata = kHuge; }, "byte 16:"},
      {"count above by one", [](auto& f) { f.extra_metadata = 1; }, "byte "},
      {"key length", [&](auto& f) { f.metadata.push_back(GgufBytes().add(kHuge).str()); },
       "4611686018427387904 bytes long"},
      {"empty key", [](auto& f) { f.u32("", 1); }, "is no metadata key"},
      {"key with a control character", [](auto& f) { f.u32("a\x1b[2J", 1); }, "'a?[2J' is no metadata key"},
      {"key too long", [](auto& f) { f.u32(std::string(65536, 'k'), 1); }, "is no metadata key"},
      {"duplicate key", [](auto& f) { f.u32("k", 1).u32("k", 2); }, "the key 'k' stands there twice"},
      {"value type", [&](auto& f) { f.value("k", static_cast<GgufType>(13), 1); },
       "value type 13 is unknown"},
      {"truth", [](auto& f) { f.value("k", GgufType::boolean, std::uint8_t{2}); },
       "'k' is a truth value of 2"},
      {"text length", [&](auto& f) { f.raw("k", GgufType::text, GgufBytes().add(kHuge).str()); },
       "'k' is said to be"},
      {"array in array", [&](auto& f) { f.raw("k", GgufType::array, GgufBytes().add(9U).add(kHuge).str()); },
       "'k' is an array of arrays"},
      {"array count", [&](auto& f) { f.raw("k", GgufType::array, GgufBytes().add(4U).add(kHuge).str()); },
       "elements of 'k' do not fit"},
      {"array count that overflows",
       [&](auto& f) { f.raw("k", GgufType::array, GgufBytes().add(10U).add(kHuge).str()); },
       "elements of 'k' do not fit"},
      {"array of texts",
       [&](auto& f) {
         f.raw("k", GgufType::array, GgufBytes().add(8U).add(std::uint64_t{1}).add(kHuge).str());
       },
       "element 0 of 'k' is said to be"},
      {"alignment 0", [](auto& f) { f.u32("general.alignment", 0); }, "power of two"},
      {"alignment 24", [](auto& f) { f.u32("general.alignment", 24); }, "power of two"},
      {"alignment's type", [](auto& f) { f.value("general.alignment", GgufType::i32, 32); }, "must be a u32"},
      {"tensor's name", [](auto& f) { f.tensor(std::string(64, 'n'), {8}, 0, 0); }, "is no name of a tensor"},
      {"duplicate name", [](auto& f) { f.tensor("a", {8}, 0, 64); }, "two tensors are called 'a'"},
      {"no dimension", [](auto& f) { f.tensor("t", {}, 0, 64); }, "'t' has 0 dimensions"},
      {"five dimensions",
       [](auto& f) {
         f.tensor("t", {8, 1, 1, 1, 1}, 0, 64);
       },
       "'t' has 5 dimensions"},
      {"dimension 0",
       [](auto& f) {
         f.tensor("t", {8, 0}, 0, 64);
       },
       "'t' has absurd dimensions: 8 x 0"},
      {"negative dimension",
       [](auto& f) {
         f.tensor("t", {8, ~std::uint64_t{0}}, 0, 64);
       },
       "absurd dimensions"},
      {"product",
       [](auto& f) {
         f.tensor("t", {1U << 31U, 1U << 31U, 4}, 0, 64);
       },
       "absurd dimensions"},
      {"no whole block", [](auto& f) { f.tensor("t", {48}, 8, 64); }, "no whole blocks of 32 (Q8_0)"},
      {"type", [](auto& f) { f.tensor("t", {8}, 99, 64); }, "'t' is of type 99"},
      {"withdrawn type", [](auto& f) { f.tensor("t", {8}, 4, 64); }, "withdrawn"},
      {"offset", [](auto& f) { f.tensor("t", {8}, 0, 4096); }, "takes 32 bytes from offset 4096 on"},
      {"offset above 2^63", [](auto& f) { f.tensor("t", {8}, 0, ~std::uint64_t{31}); },
       "from offset 18446744073709551584"},
      {"end of data", [](auto& f) { f.tensor("t", {100}, 0, 64); }, "takes 400 bytes from offset 64 on"},
      {"unaligned", [](auto& f) { f.tensor("t", {8}, 0, 72); }, "no multiple of the alignment of 32"},
      {"overlap", [](auto& f) { f.tensor("t", {8}, 0, 32); }, "'t' overlaps 'b'"},
      {"the same place", [](auto& f) { f.tensor("t", {8}, 0, 0); }, "overlaps"},
      {"truncated",
       [&](auto& f) {
         f.metadata.push_back(header("k", GgufType::f64));
         f.tensors.clear();
         f.data = 0;
         f.alignment = 1;
       },
       "the file ends within 'k'"},
  };
  for (const Bad& bad : bads) {
    GgufBuilder file;
    file.u32("first", 1).tensor("a", {8}, 0, 0).tensor("b", {8}, 0, 32);
    file.data = 256;
    bad.make(file);
    const std::string bytes = file.bytes();
    EXPECT_THAT(message_of([&] { static_cast<void>(read(bytes)); }),
                AllOf(HasSubstr("test.gguf: byte "), HasSubstr(bad.message)))
        << bad.what;
  }
}

TEST(GgufContent, EveryCutIsRefused) {
  const std::string bytes = every_type().bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);
    EXPECT_THAT(message_of([&] { static_cast<void>(read(cut)); }), HasSubstr("test.gguf: byte ")) << size;
  }
}

/// Reads all that a file holds, so that a sanitizer sees every access.
std::uint64_t touch(std::span<const std::byte> bytes, const GgufContent& file) {
  std::uint64_t sum = 0;
  for (const GgufValue& entry : file.metadata) {
    if (const auto* array = std::get_if<GgufArray>(&entry.value)) {
      if (array->type == GgufType::text) {
        for (const std::string_view text : array->texts()) {
          sum += text.size() + (text.empty() ? 0 : static_cast<unsigned char>(text.back()));
        }
      } else if (array->type != GgufType::f32 && array->type != GgufType::f64) {
        for (const std::int64_t value : array->integers()) {
          sum += static_cast<std::uint64_t>(value);
        }
      }
    }
  }
  for (const GgufTensor& tensor : file.tensors) {
    const std::size_t start = file.data_start + static_cast<std::size_t>(tensor.offset.count());
    const std::size_t size = static_cast<std::size_t>(tensor.bytes.count());
    EXPECT_LE(start + size, bytes.size());
    sum += std::to_integer<unsigned>(bytes[start]) + std::to_integer<unsigned>(bytes[start + size - 1]);
  }
  return sum;
}

/// Flipped bytes end in a UserError or in a file that is right; all else fails the test or the sanitizer.
TEST(GgufContent, DamagedFilesDoNoHarm) {
  const std::string sound = every_type().bytes();
  Random random(5);
  int refused = 0;
  int read_anyway = 0;
  std::uint64_t sum = 0;
  for (int round = 0; round < 30'000; ++round) {
    // Of exact size on the heap: a sanitizer sees one byte too far.
    std::vector<std::byte> bytes(sound.size());
    std::memcpy(bytes.data(), sound.data(), sound.size());
    for (std::uint64_t flips = 1 + random.below(4); flips > 0; --flips) {
      bytes[random.below(sound.size() - 200)] = static_cast<std::byte>(random.below(256));
    }
    try {
      sum += touch(bytes, read_gguf("test.gguf", bytes));
      ++read_anyway;
    } catch (const UserError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(read_anyway, 1000);
  EXPECT_NE(sum, 0U);
}

}  // namespace
}  // namespace kvsim::config
