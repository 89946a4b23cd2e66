// SPDX-License-Identifier: Apache-2.0
#include "configs/gguf/gguf_model.h"

#include <cstring>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "configs/gguf/gguf_model_testing.h"
#include "configs/spec/catalogue.h"
#include "configs/spec/expand.h"
#include "configs/spec/explain.h"

namespace kvsim::config {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::filesystem::path kTiny = std::filesystem::path(KVSIM_TEST_DATA) / "tiny";

GgufFile tiny(const char* format) {
  return GgufFile::open(kTiny / (std::string("tiny-") + format + ".gguf"));
}

TEST_F(GgufModel, TinyModelIsWhatItsReadmeSays) {
  for (const char* format : {"f32", "f16", "q8_0"}) {
    const LlmSpec model = llm_spec(tiny(format));
    EXPECT_EQ(model.layers, 4);
    EXPECT_EQ(model.width, 192);
    EXPECT_EQ(model.heads, 4);
    EXPECT_EQ(model.kv_heads, 2);
    EXPECT_EQ(model.head_dim, 64);
    EXPECT_EQ(model.ffn, 512);
    EXPECT_EQ(model.vocabulary, 256);
    EXPECT_EQ(model.context, 2048);
    EXPECT_FALSE(model.tied_embeddings);
    EXPECT_FALSE(model.qkv_bias);
    EXPECT_FALSE(model.qk_norm);
    EXPECT_FALSE(model.fused_qkv);
  }
}

TEST_F(GgufModel, TinyModelHasItsParameters) {
  std::int64_t parameters = 0;
  Bytes end;
  const GgufFile file = tiny("q8_0");
  for (const TensorInfo& tensor : tensors(file)) {
    parameters += tensor.rows * tensor.columns;
    EXPECT_EQ(tensor.type.name, tensor.role == TensorRole::vector ? "F32" : "Q8_0") << tensor.name;
    end = std::max(end, tensor.offset + tensor.bytes);
  }
  EXPECT_EQ(parameters, 1869504);
  EXPECT_EQ(tensors(file).size(), file.tensors().size());
  EXPECT_EQ(weight_bytes(tensors(file)).count(), (end.count() + 31) / 32 * 32);
  EXPECT_LE(Bytes(static_cast<std::int64_t>(file.header().size())) + end, file.size());
  EXPECT_EQ(weight_bytes(tensors(tiny("f32"))).count(), 1869504 * 4);
}

float half_value(const std::byte* at) {  // of normal numbers
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  const std::uint32_t exponent = bits >> 10U & 31U;
  const float value = std::ldexp(static_cast<float>((bits & 1023U) + 1024U), static_cast<int>(exponent) - 25);
  return (bits & 0x8000U) != 0 ? -value : value;
}

TEST_F(GgufModel, TinyFilesHoldTheSameNumbers) {
  const GgufFile full = tiny("f32");
  const GgufFile half = tiny("f16");
  const GgufFile blocks = tiny("q8_0");
  for (const GgufTensor& tensor : full.tensors()) {
    const auto exact = full.data(tensor);
    const auto rounded = half.data(*half.tensor(tensor.name));
    const auto quantised = blocks.data(*blocks.tensor(tensor.name));
    if (tensor.dims.size() == 1) {  // norms are F32 in all
      ASSERT_TRUE(std::ranges::equal(exact, rounded)) << tensor.name;
      ASSERT_TRUE(std::ranges::equal(exact, quantised)) << tensor.name;
      continue;
    }
    for (std::size_t i = 0; i < exact.size() / 4; ++i) {
      float value = 0;
      std::memcpy(&value, exact.data() + 4 * i, 4);
      ASSERT_NEAR(half_value(rounded.data() + 2 * i), value, std::abs(value) * 0x1p-11F + 0x1p-14F)
          << tensor.name;
      const std::byte* block = quantised.data() + i / 32 * 34;
      const auto code = static_cast<float>(static_cast<std::int8_t>(block[2 + i % 32]));
      const float scale = half_value(block);
      ASSERT_NEAR(code * scale, value, scale * 0.57F) << tensor.name;  // 0.5 and the scale's own rounding
    }
  }
}

TEST_F(GgufModel, AModelInAScenarioIsItsFile) {
  std::filesystem::copy_file(kTiny / "tiny-q8_0.gguf", folder_ / "sub" / "tiny.gguf");
  const Scenario scenario = load_scenario(write("main.yaml", "device: rk3588\nmodel: sub/tiny.gguf\n"));
  const GgufFile file = GgufFile::open(folder_ / "sub" / "tiny.gguf");
  EXPECT_EQ(scenario.spec.model, llm_spec(file));
  EXPECT_EQ(scenario.spec.engine.weights.name, "Q8_0");
  EXPECT_EQ(tensors(scenario.spec.model, scenario.spec.engine.weights), tensors(file));
  const auto input = std::ranges::find(scenario.inputs, file.name(), &InputFile::path);
  ASSERT_NE(input, scenario.inputs.end());
  EXPECT_EQ(input->hash, provenance_hash(file));
  // What a recording holds needs the file no more.
  EXPECT_EQ(run_spec_from_json(to_json(scenario.spec).dump()), scenario.spec);
}

TEST_F(GgufModel, TheFileSaysItsFormats) {
  std::filesystem::copy_file(kTiny / "tiny-q8_0.gguf", folder_ / "tiny.gguf");
  EXPECT_THAT(error_of("device: rk3588\nmodel: tiny.gguf\nengine: {weights: Q4_0}\n"),
              AllOf(HasSubstr("main.yaml:3:"), HasSubstr("engine.weights"), HasSubstr("leave this key out")));
  EXPECT_EQ(load("device: rk3588\nmodel: tiny.gguf\nengine: {ubatch: 64}\n").engine.weights.name, "Q8_0");
  EXPECT_THAT(error_of("device: tiny.gguf\nmodel: llama3_8b\n"), HasSubstr("may stand at 'model' alone"));
  EXPECT_THAT(error_of("device: rk3588\nmodel: missing.gguf\n"),
              AllOf(HasSubstr("main.yaml:2:"), HasSubstr("missing.gguf: cannot be opened")));
  EXPECT_THAT(error_of("device: rk3588\nmodel: {extends: tiny.gguf, ffn: 500}\n"),
              AllOf(HasSubstr("ffn_gate.weight"), HasSubstr("512 rows of 192"), HasSubstr("500 of 192")));
  EXPECT_THAT(error_of("device: rk3588\nmodel: {extends: tiny.gguf, layers: 5}\n"),
              HasSubstr("no tensor 'blk.4."));
  EXPECT_EQ(load("device: rk3588\nmodel: {extends: tiny.gguf, name: Tiny}\n").model.name, "Tiny");
}

TEST_F(GgufModel, ADamagedFileIsToldAtItsPlace) {
  write("bad.gguf", "GGUFx");
  EXPECT_THAT(
      error_of("device: rk3588\nmodel: bad.gguf\n"),
      AllOf(HasSubstr("main.yaml:2:"), HasSubstr("bad.gguf: byte 4: the file ends within the version")));
  write("empty.gguf", "");
  EXPECT_THAT(error_of("device: rk3588\nmodel: empty.gguf\n"),
              HasSubstr("empty.gguf: byte 0: the file ends"));
  EXPECT_THAT(message_of([&] { static_cast<void>(GgufFile::open(folder_)); }), HasSubstr("no regular file"));
}

TEST_F(GgufModel, TensorsKeepTheirPlaceInTheFile) {
  Llama llama = plain();
  llama.tensor("rope_freqs.weight", {16}, 0);
  llama.tensor("blk.0.strange.weight", {32, 3}, 1);
  const GgufFile made = file(llama.file);
  EXPECT_TRUE(llm_spec(made).tied_embeddings);
  EXPECT_EQ(llm_spec(made).rope_factors, 16);
  const std::vector<TensorInfo> all = tensors(made);
  EXPECT_EQ(all.size(), made.tensors().size());
  for (const TensorInfo& tensor : all) {
    EXPECT_EQ(tensor.offset, made.tensor(tensor.name)->offset) << tensor.name;
    EXPECT_EQ(tensor.bytes, made.tensor(tensor.name)->bytes) << tensor.name;
  }
  EXPECT_EQ(all.back().name, "blk.0.strange.weight") << "what no operator reads stands last";
  EXPECT_EQ(weight_bytes(all).count(), static_cast<std::int64_t>(llama.end));
}

TEST_F(GgufModel, DefaultsAreGgufs) {
  Llama llama;
  llama.keys();  // no KV heads, no vocabulary
  llama.file.texts("tokenizer.ggml.tokens", std::vector<std::string>(10, "x"));
  llama.file.array("llama.block_count", GgufType::i32, std::vector<std::int32_t>{1, 1});
  llama.tensors();
  const LlmSpec model = llm_spec(file(llama.file));
  EXPECT_EQ(model.kv_heads, 2) << "as many as heads";
  EXPECT_EQ(model.head_dim, 32) << "width / heads";
  EXPECT_EQ(model.vocabulary, 10) << "as many as tokens";
  EXPECT_EQ(model.layers, 1) << "the same for each of a list";
  EXPECT_EQ(model.name, "made") << "the file's name, without a key for it";
}

TEST_F(GgufModel, WhatCannotBeRunIsRefusedWithWhatCan) {
  const auto with = [](const auto& change) {
    Llama llama = plain();
    change(llama);
    return llama.file;
  };
  EXPECT_THAT(refusal(plain("mamba").file),
              AllOf(HasSubstr("'mamba' cannot be run"), HasSubstr("llama, phi3, qwen2, qwen3, qwen3moe")));
  EXPECT_THAT(refusal(GgufBuilder()), HasSubstr("has no key 'general.architecture'"));
  Llama qwen = plain("qwen3");
  qwen.key("expert_count", 8);
  EXPECT_THAT(refusal(qwen.file), HasSubstr("the model has experts ('qwen3.expert_count')"));
  EXPECT_THAT(refusal(with([](Llama& l) { l.key("attention.kv_lora_rank", 512); })), HasSubstr("MLA"));
  EXPECT_THAT(refusal(with([](Llama& l) {
                l.file.array("llama.attention.sliding_window_pattern", GgufType::boolean,
                             std::vector<std::uint8_t>{1, 0});
              })),
              HasSubstr("with and without a window"));
  EXPECT_THAT(refusal(with([](Llama& l) { l.key("attention.key_length", 48); })),
              HasSubstr("keys of 48 and values of 32"));
  EXPECT_THAT(refusal(with([](Llama& l) { l.file.u32("split.count", 3); })),
              HasSubstr("one part of several"));
  EXPECT_THAT(refusal(with([](Llama& l) { l.tensor("odd", {256}, 21); })),
              AllOf(HasSubstr("'odd' is stored as IQ3_S"), HasSubstr("known: BF16, F16, F32")));
  EXPECT_THAT(refusal(with([](Llama& l) { l.file.tensors.erase(l.file.tensors.begin() + 2); })),
              HasSubstr("no tensor 'blk.0.attn_q.weight'"));
  EXPECT_EQ(refusal(with([](Llama& l) { l.key("expert_count", 0); })), "no error");

  Llama layered;
  layered.keys();
  layered.file.array("llama.block_count", GgufType::u32, std::vector<std::uint32_t>{1, 2});
  EXPECT_THAT(refusal(layered.file), HasSubstr("'llama.block_count' differs between layers"));
  Llama wrong_type;
  wrong_type.keys();
  wrong_type.file.text("llama.block_count", "one");
  EXPECT_THAT(refusal(wrong_type.file),
              HasSubstr("'llama.block_count' must be a whole number below 2^63, and is of type text"));
  Llama zero;
  zero.keys();
  zero.key("block_count", 0);
  EXPECT_THAT(refusal(zero.file), HasSubstr("'llama.block_count' is 0, which no model has"));
}

TEST_F(GgufModel, EveryGeometryKeyIsRead) {
  GgufBuilder builder;
  for (const char* key : {"block_count",
                          "embedding_length",
                          "feed_forward_length",
                          "context_length",
                          "attention.head_count",
                          "attention.head_count_kv",
                          "attention.key_length",
                          "attention.value_length",
                          "attention.key_length_swa",
                          "attention.value_length_swa",
                          "attention.kv_lora_rank",
                          "attention.q_lora_rank",
                          "attention.key_length_mla",
                          "attention.value_length_mla",
                          "attention.sliding_window",
                          "attention.shared_kv_layers",
                          "rope.dimension_count",
                          "rope.dimension_count_swa",
                          "rope.scaling.original_context_length",
                          "expert_count",
                          "expert_used_count",
                          "expert_feed_forward_length",
                          "expert_shared_count",
                          "leading_dense_block_count",
                          "nextn_predict_layers",
                          "vocab_size",
                          "ssm.state_size",
                          "wkv.head_size",
                          "full_attention_interval"}) {
    builder.u32(std::string("x.") + key, 7);
  }
  for (const char* key : {"rope.freq_base", "rope.freq_base_swa", "rope.scaling.factor"}) {
    builder.value(std::string("x.") + key, GgufType::f32, 1.5F);
  }
  builder.text("x.rope.scaling.type", "yarn");
  builder.array("x.attention.sliding_window_pattern", GgufType::boolean, std::vector<std::uint8_t>{1, 0, 1});
  builder.value("x.flag", GgufType::boolean, std::uint8_t{1});
  const GgufFile made = file(builder);
  for (const GgufValue& entry : made.metadata()) {
    if (entry.type == GgufType::u32) {
      EXPECT_EQ(made.integer(entry.key), 7);
      EXPECT_EQ(made.real(entry.key), 7.0);
      EXPECT_THAT(made.integers(entry.key), ElementsAre(7));
    } else if (entry.type == GgufType::f32) {
      EXPECT_EQ(made.real(entry.key), 1.5);
    }
  }
  EXPECT_EQ(made.text("x.rope.scaling.type"), "yarn");
  EXPECT_THAT(made.integers("x.attention.sliding_window_pattern"), ElementsAre(1, 0, 1));
  EXPECT_EQ(made.truth("x.flag"), true);
  EXPECT_EQ(made.integer("x.absent"), std::nullopt);
  EXPECT_EQ(made.metadata("x.absent"), nullptr);
  EXPECT_THAT(message_of([&] { static_cast<void>(made.text("x.vocab_size")); }),
              AllOf(HasSubstr("made.gguf: byte "), HasSubstr("must be a text, and is of type u32")));
  EXPECT_THAT(message_of([&] { static_cast<void>(made.texts("x.attention.sliding_window_pattern")); }),
              HasSubstr("must be an array of texts"));
  EXPECT_THAT(message_of([&] { static_cast<void>(made.truth("x.vocab_size")); }),
              HasSubstr("must be a truth value"));
  EXPECT_THAT(message_of([&] { static_cast<void>(made.real("x.flag")); }), HasSubstr("must be a number"));
}

TEST_F(GgufModel, CatalogueTypesHaveGgufsSizes) {
  std::size_t found = 0;
  for (std::uint32_t id = 0; id < 64; ++id) {
    const GgmlType* type = find_ggml_type(id);
    if (type != nullptr && find_entry("tensor_types", type->name) != nullptr) {
      const TensorType known = load_tensor_type(type->name);
      EXPECT_EQ(known.block, type->block) << known.name;
      EXPECT_EQ(known.bytes, type->bytes) << known.name;
      ++found;
    }
  }
  EXPECT_EQ(found, catalogue_ids("tensor_types").size());
}

TEST_F(GgufModel, HugeFilesAreHashedByTheirHeader) {
  Llama llama = plain();
  const std::string bytes = llama.file.bytes();
  const std::filesystem::path path = write("made.gguf", bytes);
  EXPECT_EQ(provenance_hash(GgufFile::open(path)), content_hash(bytes));
  std::filesystem::resize_file(path, (std::uintmax_t{64} << 20U) + 1);  // a hole: takes no room
  const GgufFile huge = GgufFile::open(path);
  EXPECT_EQ(provenance_hash(huge), "header:" + content_hash(bytes.substr(0, huge.header().size())));
}

TEST_F(GgufModel, ExplainTellsWhatIsInTheFile) {
  const std::string text = explain((kTiny / "tiny-q8_0.gguf").string());
  EXPECT_THAT(text, AllOf(HasSubstr("GGUF version 3"), HasSubstr("layers           4"), HasSubstr("Q8_0"),
                          HasSubstr("general.architecture  text  llama"), Not(HasSubstr("cannot be run"))));
  Llama mamba = plain("mamba");
  mamba.file.text("evil", "a\x1b[2J");
  const std::string other = explain(write("made.gguf", mamba.file.bytes()).string());
  EXPECT_THAT(other, AllOf(HasSubstr("cannot be run"), HasSubstr("evil  text  a?[2J")));
}

}  // namespace
}  // namespace kvsim::config
