// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/kv_format.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"

namespace kvsim::config {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::int64_t vector_bytes(std::string_view format, std::int64_t head_dim) {
  return kv_vector_bytes(parse_kv_format(format), head_dim).count();
}

TEST(KvFormat, IsReadAsWritten) {
  EXPECT_EQ(parse_kv_format("f16"), (KvFormat{.number = KvNumber::f16}));
  EXPECT_EQ(parse_kv_format("F16"), (KvFormat{.number = KvNumber::f16}));
  EXPECT_EQ(parse_kv_format("q4_0"), (KvFormat{.number = KvNumber::q4_0}));
  EXPECT_EQ(parse_kv_format("IQ4_NL"), (KvFormat{.number = KvNumber::iq4_nl}));
  EXPECT_EQ(parse_kv_format("int8"), (KvFormat{.number = KvNumber::int8, .group = 32}));
  EXPECT_EQ(parse_kv_format("int8:g64"), (KvFormat{.number = KvNumber::int8, .group = 64}));
  EXPECT_EQ(parse_kv_format("int4:g32:channel"),
            (KvFormat{.number = KvNumber::int4, .group = 32, .range = KvRange::channel}));
  EXPECT_EQ(parse_kv_format("int4:channel"), parse_kv_format("int4:g32:channel"));
  EXPECT_EQ(parse_kv_format("int4:g64:head"),
            (KvFormat{.number = KvNumber::int4, .group = 64, .range = KvRange::head}));
  EXPECT_EQ(parse_kv_format("int4:head"), (KvFormat{.number = KvNumber::int4, .range = KvRange::head}));
  EXPECT_EQ(parse_kv_format("int4:asym:g32"),
            (KvFormat{.number = KvNumber::int4, .group = 32, .asymmetric = true}));
  EXPECT_EQ(parse_kv_format("int4:range=7.5"),
            (KvFormat{.number = KvNumber::int4, .range = KvRange::fixed, .limit = 7.5}));
}

TEST(KvFormat, NameParsesBack) {
  for (const char* text : {"f32",
                           "f16",
                           "bf16",
                           "fp8_e4m3",
                           "fp8_e5m2",
                           "q8_0",
                           "q5_1",
                           "q5_0",
                           "q4_1",
                           "q4_0",
                           "iq4_nl",
                           "int8:g64",
                           "int4:g128:asym",
                           "int8:head",
                           "int4:g64:head",
                           "int4:head:asym",
                           "int4:g32:channel",
                           "int8:g32:channel:asym",
                           "int8:range=12.25",
                           "int4:range=1e-05"}) {
    EXPECT_EQ(name(parse_kv_format(text)), text);
    EXPECT_EQ(parse_kv_format(name(parse_kv_format(text))), parse_kv_format(text));
  }
  EXPECT_EQ(name(parse_kv_format("int4")), "int4:g32");
}

TEST(KvFormat, WeightFormatsAreRefusedWithTheReason) {
  for (const char* text : {"Q4_K_M", "q4_K", "q6_K", "Q2_K", "q5_k_s", "IQ2_XS", "iq3_xxs", "IQ4_XS", "TQ1_0",
                           "MXFP4", "nvfp4", "Q8_K"}) {
    EXPECT_THAT(message_of([&] { static_cast<void>(parse_kv_format(text)); }),
                AllOf(HasSubstr(text), HasSubstr("made for weights"), HasSubstr("256"), HasSubstr("q4_0")));
  }
}

TEST(KvFormat, WhatIsNotUnderstoodIsRefusedWithTheList) {
  struct Case {
    const char* text;
    const char* reason;
  };
  for (const auto& [text, reason] : {Case{"", "unknown"},
                                     Case{"int3", "unknown"},
                                     Case{"q8_KV", "unknown"},
                                     Case{"f16:g32", "f16 has no group"},
                                     Case{"q4_0:channel", "q4_0 has no group"},
                                     Case{"int4:", "'' is unknown"},
                                     Case{"int4:g", "no group"},
                                     Case{"int4:g0", "no group"},
                                     Case{"int4:g-32", "no group"},
                                     Case{"int4:g33", "even number"},
                                     Case{"int4:g32x", "no group"},
                                     Case{"int4:g99999999999999999999", "no group"},
                                     Case{"int4:g8192", "4096"},
                                     Case{"int4:g32:g64", "two groups"},
                                     Case{"int4:head:channel", "two ranges"},
                                     Case{"int4:asym:asym", "twice"},
                                     Case{"int4:range=", "no range"},
                                     Case{"int4:range=0", "no range"},
                                     Case{"int4:range=-3", "no range"},
                                     Case{"int4:range=nan", "no range"},
                                     Case{"int4:range=1e99", "no range"},
                                     Case{"int4:range=3x", "no range"},
                                     Case{"int4:range=3:head", "two ranges"},
                                     Case{"int4:g32:range=3", "no groups"},
                                     Case{"int4:range=3:asym", "no minimum"},
                                     Case{"f16:range=3", "f16 has no group"},
                                     Case{"int4:token", "'token' is unknown"}}) {
    EXPECT_THAT(message_of([&, t = text] { static_cast<void>(parse_kv_format(t)); }),
                AllOf(HasSubstr(reason), HasSubstr("Allowed: f32, f16, bf16")))
        << text;
  }
}

TEST(KvFormat, BytesOfAVectorCountTheScales) {
  EXPECT_EQ(vector_bytes("f32", 128), 512);
  EXPECT_EQ(vector_bytes("f16", 128), 256);
  EXPECT_EQ(vector_bytes("bf16", 80), 160);
  EXPECT_EQ(vector_bytes("fp8_e4m3", 128), 128);
  EXPECT_EQ(vector_bytes("fp8_e5m2", 96), 96);
  EXPECT_EQ(vector_bytes("q8_0", 32), 34);
  EXPECT_EQ(vector_bytes("q5_1", 32), 24);
  EXPECT_EQ(vector_bytes("q5_0", 32), 22);
  EXPECT_EQ(vector_bytes("q4_1", 32), 20);
  EXPECT_EQ(vector_bytes("q4_0", 32), 18);
  EXPECT_EQ(vector_bytes("iq4_nl", 32), 18);
  EXPECT_EQ(vector_bytes("int4:g32", 32), 16 + 2);
  EXPECT_EQ(vector_bytes("int4:g32:asym", 128), 4 * (16 + 4));
  EXPECT_EQ(vector_bytes("int8:g64", 128), 2 * (64 + 2));
  EXPECT_EQ(vector_bytes("int8:head", 128), 128 + 2);
  EXPECT_EQ(vector_bytes("int4:head:asym", 128), 64 + 4);
  EXPECT_EQ(vector_bytes("int4:g128:head", 128), 64 + 2);
  EXPECT_EQ(vector_bytes("int4:range=8", 80), 40);
  EXPECT_EQ(vector_bytes("int8:range=8", 80), 80);
  // DeepSeek-V2's latent of 512 + 64: published rows per token and layer.
  EXPECT_EQ(vector_bytes("q8_0", 576), 612);
  EXPECT_EQ(vector_bytes("f16", 576), 1152);
}

TEST(KvFormat, ChannelsShareScalesOverTokens) {
  const KvFormat format = parse_kv_format("int4:g32:channel");
  EXPECT_EQ(kv_group_bytes(format, 128).count(), 128 * 2 + 32 * 64);
  EXPECT_EQ(kv_vector_bytes(format, 128).count(), 72) << "64 and a 32nd of 256";
  EXPECT_EQ(kv_group_bytes(parse_kv_format("int8:g64:channel:asym"), 80).count(), 80 * 4 + 64 * 80);
  EXPECT_EQ(values_per_unit(format, 128), 32 * 128);
  EXPECT_EQ(values_per_unit(parse_kv_format("int4:g32"), 128), 128);
  EXPECT_EQ(scale_group(format, 128), 32);
  EXPECT_EQ(scale_group(parse_kv_format("int8:head"), 96), 96);
  EXPECT_EQ(scale_group(parse_kv_format("q8_0"), 96), 32);
  EXPECT_EQ(scale_group(parse_kv_format("f16"), 96), 1);
}

struct WholeCache {
  std::int64_t layers, kv_heads, head_dim, tokens;
  const char* format;
  double mib;
};

TEST(KvFormat, WholeCachesHaveTheSizesThatEnginesPrint) {
  for (const WholeCache& cache : {
           WholeCache{28, 8, 128, 4096, "f16", 448},       // Qwen3-1.7B (node-llama-cpp#560)
           WholeCache{36, 8, 128, 8192, "fp8_e4m3", 576},  // Qwen3-4B, one byte a value
           WholeCache{32, 8, 128, 32768, "f16", 4096},     // Llama-3.1-8B
           WholeCache{32, 8, 128, 32768, "q8_0", 2176},    // and what llama.cpp allocates
           WholeCache{32, 8, 128, 32768, "q4_0", 1152},    //
           WholeCache{16, 4, 256, 1024, "f16", 64},        // Qwen3.5-27B
           WholeCache{16, 4, 256, 1024, "q8_0", 34},       //
           WholeCache{16, 4, 256, 1024, "q4_0", 18},       //
           WholeCache{32, 32, 96, 4096, "q8_0", 816},      // Phi-3.5-mini
           WholeCache{32, 32, 96, 4096, "q4_0", 432},      //
           WholeCache{32, 32, 128, 512, "f32", 512},       // Llama-2-7B (llama.cpp#58)
           WholeCache{27, 1, 576, 65536, "q8_0", 1032.75}  // DeepSeek-V2-Lite's latent alone
       }) {
    const std::int64_t kinds = cache.head_dim == 576 ? 1 : 2;
    const std::int64_t bytes =
        kinds * cache.layers * cache.kv_heads * cache.tokens * vector_bytes(cache.format, cache.head_dim);
    EXPECT_EQ(static_cast<double>(bytes), cache.mib * 1024 * 1024) << cache.format << " " << cache.mib;
  }
}

TEST(KvFormat, HeadsThatDoNotFitAreRefusedWithWhatDivides) {
  const auto message = [](const char* format, std::int64_t head_dim) {
    return message_of([&] { static_cast<void>(vector_bytes(format, head_dim)); });
  };
  EXPECT_THAT(message("q8_0", 80), AllOf(HasSubstr("q8_0"), HasSubstr("multiple of 32"), HasSubstr("80")));
  EXPECT_THAT(message("int4:g64", 96), AllOf(HasSubstr("multiple of 64"), HasSubstr("8, 16, 32")));
  EXPECT_THAT(message("int4:g64:head", 128), HasSubstr("int4:head"));
  EXPECT_THAT(message("int4:head", 33), HasSubstr("odd"));
  EXPECT_THAT(message("f16", 0), HasSubstr("1 to"));
  EXPECT_THAT(message("f16", std::int64_t{1} << 40), HasSubstr("1 to"));
  EXPECT_THAT(message("int4:g64:channel", 80), HasSubstr("no whole number per token"));
}

}  // namespace
}  // namespace kvsim::config
