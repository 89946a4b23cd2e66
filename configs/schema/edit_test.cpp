// SPDX-License-Identifier: Apache-2.0
#include "configs/schema/edit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "configs/schema/yaml.h"

namespace kvsim::config {
namespace {

using testing::HasSubstr;

Value yaml(const std::string& text, const std::string& name = "x.yaml") {
  Diagnostics errors;
  Value value = parse_yaml({.name = name, .text = text}, errors);
  errors.throw_if_any();
  return value;
}

std::string merged(const std::string& base, const std::string& over) {
  Diagnostics errors;
  const Value result = merge(yaml(base, "base.yaml"), yaml(over, "over.yaml"), "", errors);
  errors.throw_if_any();
  return to_annotated_text(result);
}

std::string set(const std::string& text, const std::string& change) {
  Value root = yaml(text);
  apply_override(root, change);
  return to_annotated_text(root);
}

TEST(Merge, MapsKeyByKeyTheRestReplaces) {
  EXPECT_EQ(merged("{a: 1, b: {c: 2, d: 3}, e: [1, 2]}", "{b: {d: 4}, e: [5], f: 6}"),
            "a: 1\nb:\n  c: 2\n  d: 4\ne: [5]\nf: 6\n");
}

TEST(Merge, ANullReplacesToo) {
  EXPECT_EQ(merged("{a: 1}", "{a: ~}"), "a: \n");
}

TEST(Merge, AMapOverANameExtendsIt) {
  EXPECT_EQ(merged("{dram: lpddr}", "{dram: {rows: 2}}"), "dram:\n  extends: lpddr\n  rows: 2\n");
}

TEST(Merge, AMapWithItsOwnBaseReplaces) {
  EXPECT_EQ(merged("{dram: {rows: 1, columns: 2}}", "{dram: {extends: other, rows: 3}}"),
            "dram:\n  extends: other\n  rows: 3\n");
}

TEST(Merge, NumberedKeysChangeElements) {
  EXPECT_EQ(merged("{l: [{a: 1, b: 2}, {a: 3}]}", "{l: {1: {a: 4}, 0: {b: 5}}}"),
            "l:\n  - a: 1\n    b: 5\n  - a: 4\n");
  EXPECT_EQ(merged("{l: [1, 2, 3]}", "{l: {1: 9}}"), "l: [1, 9, 3]\n");
}

TEST(Merge, RefusesElementsThatAreNotThere) {
  EXPECT_EQ(message_of([] { static_cast<void>(merged("{l: [1, 2]}", "{l: {2: 9}}")); }),
            "over.yaml:1:6: l.2: there is no element 2; the list has 2, counted from 0");
}

TEST(Merge, PlacesFollowTheText) {
  Diagnostics errors;
  const Value result = merge(yaml("{a: 1, b: 2}", "base.yaml"), yaml("b: 3", "over.yaml"), "", errors);
  EXPECT_EQ(result.find("a")->where.file, "base.yaml");
  EXPECT_EQ(result.find("b")->where.file, "over.yaml");
  EXPECT_EQ(result.where.file, "over.yaml");
}

TEST(Override, ReplacesAddsAndDescends) {
  EXPECT_EQ(set("{a: {b: 1}}", "a.b=2"), "a:\n  b: 2\n");
  EXPECT_EQ(set("{a: {b: 1}}", "a.c.d=8 GiB"), "a:\n  b: 1\n  c:\n    d: 8 GiB\n");
  EXPECT_EQ(set("{a: 1}", "b=[1,2]"), "a: 1\nb: [1, 2]\n");
  EXPECT_EQ(set("{a: 1}", "b={c: 2}"), "a: 1\nb:\n  c: 2\n");
  EXPECT_EQ(set("{a: ~}", "a.b=1"), "a:\n  b: 1\n");
  EXPECT_EQ(set("{a: none}", "a.b=1"), "a:\n  b: 1\n");
  EXPECT_EQ(set("{a: 1}", "a=x=y"), "a: x=y\n");
}

TEST(Override, ANameOnTheWayIsExtended) {
  EXPECT_EQ(set("{model: llama3_8b}", "model.layers=2"), "model:\n  extends: llama3_8b\n  layers: 2\n");
  EXPECT_EQ(set("{device: rk3588}", "device.clusters.0.count=2"),
            "device:\n  extends: rk3588\n  clusters:\n    0:\n      count: 2\n");
}

TEST(Override, ReachesElementsByIndex) {
  EXPECT_EQ(set("{l: [{a: 1}, {a: 2}]}", "l.1.a=3"), "l:\n  - a: 1\n  - a: 3\n");
  EXPECT_EQ(set("{l: [1, 2]}", "l.0=7"), "l: [7, 2]\n");
}

TEST(Override, ItsPlaceIsTheCommandLine) {
  Value root = yaml("{a: {b: 1}}");
  apply_override(root, "a.b=2");
  EXPECT_EQ(to_string(root.find("a")->find("b")->where), "--set a.b=2");
  EXPECT_EQ(to_string(root.find("a")->entries[0].where), "--set a.b=2");
  EXPECT_EQ(root.find("a")->where.file, "x.yaml");
}

struct Refusal {
  std::string change;
  std::string message;
};

TEST(Override, RefusesMalformedText) {
  const Refusal refusals[] = {
      {"a", "--set a: has no '='; write it as path.to.key=value, such as model.layers=2"},
      {"", "--set : has no '='; write it as path.to.key=value, such as model.layers=2"},
      {"=1", "--set =1: has an empty step in its path; write it as path.to.key=value"},
      {"a..b=1", "--set a..b=1: has an empty step in its path; write it as path.to.key=value"},
      {".a=1", "--set .a=1: has an empty step in its path; write it as path.to.key=value"},
      {"a.=1", "--set a.=1: has an empty step in its path; write it as path.to.key=value"},
      {"a=", "--set a=: has no value behind '='"},
      {"a=  ", "--set a=  : has no value behind '='"},
      {"a=[1", "--set a=[1: not valid YAML: end of sequence flow not found"},
      {"a=&x 1", "--set a=&x 1: anchors (&name) are not supported; write the value out, or use 'extends'"},
      {"a={b: {c: 1, c: 2}}", "--set a={b: {c: 1, c: 2}}: a.b.c: the key is given twice"},
      {"l.2=1", "--set l.2=1: there is no element 2; the list has 2, counted from 0"},
      {"l.x=1", "--set l.x=1: there is no element x; the list has 2, counted from 0"},
      {"l.-1=1", "--set l.-1=1: there is no element -1; the list has 2, counted from 0"},
      {"l.99999999999999999999=1",
       "--set l.99999999999999999999=1: there is no element 99999999999999999999; the list has 2, counted "
       "from 0"},
  };
  for (const Refusal& refusal : refusals) {
    EXPECT_EQ(message_of([&] { static_cast<void>(set("{a: 1, l: [1, 2]}", refusal.change)); }),
              refusal.message);
  }
}

TEST(Override, ThePathHasABound) {
  std::string path = "a";
  for (int i = 0; i < 100'000; ++i) {
    path += ".a";
  }
  EXPECT_THAT(message_of([&] { static_cast<void>(set("{a: 1}", path + "=1")); }),
              HasSubstr("has more than 64 steps in its path"));
}

}  // namespace
}  // namespace kvsim::config
