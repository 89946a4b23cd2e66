// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/kv_spec.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/error.h"

namespace kvsim::config {
namespace {

using ::testing::HasSubstr;

TEST(KvSpec, ReadsBackWhatItWrites) {
  for (const char* text :
       {"f16", "q8_0", "k=q8_0,v=q4_0", "int8:g64+window=512", "f16+window=512+sinks=4",
        "f16+sinks=4+h2o=256", "f16+window=100+h2o=256", "f16+entropy=256", "q4_0+topk=128",
        "int4:g32:channel+first=5%+recent=32", "int4:range=2.5", "k=int4:range=8,v=int8:range=1e-06+window=9",
        "int8:range=1000000", "q4_0+first=128", "k=int4:g32:channel,v=int4:g32"}) {
    const KvSpec spec = parse_kv_spec(text);
    EXPECT_EQ(parse_kv_spec(name(spec)), spec) << text << " became " << name(spec);
  }
  EXPECT_EQ(name(parse_kv_spec("v=q8_0,k=q8_0")), "q8_0");
}

TEST(KvSpec, ReadsEveryOption) {
  const KvSpec spec = parse_kv_spec("k=f32,v=bf16+h2o=100+window=40+sinks=4+first=12.5%+recent=9");
  EXPECT_EQ(spec.k.number, KvNumber::f32);
  EXPECT_EQ(spec.v.number, KvNumber::bf16);
  EXPECT_EQ(spec.h2o, 100);
  EXPECT_EQ(spec.window, 40);
  EXPECT_EQ(spec.sinks, 4);
  EXPECT_EQ(spec.first_share, 0.125);
  EXPECT_EQ(spec.recent, 9);
  EXPECT_EQ(recent_share(spec), 40);
  EXPECT_EQ(recent_share(parse_kv_spec("f16+h2o=100")), 50);
}

struct Bad {
  const char* text;
  const char* says;
};

TEST(KvSpec, SaysWhatIsWrong) {
  for (const Bad& bad : {Bad{"", "f16"},
                         Bad{"q9", "q8_0"},
                         Bad{"Q4_K_M", "weights"},
                         Bad{"k=f16", "both"},
                         Bad{"k=f16,k=f16", "k=TYPE"},
                         Bad{"x=f16,v=f16", "k=TYPE"},
                         Bad{"f16+", "+window=N"},
                         Bad{"f16+windows=4", "+window=N"},
                         Bad{"f16+window", "+window=N"},
                         Bad{"f16+window=", "number of tokens"},
                         Bad{"f16+window=0", "from 1"},
                         Bad{"f16+window=-5", "from 1"},
                         Bad{"f16+window=99999999999999999999", "from 1"},
                         Bad{"f16+window=4+window=5", "twice"},
                         Bad{"f16+sinks=4", "need a window"},
                         Bad{"f16+h2o=8+entropy=8", "give one"},
                         Bad{"f16+h2o=8+window=6+sinks=2", "leaves none"},
                         Bad{"f16+first=0%", "above 0"},
                         Bad{"f16+first=101%", "at most 100"},
                         Bad{"f16+window=50%", "number of tokens"},
                         Bad{"f16+topk=32+window=64", "topk"},
                         Bad{"f16+topk=8", "pages of 16"},
                         Bad{"q4_0+topk=32+recent=4", "without recent"},
                         Bad{"int4:g32:channel+window=64", "by channel"},
                         Bad{"f16 +window=4", "f16"}}) {
    try {
      static_cast<void>(parse_kv_spec(bad.text));
      ADD_FAILURE() << bad.text << " was taken";
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), HasSubstr(bad.says)) << bad.text;
    }
  }
}

TEST(KvSpec, GroupsByChannelNeedTheirCellsSideBySide) {
  const KvFormat by_channel = parse_kv_format("int4:g32:channel");
  const auto check = [](const KvFormat& format, const KvArrangement& at) { check_groups(format, at); };
  EXPECT_NO_THROW(check(by_channel, {.layout = KvLayout::head_major}));
  EXPECT_NO_THROW(check(by_channel, {.layout = KvLayout::paged, .block = 64}));
  EXPECT_THROW(check(by_channel, {.layout = KvLayout::token_major}), UserError);
  EXPECT_THROW(check(by_channel, {.layout = KvLayout::paged, .block = 48}), UserError);
  EXPECT_THROW(check(by_channel, {.layout = KvLayout::head_major, .row_alignment = Bytes(64)}), UserError);
  EXPECT_NO_THROW(check(parse_kv_format("int4:g32"), {.row_alignment = Bytes(64)}));
}

}  // namespace
}  // namespace kvsim::config
