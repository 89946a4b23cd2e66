// SPDX-License-Identifier: Apache-2.0
// Sizes that engines told in their logs.
#include "traces/kv_cache/kv_kinds.h"

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "configs/error/error.h"

namespace kvsim::trace {
namespace {

using namespace kvsim::literals;

config::KvFormat format(const char* name) {
  return config::parse_kv_format(name);
}

struct HeadsCase {
  const char* name;
  std::int64_t layers, kv_heads, head_dim, tokens;
  const char* format;
  Bytes bytes;
};

TEST(Kinds, SizesOfHeadsAreExact) {
  for (const HeadsCase& c : std::vector<HeadsCase>{
           {"Qwen3-1.7B", 28, 8, 128, 4096, "f16", 448_MiB},
           {"Qwen3-4B", 36, 8, 128, 4096, "f16", 576_MiB},
           {"Qwen3-4B, 1 B per value", 36, 8, 128, 4096, "fp8_e4m3", 288_MiB},
           {"Qwen3-4B, 1 B per value", 36, 8, 128, 6144, "fp8_e4m3", 432_MiB},
           {"Qwen3-4B, 1 B per value", 36, 8, 128, 8192, "fp8_e4m3", 576_MiB},
           {"Qwen3-8B, a token", 36, 8, 128, 1, "f16", 144_KiB},
           {"Llama-3-8B, less 32 B of the log", 32, 8, 128, 1'048'576, "f16", 137'438'953'472_B},
           {"Phi-3.5-mini, less 32 B of the log", 32, 32, 96, 131'072, "f16", 51'539'607'552_B},
           {"Llama-3.2-3B", 28, 8, 128, 131'072, "f16", 14'336_MiB},
           {"Qwen1.5-72B", 80, 64, 128, 32'848, "f16", 82'120_MiB},
           {"Llama-2-7B", 32, 32, 128, 512, "f16", 256_MiB},
           {"Llama-2-7B", 32, 32, 128, 512, "f32", 512_MiB},
           {"TinyLlama", 22, 4, 64, 2048, "f16", 44_MiB},
           {"LLaMA-30B, 12.19 MiB in the log", 60, 52, 128, 8, "f16", 12_MiB + 192_KiB},
           {"Llama-3.1-8B", 32, 8, 128, 32'768, "f16", 4096_MiB},
           {"Llama-3.1-8B", 32, 8, 128, 32'768, "q4_0", 1152_MiB},
           {"Llama-3.1-8B", 32, 8, 128, 32'768, "q8_0", 2176_MiB},
           {"Qwen3.5-27B, its attention layers", 16, 4, 256, 1024, "f16", 64_MiB},
           {"Qwen3.5-27B, its attention layers", 16, 4, 256, 1024, "q8_0", 34_MiB},
           {"Qwen3.5-27B, its attention layers", 16, 4, 256, 1024, "q4_0", 18_MiB},
           {"Llama-2-7B; the log says 10689.56 MB, 0.5 % more", 32, 32, 128, 21'275, "f16",
            11'154'227'200_B}}) {
    const Bytes row = row_bytes(HeadsRow{
        .kv_heads = c.kv_heads, .head_dim = c.head_dim, .k = format(c.format), .v = format(c.format)});
    EXPECT_EQ(cache_bytes(std::vector<KvLayers>{{.layers = c.layers, .row = row, .cells = c.tokens}}),
              c.bytes)
        << c.name << ", " << c.tokens << " tokens, " << c.format;
  }
}

/// 2 x layers x KV heads x head_dim x tokens x bytes per value, in cases that the field quotes.
TEST(Kinds, SizesThatTheFieldClaims) {
  const auto bytes = [](const HeadsCase& c) {
    const Bytes row = row_bytes(HeadsRow{
        .kv_heads = c.kv_heads, .head_dim = c.head_dim, .k = format(c.format), .v = format(c.format)});
    return cache_bytes(std::vector<KvLayers>{{.layers = c.layers, .row = row, .cells = c.tokens}});
  };
  for (const HeadsCase& c : std::vector<HeadsCase>{
           {"7B, heads of their own", 32, 32, 128, 2048, "f16", 1'073'741'824_B},
           {"the same", 32, 32, 128, 2048, "q8_0", 570'425'344_B},
           {"the same", 32, 32, 128, 2048, "q4_0", 301'989'888_B},
           {"\"0.5B, about 67 MB\", which is K alone", 16, 16, 64, 2048, "f16", 2 * 67'108'864_B},
           {"Qwen-7B", 32, 32, 128, 512, "f16", 256_MiB},
           {"Qwen-7B", 32, 32, 128, 2048, "f16", 1_GiB},
           {"Qwen-7B", 32, 32, 128, 8192, "f16", 4_GiB},
           {"Qwen-7B", 32, 32, 128, 32'768, "f16", 16_GiB},
           {"Qwen-7B", 32, 32, 128, 131'072, "f16", 64_GiB},
           {"Llama-2-70B", 80, 8, 128, 4096, "f16", 1280_MiB},
           {"the same with a KV head for each query head", 80, 64, 128, 4096, "f16", 8 * 1280_MiB},
           {"Llama-3-8B, a token", 32, 8, 128, 1, "f16", 128_KiB},
           {"its K and V in one layer, not n x 8192 B each", 1, 8, 128, 1, "f16", 2 * 2048_B},
           {"INT8 with a scale per head: half and 2 B of 128", 1, 1, 128, 1, "int8:head", 2 * 130_B},
           {"INT4 with groups of 128: a quarter and 2 B", 1, 1, 128, 1, "int4:g128", 2 * 66_B},
           {"INT4 with groups of 128 and a minimum", 1, 1, 128, 1, "int4:g128:asym", 2 * 68_B}}) {
    EXPECT_EQ(bytes(c), c.bytes) << c.name << ", " << c.tokens << " tokens, " << c.format;
  }
}

TEST(Kinds, LatentsAreKeptOncePerLayer) {
  const LatentRow v3{.latent = 512, .rope = 64};
  EXPECT_EQ(cache_bytes(std::vector<KvLayers>{{.layers = 61, .row = row_bytes(v3), .cells = 32'768}}),
            1952_MiB + 244_MiB);
  LatentRow part = v3;
  part.rope = 0;  // some engines keep the parts apart
  EXPECT_EQ(cache_bytes(std::vector<KvLayers>{{.layers = 61, .row = row_bytes(part), .cells = 32'768}}),
            1952_MiB);
  const auto lite = [](Bytes row) {
    return cache_bytes(std::vector<KvLayers>{{.layers = 27, .row = row, .cells = 65'536}});
  };
  const LatentRow q8{.latent = 512, .rope = 64, .format = format("q8_0")};
  EXPECT_EQ(row_bytes(q8), 612_B);
  EXPECT_EQ(lite(row_bytes(q8)), 1032_MiB + 768_KiB);
  EXPECT_EQ(lite(584_B), 985_MiB + 512_KiB);  // rows of ik_llama.cpp's q8_KV
  EXPECT_EQ(lite(transposed_row_bytes(q8)), 1728_MiB);
  const HeadsRow expanded{.kv_heads = 16,
                          .head_dim = 192};  // what V2-Lite would keep without latents, V padded
  EXPECT_EQ(ratio(row_bytes(expanded), row_bytes(v3)), 16 * 192 * 2 / 576.0);
}

TEST(Kinds, WindowsHaveRoomForAUbatchMore) {
  EXPECT_EQ(cells({.context = 8192, .window = 4096}), 4608);
  EXPECT_EQ(cells({.context = 4096, .window = 4096}), 4096);
  EXPECT_EQ(cells({.context = 32'768, .window = 512}), 1024);
  EXPECT_EQ(cells({.context = 32'768, .window = 512, .ubatch = 100}), 768);
  EXPECT_EQ(cells({.context = 32'768, .window = 512, .sequences = 4}), 2560);
  EXPECT_EQ(local_layers({.layers = 26, .period = 2, .locals = 1}), 13);
  EXPECT_EQ(local_layers({.layers = 26, .period = 6, .locals = 5}), 22);
  EXPECT_EQ(local_layers({.layers = 34, .period = 6, .locals = 5}), 29);
  EXPECT_EQ(local_layers({.layers = 7, .period = 1, .locals = 0}), 0);
  EXPECT_THROW(static_cast<void>(local_layers({.layers = 7, .period = 2, .locals = 3})), InternalError);
}

/// What llama.cpp allocates, in MiB, at 4096, 8192 and 32768 tokens.
struct GemmaCase {
  const char* name;
  Interleaving pattern;
  std::int64_t kv_heads, head_dim, window;
  const char* format;
  std::vector<std::int64_t> mib;
};

TEST(Kinds, LocalAndGlobalLayersAddUpToWhatLlamaCppAllocates) {
  const Interleaving gemma2_2b{26, 2, 1}, gemma2_9b{42, 2, 1}, gemma3_1b{26, 6, 5}, gemma3_4b{34, 6, 5};
  for (const GemmaCase& c :
       std::vector<GemmaCase>{{"gemma2-2b", gemma2_2b, 4, 256, 4096, "f16", {416, 650, 1898}},
                              {"gemma2-2b", gemma2_2b, 4, 256, 4096, "q8_0", {221, 345, 1008}},
                              {"gemma2-2b", gemma2_2b, 4, 256, 4096, "q4_0", {117, 183, 534}},
                              {"gemma2-9b", gemma2_9b, 8, 256, 4096, "f16", {1344, 2100, 6132}},
                              {"gemma2-9b", gemma2_9b, 8, 256, 4096, "q8_0", {714, 1116, 3258}},
                              {"gemma2-9b", gemma2_9b, 8, 256, 4096, "q4_0", {378, 591, 1725}},
                              {"gemma3-1b", gemma3_1b, 1, 256, 512, "f16", {38, 54, 150}},
                              {"gemma3-1b", gemma3_1b, 1, 256, 512, "q8_0", {20, 29, 80}},
                              {"gemma3-1b", gemma3_1b, 1, 256, 512, "q4_0", {11, 15, 42}},
                              {"gemma3-4b", gemma3_4b, 4, 256, 1024, "f16", {254, 334, 814}},
                              {"gemma3-4b", gemma3_4b, 4, 256, 1024, "q8_0", {135, 177, 432}},
                              {"gemma3-4b", gemma3_4b, 4, 256, 1024, "q4_0", {71, 94, 229}}}) {
    const Bytes row = row_bytes(HeadsRow{
        .kv_heads = c.kv_heads, .head_dim = c.head_dim, .k = format(c.format), .v = format(c.format)});
    const std::int64_t local = local_layers(c.pattern);
    for (std::size_t i = 0; i < 3; ++i) {
      const std::int64_t context = std::vector<std::int64_t>{4096, 8192, 32'768}[i];
      const std::vector<KvLayers> classes{
          {.layers = c.pattern.layers - local, .row = row, .cells = context},
          {.layers = local, .row = row, .cells = cells({.context = context, .window = c.window})}};
      EXPECT_LE(std::abs((cache_bytes(classes) - Bytes(c.mib[i] << 20)).count()),
                1 << 19)  // the log's rounding
          << c.name << ' ' << c.format << ' ' << context;
    }
  }
}

TEST(Kinds, Gemma4SharesKvBetweenItsLastLayers) {
  // E4B: 24 of its 42 layers keep K and V, 2 heads x 256; the logs' 160 and 60 MiB are of the local ones.
  const std::int64_t local = local_layers({.layers = 42 - 18, .period = 6, .locals = 5});
  const Bytes row = row_bytes(HeadsRow{.kv_heads = 2, .head_dim = 256});
  EXPECT_EQ(cache_bytes(std::vector<KvLayers>{{.layers = local, .row = row, .cells = 4096}}), 160_MiB);
  EXPECT_EQ(cache_bytes(std::vector<KvLayers>{{.layers = local, .row = row, .cells = 1536}}), 60_MiB);
}

TEST(Kinds, RecurrentStateDoesNotGrowWithTokens) {
  // Mamba-2.8B: 64 layers of 2 x 2560, state 16, convolution 4
  const Bytes state = state_bytes({.layers = 64, .inner = 5120, .state = 16, .conv = 4});
  EXPECT_EQ(state, 23_MiB + 768_KiB);
  EXPECT_EQ(state * 512, 11_GiB + 896_MiB);  // 512 sequences
  // Qwen3.5-9B: 32 KiB per token, and 50 MiB of state as its log says
  for (const auto& [tokens, mib] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{4096, 178}, {131'072, 4146}}) {
    const Bytes row = row_bytes(HeadsRow{.kv_heads = 4, .head_dim = 256});
    EXPECT_EQ(cache_bytes(std::vector<KvLayers>{{.layers = 8, .row = row, .cells = tokens}}) + 50_MiB,
              Bytes(mib << 20));
  }
}

TEST(Kinds, WhatDoesNotFitIsRefused) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_THROW(static_cast<void>(row_bytes(LatentRow{.latent = 512, .rope = 65, .format = format("q8_0")})),
               UserError);
  EXPECT_THROW(static_cast<void>(row_bytes(LatentRow{.latent = kMost, .rope = 64})), UserError);
  EXPECT_THROW(
      static_cast<void>(cache_bytes(std::vector<KvLayers>{{.layers = 2, .row = 1_B, .cells = kMost}})),
      UserError);
  EXPECT_THROW(static_cast<void>(state_bytes({.layers = kMost, .inner = 2, .state = 1, .conv = 1})),
               UserError);
}

}  // namespace
}  // namespace kvsim::trace
