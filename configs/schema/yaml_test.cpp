// SPDX-License-Identifier: Apache-2.0
#include "configs/schema/yaml.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "configs/schema/note.h"
#include "configs/schema/utf8.h"

namespace kvsim::config {
namespace {

using namespace std::string_literals;
using testing::HasSubstr;
using testing::StartsWith;

Value parse_text(const std::string& text) {
  Diagnostics errors;
  Value value = parse_yaml({.name = "x.yaml", .text = text}, errors);
  errors.throw_if_any();
  return value;
}

std::string error_of(const std::string& text) {
  return message_of([&] { static_cast<void>(parse_text(text)); });
}

TEST(Yaml, KeepsOrderPlacesAndQuotes) {
  const Value root = parse_text("b: 010\na:\n  - x\n  - 'y z'\nc: {d: 1, e: ~}\n");
  ASSERT_EQ(root.entries.size(), 3U);
  EXPECT_EQ(root.entries[0].key, "b");
  EXPECT_EQ(root.entries[0].value.text, "010");  // text, not the number 8
  EXPECT_EQ(to_string(root.entries[0].value.where), "x.yaml:1:4");
  const Value& list = root.entries[1].value;
  ASSERT_TRUE(list.is_list());
  EXPECT_FALSE(list.items[0].quoted);
  EXPECT_TRUE(list.items[1].quoted);
  EXPECT_EQ(list.items[1].text, "y z");
  EXPECT_EQ(to_string(list.items[1].where), "x.yaml:4:5");
  EXPECT_EQ(to_string(root.entries[2].where), "x.yaml:5:1");
  EXPECT_EQ(root.find("c")->find("e")->kind, Value::Kind::null);
  EXPECT_EQ(root.find("missing"), nullptr);
}

TEST(Yaml, ReadsJson) {
  const Value root = parse_text(R"({"a":{"b":[1,"2"],"c":""},"d":1.5,"e":"ü\n"})");
  EXPECT_EQ(root.find("a")->find("b")->items[0].text, "1");
  EXPECT_TRUE(root.find("a")->find("b")->items[1].quoted);
  EXPECT_TRUE(root.find("a")->find("c")->is_scalar());
  EXPECT_EQ(root.find("e")->text, "ü\n");
}

TEST(Yaml, PassesOverAByteOrderMark) {
  const Value root = parse_text(
      "\xEF\xBB\xBF"
      "a: 'x'  # note\n");
  EXPECT_EQ(to_string(root.find("a")->where), "x.yaml:1:4");
  EXPECT_EQ(root.find("a")->note, "note");
}

TEST(Yaml, KeepsTheCommentBehindAScalarAsItsNote) {
  const Value root = parse_text(
      "# head\n"
      "a: 1   # one\n"
      "b: 'x # y'  # two # three\n"
      "c: [7, 8]  # both\n"
      "d: it's#no  # yes\n"
      "e: \"q\\\" # no\"   #   spaced  \n"
      "f: 2\n");
  EXPECT_EQ(root.find("a")->note, "one");
  EXPECT_EQ(root.find("b")->note, "two # three");
  EXPECT_EQ(root.find("c")->items[0].note, "both");
  EXPECT_EQ(root.find("c")->items[1].note, "both");
  EXPECT_EQ(root.find("d")->note, "yes");
  EXPECT_EQ(root.find("e")->note, "spaced");
  EXPECT_EQ(root.find("f")->note, "");
}

TEST(Note, QuotesCountOnlyWhereAValueBegins) {
  EXPECT_EQ(find_note("a: don't # note", 3), "note");
  EXPECT_EQ(find_note("a: [x, '#', y] # note", 4), "note");
  EXPECT_EQ(find_note("a: {b: \"#\"} # note", 3), "note");
  EXPECT_EQ(find_note("a: x#y", 3), "");
  EXPECT_EQ(find_note("a: 'never closed # no", 3), "");
  EXPECT_EQ(find_note("", 0), "");
  EXPECT_EQ(find_note("a", 7), "");
  EXPECT_EQ(find_note("a: " + std::string(1'000, 'x') + " # no", 3), "");
}

struct Refusal {
  std::string text;
  std::string place;
  std::string words;
};

TEST(Yaml, RefusesWithPlaceAndWords) {
  const Refusal refusals[] = {
      {"a: 1\nb: 2\na: 3\n", "x.yaml:3:1: a: ", "the key is given twice; the first is in line 1"},
      {"a: [{}, {b: {c: 1, c: 2}}]\n", "x.yaml:1:20: a.1.b.c: ", "the key is given twice"},
      {"a: &x 1\n", "x.yaml:1:4: ", "anchors (&name) are not supported"},
      {"a: &x\n  b: 1\n", "x.yaml:1:4: ", "anchors (&name) are not supported"},
      {"a: &x 1\nb: *x\n", "x.yaml:1:4: ", "anchors"},
      {"<<: {a: 1}\n", "x.yaml:1:1: ", "merge keys (<<) are not supported; use 'extends'"},
      {"a: !!str 1\n", "x.yaml:1:4: ", "tags (!name) are not supported"},
      {"a: !mine [1]\n", "x.yaml:1:4: ", "tags (!name) are not supported"},
      {"a: 1\n---\nb: 2\n", "x.yaml:2:1: ", "a second YAML document begins here"},
      {"[a, b]: 1\n", "x.yaml:1:1: ", "a key must be plain text, not a list"},
      {"? {a: 1}\n: 2\n", "x.yaml:1:3: ", "a key must be plain text, not a map"},
      {"~: 1\n", "x.yaml:1:1: ", "a key must be plain text, not nothing"},
      {"a:\n\tb: 1\n", "x.yaml:2:1: ", "a tab indents this line; indent with spaces"},
      {"a:\n  \tb: 1\n", "x.yaml:2:3: ", "a tab indents this line"},
      {"a: [1, 2\n", "x.yaml:", "not valid YAML: end of sequence flow not found"},
      {"a: b: c\n", "x.yaml:1:5: ", "not valid YAML: "},
      {"a: 'x\n", "x.yaml:1:4: ", "not valid YAML: this quote is not closed"},
      {"a: \"x\nb: 1\n", "x.yaml:1:4: ", "not valid YAML: this quote is not closed"},
      {",\n", "x.yaml:1:1: ", "not valid YAML: unexpected text"},
      {"a: @x\n", "x.yaml:1:4: ", "not valid YAML: "},
      {"a: \"\\x00\"\n", "x.yaml:1:4: ", "control character"},
      {"", "x.yaml: ", "is empty"},
      {"# only a comment\n", "x.yaml: ", "is empty"},
      {"---\n", "x.yaml: ", "is empty"},
      {"a: 1\0"s, "x.yaml: byte 4 ", "is not text (UTF-8); is this a binary file?"},
      {"\x7f"s + "ELF\x02\x01", "x.yaml: byte 0 ", "is not text"},
      {"a: \xff\n", "x.yaml: byte 3 ", "is not text"},
      {"a: \x1b[31m\n", "x.yaml: byte 3 ", "is not text"},
  };
  for (const Refusal& refusal : refusals) {
    const std::string error = error_of(refusal.text);
    EXPECT_THAT(error, StartsWith(refusal.place)) << refusal.text;
    EXPECT_THAT(error, HasSubstr(refusal.words)) << refusal.text;
  }
}

TEST(Yaml, TellsSeveralMistakesAtOnce) {
  const std::string error = error_of("a: 1\na: 2\nb: !t 3\nc: &x 4\n");
  EXPECT_THAT(error, HasSubstr("x.yaml:2:1"));
  EXPECT_THAT(error, HasSubstr("x.yaml:3:4"));
  EXPECT_THAT(error, HasSubstr("x.yaml:4:4"));
}

TEST(Yaml, FirstOfTwoEqualKeysStays) {
  Diagnostics errors;
  const Value root = parse_yaml({.name = "x.yaml", .text = "a: 1\na: 2\n"}, errors);
  ASSERT_EQ(root.entries.size(), 1U);
  EXPECT_EQ(root.find("a")->text, "1");
  EXPECT_EQ(errors.count(), 1U);
}

TEST(Yaml, BoundsDepthKeysAndValues) {
  EXPECT_THAT(error_of(std::string(60, '[') + std::string(60, ']')), "no error");
  EXPECT_THAT(error_of(std::string(65, '[') + std::string(65, ']')),
              HasSubstr("nested deeper than 64 levels"));
  EXPECT_THAT(error_of(std::string(100'000, '[')), HasSubstr("nested deeper than 64 levels"));
  std::string map;
  for (int i = 0; i <= 1'000; ++i) {
    map += "k" + std::to_string(i) + ": 1\n";
  }
  EXPECT_THAT(error_of(map), StartsWith("x.yaml:1001:1: more than 1000 keys"));
  std::string list = "[";
  for (int i = 0; i <= 100'000; ++i) {
    list += "1,";
  }
  EXPECT_THAT(error_of(list + "]"), HasSubstr("more than 100000 values in one file"));
}

TEST(Yaml, PlacesOnTheCommandLineHaveNoLines) {
  Diagnostics errors;
  const Value value = parse_yaml({.name = "--set a=[1]", .text = "[1]", .has_lines = false}, errors);
  EXPECT_EQ(to_string(value.items[0].where), "--set a=[1]");
}

/// Random bytes and random YAML-like text either parse or are refused; nothing else happens.
TEST(Yaml, SurvivesRandomText) {
  Random random(6);
  constexpr std::string_view kAlphabet = "ab:-[]{},&*!'\"#|>%@ \n\t?~<0.\\";
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (std::uint64_t n = random.below(30); n > 0; --n) {
      text += i % 4 == 0 ? static_cast<char>(random.next()) : kAlphabet[random.below(kAlphabet.size())];
    }
    static_cast<void>(error_of(text));
  }
}

TEST(Utf8, TellsTextFromBytes) {
  EXPECT_EQ(find_non_text("plain\ttext\r\n"), std::nullopt);
  EXPECT_EQ(find_non_text("\u00e9 \u20ac \U0001F600"), std::nullopt);
  EXPECT_EQ(find_non_text("ab\xc0\x80"), 2U);        // overlong
  EXPECT_EQ(find_non_text("\xe0\x80\x80"), 0U);      // overlong
  EXPECT_EQ(find_non_text("\xed\xa0\x80"), 0U);      // surrogate
  EXPECT_EQ(find_non_text("\xf4\x90\x80\x80"), 0U);  // beyond U+10FFFF
  EXPECT_EQ(find_non_text("x\xe2\x82"), 1U);         // cut off
  EXPECT_EQ(find_non_text("\x80"), 0U);              // no lead byte
  EXPECT_EQ(find_non_text("a\x01"), 1U);
}

class SourceFile : public testing::Test {
 protected:
  std::filesystem::path path(const std::string& name) const {
    return std::filesystem::path(testing::TempDir()) / ("kvsim_yaml_test_" + name);
  }
  std::string error_of_file(const std::filesystem::path& file) {
    return message_of([&] { static_cast<void>(read_source(file)); });
  }
};

TEST_F(SourceFile, IsReadWhole) {
  std::ofstream(path("whole.yaml")) << std::string(200'000, 'x');
  const SourceText source = read_source(path("whole.yaml"));
  EXPECT_EQ(source.text.size(), 200'000U);
  EXPECT_EQ(source.name, path("whole.yaml").string());
}

TEST_F(SourceFile, EmptyFileIsNoErrorOfReading) {
  std::ofstream(path("empty.yaml")).flush();
  EXPECT_EQ(read_source(path("empty.yaml")).text, "");
}

TEST_F(SourceFile, RefusesWhatIsNoFile) {
  EXPECT_THAT(error_of_file(path("none.yaml")), HasSubstr("there is no such file"));
  EXPECT_THAT(error_of_file(testing::TempDir()), HasSubstr("is a directory; give the path of a YAML file"));
}

TEST_F(SourceFile, RefusesWhatIsTooLarge) {
  std::ofstream(path("large.yaml")).flush();
  std::filesystem::resize_file(path("large.yaml"), (std::uintmax_t{16} << 20) + 1);
  EXPECT_THAT(error_of_file(path("large.yaml")), HasSubstr("is larger than 16 MiB"));
  std::filesystem::remove(path("large.yaml"));
}

}  // namespace
}  // namespace kvsim::config
