// SPDX-License-Identifier: Apache-2.0
// Architectures beside Llama: what follows from tensors and keys of theirs.
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/gguf/gguf_model_testing.h"

namespace kvsim::config {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using GgufArchitecture = GgufModel;

TEST_F(GgufArchitecture, OtherArchitecturesFollowFromTheirTensors) {
  for (const char* arch : {"qwen2", "qwen3", "phi3"}) {
    Llama llama = plain(arch);
    if (std::string_view(arch) == "qwen2") {
      llama.tensor("blk.0.attn_q.bias", {64}, 0);
      llama.tensor("blk.0.attn_k.bias", {32}, 0);
      llama.tensor("blk.0.attn_v.bias", {32}, 0);
    } else if (std::string_view(arch) == "qwen3") {
      llama.tensor("blk.0.attn_q_norm.weight", {32}, 0);
      llama.tensor("blk.0.attn_k_norm.weight", {32}, 0);
    } else {
      llama.file.tensors.clear();
      llama.end = 0;
      llama.tensor("token_embd.weight", {64, 10}, 1);
      llama.tensor("rope_factors_long.weight", {16}, 0);
      llama.tensor("rope_factors_short.weight", {16}, 0);
      llama.tensor("blk.0.attn_norm.weight", {64}, 0);
      llama.tensor("blk.0.attn_qkv.weight", {64, 128}, 2);
      llama.tensor("blk.0.attn_output.weight", {64, 64}, 2);
      llama.tensor("blk.0.ffn_norm.weight", {64}, 0);
      llama.tensor("blk.0.ffn_up.weight", {64, 192}, 2);
      llama.tensor("blk.0.ffn_down.weight", {96, 64}, 2);
      llama.tensor("output_norm.weight", {64}, 0);
      llama.tensor("output.weight", {64, 10}, 8);
    }
    const GgufFile made = file(llama.file);
    const LlmSpec model = llm_spec(made);
    EXPECT_EQ(model.qkv_bias, std::string_view(arch) == "qwen2");
    EXPECT_EQ(model.qk_norm, std::string_view(arch) == "qwen3");
    EXPECT_EQ(model.fused_qkv, std::string_view(arch) == "phi3");
    EXPECT_EQ(tensors(made).size(), made.tensors().size());
    EXPECT_EQ(weight_format(made).main, std::string_view(arch) == "phi3" ? "Q4_0" : "Q8_0");
  }
}

Llama gemma(const char* arch) {
  Llama gemma = plain(arch);
  gemma.key("attention.sliding_window", 512);
  gemma.tensor("blk.0.attn_q_norm.weight", {32}, 0);
  gemma.tensor("blk.0.attn_k_norm.weight", {32}, 0);
  gemma.tensor("blk.0.post_attention_norm.weight", {64}, 0);
  gemma.tensor("blk.0.post_ffw_norm.weight", {64}, 0);
  return gemma;
}

TEST_F(GgufArchitecture, GemmaHasLocalLayersAndNormsBehind) {
  const auto local = [&](Llama llama, const auto& change) {
    change(llama);
    const GgufFile made = file(llama.file);
    EXPECT_EQ(tensors(made).size(), made.tensors().size());
    EXPECT_TRUE(llm_spec(made).post_norms && llm_spec(made).qk_norm && llm_spec(made).tied_embeddings);
    return llm_spec(made).local;
  };
  const auto with_mask = [](std::vector<std::uint8_t> mask) {
    return [mask](Llama& l) {
      l.file.array(l.arch + ".attention.sliding_window_pattern", GgufType::boolean, mask);
    };
  };
  const auto nothing = [](Llama&) {};
  EXPECT_EQ(local(gemma("gemma2"), nothing), (LocalLayers{.window = 512, .count = 1, .period = 2}));
  EXPECT_EQ(local(gemma("gemma3"), nothing), (LocalLayers{.window = 512, .count = 5, .period = 6}));
  EXPECT_EQ(local(gemma("gemma3"), [](Llama& l) { l.key("attention.sliding_window_pattern", 4); }),
            (LocalLayers{.window = 512, .count = 3, .period = 4}));
  EXPECT_EQ(local(gemma("gemma3"), with_mask({1, 1, 0, 1, 1, 0, 1})),
            (LocalLayers{.window = 512, .count = 2, .period = 3}));
  EXPECT_EQ(local(gemma("gemma3"), with_mask({1, 1})), (LocalLayers{.window = 512, .count = 2, .period = 2}));

  Llama odd = gemma("gemma3");
  with_mask({1, 0, 1, 1, 0})(odd);
  EXPECT_THAT(refusal(odd.file), HasSubstr("no pattern of local layers"));
  EXPECT_THAT(refusal(plain("gemma3").file), HasSubstr("has no key 'gemma3.attention.sliding_window'"));
}

/// Two heads of 24, of which 8 carry the position; 16 numbers per head after attention; latent of 32 + 8.
Llama deepseek(bool down_projected) {
  Llama l{.arch = "deepseek2"};
  l.keys();
  l.key("block_count", 1);
  l.key("attention.head_count_kv", 1);
  l.key("vocab_size", 10);
  l.key("attention.kv_lora_rank", 32);
  l.key("attention.key_length", 40);
  l.key("attention.value_length", 32);
  l.key("attention.key_length_mla", 24);
  l.key("attention.value_length_mla", 16);
  l.key("rope.dimension_count", 8);
  l.tensor("token_embd.weight", {64, 10});
  l.tensor("blk.0.attn_norm.weight", {64}, 0);
  if (down_projected) {
    l.key("attention.q_lora_rank", 32);
    l.tensor("blk.0.attn_q_a.weight", {64, 32});
    l.tensor("blk.0.attn_q_a_norm.weight", {32}, 0);
    l.tensor("blk.0.attn_q_b.weight", {32, 48});
  } else {
    l.tensor("blk.0.attn_q.weight", {64, 48});
  }
  l.tensor("blk.0.attn_kv_a_mqa.weight", {64, 40});
  l.tensor("blk.0.attn_kv_a_norm.weight", {32}, 0);
  l.tensor("blk.0.attn_k_b.weight", {16, 32, 2}, 1);
  l.tensor("blk.0.attn_v_b.weight", {32, 16, 2});
  l.tensor("blk.0.attn_output.weight", {32, 64});
  l.tensor("blk.0.ffn_norm.weight", {64}, 0);
  l.tensor("blk.0.ffn_gate.weight", {64, 96});
  l.tensor("blk.0.ffn_up.weight", {64, 96});
  l.tensor("blk.0.ffn_down.weight", {96, 64});
  l.tensor("output_norm.weight", {64}, 0);
  l.tensor("output.weight", {64, 10});
  return l;
}

TEST_F(GgufArchitecture, LatentAttentionRunsWithoutExperts) {
  for (const bool down_projected : {false, true}) {
    const GgufFile made = file(deepseek(down_projected).file);
    EXPECT_EQ(
        llm_spec(made).latent,
        (LatentAttention{.kv_rank = 32, .q_rank = down_projected ? 32 : 0, .rope_dim = 8, .value_dim = 16}));
    EXPECT_EQ(llm_spec(made).head_dim, 24);
    EXPECT_EQ(tensors(made).size(), made.tensors().size());
  }
}

/// Four experts of width 32 in place of the feed-forward network.
Llama mixture(const char* arch) {
  Llama l{.arch = arch};
  l.keys();
  l.key("block_count", 1);
  l.key("attention.head_count_kv", 1);
  l.key("vocab_size", 10);
  l.key("expert_count", 4);
  l.key("expert_used_count", 3);
  l.tensor("token_embd.weight", {64, 10});
  l.tensor("blk.0.attn_norm.weight", {64}, 0);
  l.tensor("blk.0.attn_q.weight", {64, 64});
  l.tensor("blk.0.attn_k.weight", {64, 32});
  l.tensor("blk.0.attn_v.weight", {64, 32});
  l.tensor("blk.0.attn_output.weight", {64, 64});
  l.tensor("blk.0.ffn_norm.weight", {64}, 0);
  l.tensor("blk.0.ffn_gate_inp.weight", {64, 4}, 0);
  l.tensor("blk.0.ffn_gate_exps.weight", {64, 32, 4});
  l.tensor("blk.0.ffn_up_exps.weight", {64, 32, 4});
  l.tensor("blk.0.ffn_down_exps.weight", {32, 64, 4});
  l.tensor("output_norm.weight", {64}, 0);
  l.tensor("output.weight", {64, 10});
  return l;
}

TEST_F(GgufArchitecture, ExpertsComeFromTheirKeysAndMergedTensors) {
  const Llama qwen = mixture("qwen3moe");  // no width: a third of the layer's 96
  const GgufFile made = file(qwen.file);
  EXPECT_EQ(llm_spec(made).experts, (Experts{.count = 4, .used = 3, .ffn = 32}));
  EXPECT_EQ(tensors(made).size(), made.tensors().size());

  Llama wide = mixture("llama");  // no width: the layer's own
  EXPECT_EQ(llm_spec(file(wide.file)).experts->ffn, 96);
  wide.key("expert_feed_forward_length", 32);
  EXPECT_EQ(llm_spec(file(wide.file)).experts->ffn, 32);

  Llama deep = mixture("llama");
  deep.key("expert_shared_count", 2);
  deep.key("leading_dense_block_count", 0);
  EXPECT_EQ(llm_spec(file(deep.file)).experts,
            (Experts{.count = 4, .used = 3, .ffn = 96, .shared = 2, .dense_layers = 0}));
}

TEST_F(GgufArchitecture, ExpertsThatMakeNoModelAreRefused) {
  Llama none_left = mixture("llama");
  none_left.key("leading_dense_block_count", 1);
  EXPECT_THAT(refusal(none_left.file), HasSubstr("make no model"));
  Llama few = plain("qwen3moe");
  few.key("expert_count", 2);
  EXPECT_THAT(refusal(few.file), HasSubstr("has no key 'qwen3moe.expert_used_count'"));
  Llama narrow = deepseek(false);
  narrow.key("expert_count", 4);
  narrow.key("expert_used_count", 2);
  EXPECT_THAT(refusal(narrow.file), HasSubstr("has no key 'deepseek2.expert_feed_forward_length'"));
}

}  // namespace
}  // namespace kvsim::config
