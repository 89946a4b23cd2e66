// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/tensors.h"

#include <algorithm>
#include <map>
#include <ostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "configs/schema/yaml.h"
#include "configs/spec/resolve.h"

namespace kvsim::config {
namespace {

using testing::HasSubstr;

RunSpec run_spec(const std::string& model, const std::string& format) {
  Diagnostics errors;
  return resolve(parse_yaml(
      {.name = "x.yaml", .text = "{device: rk3588, model: " + model + ", engine: {weights: " + format + "}}"},
      errors));
}

std::vector<TensorInfo> tensors_of(const std::string& model, const std::string& format) {
  const RunSpec run = run_spec(model, format);
  return tensors(run.model, run.engine.weights);
}

struct ModelFile {
  std::string model;
  std::string format;
  std::int64_t bytes;
  std::string matrices;  ///< how many are stored in each type
};

std::ostream& operator<<(std::ostream& out, const ModelFile& file) {
  return out << file.model << " " << file.format;
}

// Made with llama.cpp's own quantiser rules and ggml-common.h's sizes (llama.cpp 34af94cd9): tensor data of
// the file.
const ModelFile kFiles[] = {
    {"llama3_8b", "F16", 16061054976, "F16:226"},
    {"llama3_8b", "Q8_0", 8532934656, "Q8_0:226"},
    {"llama3_8b", "Q4_0", 4653375488, "Q4_0:225 Q6_K:1"},
    {"llama3_8b", "IQ4_XS", 4476526592, "IQ4_XS:189 Q5_K:36 Q6_K:1"},
    {"llama3_8b", "Q4_K_M", 4912898048, "Q4_K:193 Q6_K:33"},
    {"llama3_2_1b", "F16", 2471764096, "F16:113"},
    {"llama3_2_1b", "Q8_0", 1313251456, "Q8_0:113"},
    {"llama3_2_1b", "Q4_0", 763097216, "Q4_0:112 Q6_K:1"},
    {"llama3_2_1b", "IQ4_XS", 740552832, "IQ4_XS:94 Q5_K:18 Q6_K:1"},
    {"llama3_2_1b", "Q4_K_M", 799862912, "Q4_K:96 Q6_K:17"},
    {"llama2_7b", "F16", 13477363712, "F16:226"},
    {"llama2_7b", "Q8_0", 7160348672, "Q8_0:226"},
    {"llama2_7b", "Q4_0", 3825065984, "Q4_0:225 Q6_K:1"},
    {"llama2_7b", "IQ4_XS", 3646775296, "IQ4_XS:221 Q5_K:4 Q6_K:1"},
    {"llama2_7b", "Q4_K_M", 4080263168, "Q4_K:193 Q6_K:33"},
    {"tinyllama_1_1b", "F16", 2200281088, "F16:156"},
    {"tinyllama_1_1b", "Q8_0", 1169072128, "Q8_0:156"},
    {"tinyllama_1_1b", "Q4_0", 635990016, "Q4_0:155 Q6_K:1"},
    {"tinyllama_1_1b", "IQ4_XS", 609071104, "IQ4_XS:131 Q5_K:24 Q6_K:1"},
    {"tinyllama_1_1b", "Q4_K_M", 667078656, "Q4_K:135 Q6_K:21"},
    {"qwen2_5_0_5b", "F16", 988208640, "F16:169"},
    {"qwen2_5_0_5b", "Q8_0", 525120000, "Q8_0:169"},
    {"qwen2_5_0_5b", "Q4_0", 346206720, "Q4_0:168 Q8_0:1"},
    {"qwen2_5_0_5b", "IQ4_XS", 345497088, "IQ4_NL:120 IQ4_XS:21 Q5_1:24 Q5_K:3 Q8_0:1"},
    {"qwen2_5_0_5b", "Q4_K_M", 391859712, "Q4_K:12 Q5_0:132 Q6_K:12 Q8_0:13"},
    {"qwen3_0_6b", "F16", 1192230912, "F16:197"},
    {"qwen3_0_6b", "Q8_0", 633495552, "Q8_0:197"},
    {"qwen3_0_6b", "Q4_0", 375614464, "Q4_0:196 Q6_K:1"},
    {"qwen3_0_6b", "IQ4_XS", 363326464, "IQ4_XS:193 Q5_K:3 Q6_K:1"},
    {"qwen3_0_6b", "Q4_K_M", 390753280, "Q4_K:168 Q6_K:29"},
    {"qwen3_1_7b", "F16", 3441397760, "F16:197"},
    {"qwen3_1_7b", "Q8_0", 1828474880, "Q8_0:197"},
    {"qwen3_1_7b", "Q4_0", 1048471552, "Q4_0:196 Q6_K:1"},
    {"qwen3_1_7b", "IQ4_XS", 1010329600, "IQ4_XS:193 Q5_K:3 Q6_K:1"},
    {"qwen3_1_7b", "Q4_K_M", 1101457408, "Q4_K:168 Q6_K:29"},
    {"gemma3_1b", "Q8_0", 1062773248, "Q8_0:183"},
    {"gemma3_1b", "Q4_0", 713892352, "Q4_0:182 Q8_0:1"},
    {"gemma3_1b", "Q4_K_M", 799525120, "Q4_K:39 Q5_0:117 Q6_K:13 Q8_0:14"},
    {"gemma3_4b", "Q8_0", 4123860992, "Q8_0:239"},
    {"gemma3_4b", "Q4_0", 2356970752, "Q4_0:238 Q6_K:1"},
    {"gemma3_4b", "Q4_K_M", 2483352832, "Q4_K:204 Q6_K:35"},
    {"gemma2_2b", "Q8_0", 2778448896, "Q8_0:183"},
    {"gemma2_2b", "Q4_0", 1623462912, "Q4_0:182 Q6_K:1"},
    {"gemma2_2b", "Q4_K_M", 1702536192, "Q4_K:156 Q6_K:27"},
    {"phi3_5_mini", "F16", 7642558848, "F16:130"},
    {"phi3_5_mini", "Q8_0", 4060483968, "Q8_0:130"},
    {"phi3_5_mini", "Q4_0", 2175438720, "Q4_0:129 Q6_K:1"},
    {"phi3_5_mini", "IQ4_XS", 2074843008, "IQ4_XS:125 Q5_K:4 Q6_K:1"},
    {"phi3_5_mini", "Q4_K_M", 2396032896, "Q4_K:97 Q6_K:33"},
    {"llama3_8b", "Q2_K", 3171295232, "Q2_K:129 Q3_K:64 Q4_K:32 Q6_K:1"},
    {"llama3_8b", "Q3_K_M", 4011081728, "Q3_K:129 Q4_K:92 Q5_K:4 Q6_K:1"},
    {"llama3_2_1b", "Q2_K", 573042816, "Q2_K:64 Q3_K:32 Q4_K:16 Q6_K:1"},
    {"llama3_2_1b", "Q3_K_M", 683012224, "Q3_K:64 Q4_K:45 Q5_K:3 Q6_K:1"},
    {"llama2_7b", "Q2_K", 2532122624, "Q2_K:129 Q3_K:96 Q6_K:1"},
    {"llama2_7b", "Q3_K_M", 3297263616, "Q3_K:129 Q4_K:92 Q5_K:4 Q6_K:1"},
    {"tinyllama_1_1b", "Q2_K", 431394816, "Q2_K:89 Q3_K:44 Q4_K:22 Q6_K:1"},
    {"tinyllama_1_1b", "Q3_K_M", 547667968, "Q3_K:89 Q4_K:63 Q5_K:3 Q6_K:1"},
    {"qwen2_5_0_5b", "Q2_K", 332659200, "Q3_K:24 Q4_0:120 Q5_0:24 Q8_0:1"},
    {"qwen2_5_0_5b", "Q3_K_M", 349518336, "Q4_0:96 Q4_K:23 Q5_0:46 Q5_1:2 Q5_K:1 Q8_0:1"},
    {"qwen3_0_6b", "Q2_K", 290286592, "Q2_K:112 Q3_K:84 Q6_K:1"},
    {"qwen3_0_6b", "Q3_K_M", 341175296, "Q3_K:112 Q4_K:81 Q5_K:3 Q6_K:1"},
    {"qwen3_1_7b", "Q2_K", 771844096, "Q2_K:112 Q3_K:84 Q6_K:1"},
    {"qwen3_1_7b", "Q3_K_M", 933586944, "Q3_K:112 Q4_K:81 Q5_K:3 Q6_K:1"},
    {"gemma3_1b", "Q2_K", 683281408, "Q3_K:52 Q4_0:104 Q5_0:26 Q8_0:1"},
    {"gemma3_1b", "Q3_K_M", 715883008, "Q4_0:104 Q4_K:51 Q5_0:24 Q5_1:2 Q5_K:1 Q8_0:1"},
    {"gemma3_4b", "Q2_K", 1722623232, "Q2_K:136 Q3_K:102 Q6_K:1"},
    {"gemma3_4b", "Q3_K_M", 2091918592, "Q3_K:136 Q4_K:98 Q5_K:4 Q6_K:1"},
    {"gemma2_2b", "Q2_K", 1223783424, "Q2_K:104 Q3_K:78 Q6_K:1"},
    {"gemma2_2b", "Q3_K_M", 1455621120, "Q3_K:104 Q4_K:75 Q5_K:3 Q6_K:1"},
    {"phi3_5_mini", "Q2_K", 1507478400, "Q2_K:33 Q3_K:96 Q6_K:1"},
    {"phi3_5_mini", "Q3_K_M", 1961816448, "Q3_K:33 Q4_K:92 Q5_K:4 Q6_K:1"},
    {"qwen3_30b_a3b", "F16", 61089832960, "F16:338"},
    {"qwen3_30b_a3b", "Q8_0", 32477962240, "Q8_0:338"},
    {"qwen3_30b_a3b", "Q4_0", 17298520064, "Q4_0:337 Q6_K:1"},
    {"qwen3_30b_a3b", "IQ4_XS", 16551122944, "IQ4_XS:283 Q5_K:54 Q6_K:1"},
    {"qwen3_30b_a3b", "Q4_K_M", 18550716416, "Q4_K:289 Q6_K:49"},
    {"qwen3_30b_a3b", "Q3_K_M", 14705876992, "Q3_K:193 Q4_K:139 Q5_K:5 Q6_K:1"},
    {"qwen3_30b_a3b", "Q2_K", 11252639744, "Q2_K:193 Q3_K:96 Q4_K:48 Q6_K:1"},
    {"deepseek_v2_lite", "F16", 31420037120, "F16:296"},
    {"deepseek_v2_lite", "Q8_0", 16698521600, "Q8_0:296"},
    {"deepseek_v2_lite", "Q4_0", 8901113856, "Q4_0:295 Q6_K:1"},
    {"deepseek_v2_lite", "IQ4_XS", 8643692544, "IQ4_NL:51 IQ4_XS:239 Q5_1:3 Q5_K:2 Q6_K:1"},
    {"deepseek_v2_lite", "Q4_K_M", 10363959296, "Q4_K:229 Q5_0:41 Q6_K:13 Q8_0:13"},
    {"deepseek_v2_lite", "Q3_K_M", 8126370816, "Q3_K:188 Q4_0:27 Q4_K:53 Q5_0:26 Q5_1:1 Q6_K:1"},
    {"deepseek_v2_lite", "Q2_K", 6433103872, "Q2_K:188 Q3_K:53 Q4_0:54 Q6_K:1"},
    {"mixtral_8x7b", "F16", 93408215040, "F16:226"},
    {"mixtral_8x7b", "Q8_0", 49625579520, "Q8_0:226"},
    {"mixtral_8x7b", "Q4_0", 26442850304, "Q4_0:161 Q6_K:1 Q8_0:64"},
    {"mixtral_8x7b", "IQ4_XS", 25373401088, "IQ4_XS:125 Q5_K:36 Q6_K:1 Q8_0:64"},
    {"mixtral_8x7b", "Q4_K_M", 28447727616, "Q4_K:113 Q5_K:32 Q6_K:17 Q8_0:64"},
    {"mixtral_8x7b", "Q3_K_M", 22545711104, "Q3_K:97 Q4_K:30 Q5_K:34 Q6_K:1 Q8_0:64"},
    {"mixtral_8x7b", "Q2_K", 17310490624, "Q2_K:97 Q3_K:32 Q5_K:32 Q6_K:1 Q8_0:64"},
};

class EveryFile : public testing::TestWithParam<ModelFile> {};

TEST_P(EveryFile, HasTheBytesOfLlamaCpp) {
  EXPECT_EQ(weight_bytes(tensors_of(GetParam().model, GetParam().format)).count(), GetParam().bytes);
}

TEST_P(EveryFile, HasTheTypesOfLlamaCpp) {
  std::map<std::string, int> counts;
  for (const TensorInfo& tensor : tensors_of(GetParam().model, GetParam().format)) {
    if (tensor.role != TensorRole::vector && tensor.role != TensorRole::router) {
      ++counts[tensor.type.name];
    }
  }
  std::string text;
  for (const auto& [type, count] : counts) {
    text += (text.empty() ? "" : " ") + type + ":" + std::to_string(count);
  }
  EXPECT_EQ(text, GetParam().matrices);
}

TEST_P(EveryFile, LiesInOrderAlignedWithoutOverlap) {
  Bytes end;
  for (const TensorInfo& tensor : tensors_of(GetParam().model, GetParam().format)) {
    EXPECT_EQ(tensor.offset.count() % kTensorAlignment.count(), 0) << tensor.name;
    EXPECT_GE(tensor.offset, end) << tensor.name;
    EXPECT_LT(tensor.offset - end, kTensorAlignment) << tensor.name;
    EXPECT_EQ(tensor.bytes, row_bytes(tensor.type, tensor.columns) * tensor.rows) << tensor.name;
    end = tensor.offset + tensor.bytes;
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, EveryFile, testing::ValuesIn(kFiles),
                         [](const auto& param) { return param.param.model + "_" + param.param.format; });

TEST(Tensors, Phi3MiniIsPhi35MiniWithoutRopeFactors) {
  EXPECT_EQ(weight_bytes(tensors_of("phi3_mini", "IQ4_XS")).count(),
            weight_bytes(tensors_of("phi3_5_mini", "IQ4_XS")).count() - 96 * 4);
}

std::vector<std::string> names(const std::string& model, std::size_t first, std::size_t count) {
  std::vector<std::string> result;
  const std::vector<TensorInfo> all = tensors_of(model, "Q4_0");
  for (std::size_t i = first; i < first + count; ++i) {
    result.push_back(all.at(i).name);
  }
  return result;
}

TEST(Tensors, OfALlamaLayer) {
  EXPECT_THAT(names("llama3_8b", 0, 10),
              testing::ElementsAre("token_embd.weight", "blk.0.attn_norm.weight", "blk.0.attn_q.weight",
                                   "blk.0.attn_k.weight", "blk.0.attn_v.weight", "blk.0.attn_output.weight",
                                   "blk.0.ffn_norm.weight", "blk.0.ffn_gate.weight", "blk.0.ffn_up.weight",
                                   "blk.0.ffn_down.weight"));
  const std::vector<TensorInfo> all = tensors_of("llama3_8b", "Q4_0");
  EXPECT_EQ(all.size(), 1U + 32 * 9 + 2);
  EXPECT_EQ(all[all.size() - 2].name, "output_norm.weight");
  EXPECT_EQ(all.back().name, "output.weight");
  EXPECT_EQ(all.back().layer, std::nullopt);
  EXPECT_EQ(all[10].layer, Layer(1));
}

TEST(Tensors, OfQwenLayersHaveBiasesOrNorms) {
  EXPECT_THAT(names("qwen2_5_0_5b", 2, 6),
              testing::ElementsAre("blk.0.attn_q.weight", "blk.0.attn_q.bias", "blk.0.attn_k.weight",
                                   "blk.0.attn_k.bias", "blk.0.attn_v.weight", "blk.0.attn_v.bias"));
  EXPECT_THAT(names("qwen3_0_6b", 5, 3),
              testing::ElementsAre("blk.0.attn_output.weight", "blk.0.attn_q_norm.weight",
                                   "blk.0.attn_k_norm.weight"));
}

TEST(Tensors, OfAFusedLayer) {
  const std::vector<TensorInfo> all = tensors_of("phi3_mini", "Q4_K_M");
  EXPECT_EQ(all[2].name, "blk.0.attn_qkv.weight");
  EXPECT_EQ(all[2].rows, 3 * 3072);
  EXPECT_EQ(all[2].type.name, "Q6_K");
  EXPECT_EQ(all[5].name, "blk.0.ffn_up.weight");
  EXPECT_EQ(all[5].rows, 2 * 8192);
}

TEST(Tensors, OfALayerWithExpertsAreMergedByKind) {
  const std::vector<TensorInfo> all = tensors_of("deepseek_v2_lite", "Q4_K_M");
  const auto is_there = [&](const std::string& name) {
    return std::ranges::find(all, name, &TensorInfo::name) != all.end();
  };
  const auto found = [&](const std::string& name) {
    const auto at = std::ranges::find(all, name, &TensorInfo::name);
    EXPECT_NE(at, all.end()) << name;
    return at == all.end() ? TensorInfo() : *at;
  };
  EXPECT_EQ(found("blk.0.ffn_down.weight").columns, 10944) << "the first layer is dense";
  EXPECT_FALSE(is_there("blk.0.ffn_gate_inp.weight"));
  EXPECT_FALSE(is_there("blk.1.ffn_down.weight"));
  EXPECT_EQ(found("blk.1.ffn_gate_inp.weight").bytes, Bytes(64 * 2048 * 4)) << "F32 in every format";
  EXPECT_EQ(found("blk.1.ffn_gate_exps.weight").rows, 64 * 1408);
  EXPECT_EQ(found("blk.1.ffn_up_exps.weight").columns, 2048);
  EXPECT_EQ(found("blk.1.ffn_down_exps.weight").rows, 64 * 2048);
  EXPECT_EQ(found("blk.1.ffn_down_exps.weight").type.name, "Q8_0") << "1408 is no multiple of 256";
  EXPECT_EQ(found("blk.1.ffn_down_shexp.weight").columns, 2 * 1408);
  EXPECT_EQ(found("blk.1.ffn_down_shexp.weight").type.name, "Q6_K");
}

TEST(Tensors, ATiedEmbeddingIsTheOutput) {
  const std::vector<TensorInfo> tied = tensors_of("llama3_2_1b", "Q4_0");
  EXPECT_EQ(tied.front().type.name, "Q6_K");
  EXPECT_EQ(tied[1].name, "rope_freqs.weight");
  EXPECT_EQ(tied.back().name, "output_norm.weight");
  EXPECT_EQ(tensors_of("llama3_8b", "Q4_0").front().type.name, "Q4_0");
}

TEST(Tensors, MoreBitsGoToTheLayersOfUseMoreBits) {
  std::string layers;
  for (const TensorInfo& tensor : tensors_of("qwen3_0_6b", "Q4_K_M")) {
    if (tensor.role == TensorRole::ffn_down) {
      layers += tensor.type.name == "Q6_K" ? '6' : '4';
    }
  }
  // 28 layers: below 3, from 24 on, and (i - 3) % 3 == 2 between.
  ASSERT_EQ(layers.size(), 28U);
  for (int i = 0; i < 28; ++i) {
    const bool more = i < 3 || i >= 24 || (i - 3) % 3 == 2;
    EXPECT_EQ(layers.at(static_cast<std::size_t>(i)), more ? '6' : '4') << i;
  }
}

TEST(Tensors, RowsThatFitNoBlockFallBack) {
  // 96 columns: no multiple of 256, but of 32.
  const std::string odd = "{extends: tinyllama_1_1b, width: 96, heads: 4, kv_heads: 4, head_dim: 24}";
  EXPECT_EQ(tensors_of(odd, "Q4_K_M").front().type.name, "Q5_0");
  EXPECT_EQ(tensors_of(odd, "IQ4_XS").front().type.name, "IQ4_NL");
  EXPECT_EQ(tensors_of(odd, "Q4_K_M").back().type.name, "Q8_0");
  // 100 columns: no multiple of 32 either.
  const std::string odder = "{extends: tinyllama_1_1b, width: 100, heads: 4, kv_heads: 4, head_dim: 25}";
  EXPECT_EQ(tensors_of(odder, "Q4_K_M").front().type.name, "F16");
}

TEST(Tensors, RowsWithoutAFallBackAreRefused) {
  const std::string error =
      message_of([] { static_cast<void>(run_spec("{extends: tinyllama_1_1b, width: 100}", "Q4_0")); });
  EXPECT_THAT(error, HasSubstr("x.yaml:1:"));
  EXPECT_THAT(
      error, HasSubstr("engine.weights: token_embd.weight: a row of 100 weights is not a multiple of 32, the "
                       "block of Q4_0, and Q4_0 has no fall-back type"));
}

TEST(Tensors, AFormatMustHaveItsTypes) {
  RunSpec run = run_spec("tinyllama_1_1b", "Q4_0");
  run.engine.weights.types.clear();
  EXPECT_THAT(message_of([&] { static_cast<void>(tensors(run.model, run.engine.weights)); }),
              HasSubstr("weight format Q4_0 names the tensor type 'Q4_0', which is not among its types"));
}

TEST(Tensors, RowBytesNeedWholeBlocks) {
  TensorType type;
  type.block = 32;
  type.bytes = Bytes(18);
  EXPECT_EQ(row_bytes(type, 4096), Bytes(2304));
  EXPECT_THROW(static_cast<void>(row_bytes(type, 33)), InternalError);
}

TEST(Tensors, BitsPerWeightAreThoseOfGgml) {
  const std::map<std::string, double> bits{{"F32", 32},     {"F16", 16},   {"Q8_0", 8.5},    {"Q4_0", 4.5},
                                           {"Q5_0", 5.5},   {"Q5_1", 6},   {"Q2_K", 2.625},  {"Q3_K", 3.4375},
                                           {"Q4_K", 4.5},   {"Q5_K", 5.5}, {"Q6_K", 6.5625}, {"IQ4_NL", 4.5},
                                           {"IQ4_XS", 4.25}};
  for (const auto& [name, expected] : bits) {
    const WeightFormat format =
        run_spec("tinyllama_1_1b", "{main: F16, types: [" + name + "]}").engine.weights;
    EXPECT_EQ(format.types.front().name, name);
    EXPECT_DOUBLE_EQ(
        format.types.front().bytes.as_double() * 8 / static_cast<double>(format.types.front().block),
        expected);
  }
}

}  // namespace
}  // namespace kvsim::config
