// SPDX-License-Identifier: Apache-2.0
// The forward pass against an independent implementation (PyTorch in FP32, tests/data/tiny), and what a
// cache's formats and policies make of a trained model.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/error.h"
#include "configs/gguf/gguf_builder.h"
#include "traces/llama/decoder.h"
#include "traces/llama/quality.h"

namespace kvsim::trace {
namespace {

using ::testing::HasSubstr;

const std::string kTiny = std::string(KVSIM_TEST_DATA) + "/tiny/";

const LlamaWeights& tiny() {
  static const LlamaWeights kWeights = llama_weights(config::GgufFile::open(kTiny + "tiny-f32.gguf"));
  return kWeights;
}

/// The first `count` documents, which have about 256 tokens each.
std::vector<TokenSequence> documents(std::size_t count) {
  const std::string path = kTiny + "sequences.jsonl";
  std::vector<TokenSequence> all = parse_sequences(path, read_text(path));
  all.resize(count);
  return all;
}

std::vector<float> floats(const std::string& name) {
  std::ifstream in(kTiny + name, std::ios::binary);
  std::vector<float> numbers(std::filesystem::file_size(kTiny + name) / sizeof(float));
  in.read(reinterpret_cast<char*>(numbers.data()),
          static_cast<std::streamsize>(numbers.size() * sizeof(float)));
  return numbers;
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  float largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::abs(a[i] - b[i]));
  }
  return largest;
}

std::vector<float> logits_of(const std::string& kv, std::size_t tokens, std::uint32_t batch = 128) {
  LlamaDecoder decoder(tiny(), {.kv = config::parse_kv_spec(kv), .batch = batch});
  const TokenSequence document = documents(1).front();
  std::vector<float> logits;
  EXPECT_TRUE(decoder.feed(std::span(document.tokens).first(tokens), logits));
  return logits;
}

TEST(LlamaDecoder, GivesTheReferencesLogits) {
  EXPECT_LT(largest_difference(logits_of("f32", 128), floats("logits_kv_f32.f32")), 5e-4F);
  EXPECT_LT(largest_difference(logits_of("f16", 128), floats("logits_kv_f16.f32")), 5e-3F);
}

class Residuals final : public DecoderObserver {
 public:
  void residual(std::size_t layers, std::span<const float> numbers) override {
    EXPECT_EQ(layers * numbers.size(), seen.size());
    seen.insert(seen.end(), numbers.begin(), numbers.end());
  }
  std::vector<float> seen;  ///< [layers done][token][width]
};

TEST(LlamaDecoder, GivesTheReferencesResidualStreamAfterEachLayer) {
  Residuals residuals;
  LlamaDecoder decoder(tiny(), {.kv = config::parse_kv_spec("f32"), .observer = &residuals});
  std::vector<float> logits;
  ASSERT_TRUE(decoder.feed(std::span(documents(1).front().tokens).first(128), logits));
  const std::vector<float> expected = floats("hidden_kv_f32.f32");
  ASSERT_EQ(residuals.seen.size(), expected.size());
  const std::size_t size = 128 * tiny().width;
  for (std::size_t layer = 0; layer * size < expected.size(); ++layer) {
    const auto part = [&](const std::vector<float>& all) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(layer * size);
      return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(size));
    };
    const std::vector<float> of_layer = part(expected);
    const float largest = largest_difference(of_layer, std::vector<float>(size));
    EXPECT_LT(largest_difference(part(residuals.seen), of_layer), 2e-6F * largest) << layer << " layers done";
  }
}

TEST(LlamaDecoder, BatchesDoNotMatter) {
  for (const char* kv :
       {"f32", "q8_0", "f16+window=20+sinks=2", "q4_0+recent=8", "f16+h2o=30", "int4:g32:channel"}) {
    const std::vector<float> whole = logits_of(kv, 60, 128);
    EXPECT_LT(largest_difference(whole, logits_of(kv, 60, 1)), 2e-2F) << kv;
    EXPECT_LT(largest_difference(whole, logits_of(kv, 60, 7)), 2e-2F) << kv;
  }
}

TEST(LlamaDecoder, PoliciesThatKeepEverythingChangeNothing) {
  const std::vector<float> all = logits_of("f32", 60);
  for (const char* kv : {"f32+window=60", "f32+h2o=61", "f32+entropy=61", "f32+window=58+sinks=2"}) {
    EXPECT_LT(largest_difference(all, logits_of(kv, 60)), 1e-4F) << kv;
  }
  EXPECT_GT(largest_difference(all, logits_of("f32+window=20", 60)), 1e-2F) << "this one does";
  EXPECT_LT(largest_difference(logits_of("f16", 60), logits_of("q4_0+recent=60+unrotated", 60)), 1e-3F);
  EXPECT_LT(largest_difference(logits_of("f16", 60), logits_of("q4_0+first=60+unrotated", 60)), 1e-3F);
}

TEST(LlamaDecoder, RefusesWhatIsNotInTheModel) {
  LlamaDecoder decoder(tiny(), {.kv = config::parse_kv_spec("f16"), .capacity = 8});
  std::vector<float> logits;
  const std::vector<std::uint32_t> unknown = {256}, many(9);
  EXPECT_THROW(static_cast<void>(decoder.feed(unknown, logits)), UserError);
  EXPECT_THROW(static_cast<void>(decoder.feed(many, logits)), UserError);
}

/// Sums of negative log-likelihoods of the first documents, from tests/data/tiny/sequences.reference.json.
TEST(Quality, PerplexityIsTheReferences) {
  const auto measured = [](const char* kv) {
    return *measure_quality(tiny(), config::parse_kv_spec(kv), documents(2), {.threads = 2});
  };
  EXPECT_NEAR(measured("f32").nll_sum, 303.660675 + 343.908936, 0.01);
  const KvQuality f16 = measured("f16");
  EXPECT_NEAR(f16.nll_sum, 303.659882 + 343.90, 0.02);
  EXPECT_EQ(f16.bytes_per_token, Bytes(2048));
  EXPECT_NEAR(f16.perplexity, std::exp(f16.nll_sum / static_cast<double>(f16.predicted)), 1e-9);
}

TEST(Quality, DoesNotDependOnThreads) {
  const config::KvSpec spec = config::parse_kv_spec("q4_0+window=64");
  const KvQuality one = *measure_quality(tiny(), spec, documents(3), {.threads = 1, .profile = true});
  const KvQuality two = *measure_quality(tiny(), spec, documents(3), {.threads = 2, .profile = true});
  EXPECT_EQ(one.nll_sum, two.nll_sum);
  EXPECT_EQ(one.attention_error.p95, two.attention_error.p95);
  EXPECT_EQ(one.profile->by_distance, two.profile->by_distance);
}

TEST(Quality, ExactIsExactAndCoarserIsWorse) {
  const auto error = [](const char* kv) {
    return measure_quality(tiny(), config::parse_kv_spec(kv), documents(1), {})->attention_error;
  };
  EXPECT_EQ(error("f32").mean, 0);
  EXPECT_EQ(error("f32").cosine, 1);
  double last = 0;
  for (const char* kv : {"f16", "bf16", "q8_0", "q5_0", "q4_0"}) {
    EXPECT_GT(error(kv).mean, last) << kv;
    last = error(kv).mean;
  }
  EXPECT_GT(error("f16+window=32").mean, error("f16+window=128").mean);
}

TEST(Quality, AWindowForgetsWhatWasStatedBeforeIt) {
  const auto all = documents(8);
  const KvQuality full = *measure_quality(tiny(), config::parse_kv_spec("f16"), all, {.threads = 2});
  const KvQuality window =
      *measure_quality(tiny(), config::parse_kv_spec("f16+window=48"), all, {.threads = 2});
  EXPECT_GE(full.recall.recalled, full.recall.asked * 9 / 10);
  EXPECT_LT(window.recall.recalled, full.recall.recalled / 2);
  EXPECT_LE(window.peak_bytes, Bytes(48 * 2048));
  std::uint64_t asked = 0;
  for (const auto& [distance, recall] : full.recall_by_distance) {
    EXPECT_EQ(distance % kQualityBin, 0U);
    asked += recall.asked;
  }
  EXPECT_EQ(asked, full.recall.asked);
}

TEST(Quality, ProfileIsAllOfTheMass) {
  const KvQuality quality =
      *measure_quality(tiny(), config::parse_kv_spec("f32"), documents(1), {.profile = true});
  double sum = 0;
  for (const double share : quality.profile->by_distance) {
    sum += share;
  }
  EXPECT_NEAR(sum, 1, 1e-5);
  EXPECT_EQ(profile_bin_end(0), 0U);
  EXPECT_EQ(profile_bin_end(1), 1U);
  EXPECT_EQ(profile_bin_end(3), 4U);
}

TEST(Quality, StopsAndRefuses) {
  const std::atomic<bool> stop{true};
  EXPECT_FALSE(
      measure_quality(tiny(), config::parse_kv_spec("f16"), documents(2), {.stop = &stop}).has_value());
  EXPECT_THROW(check_spec(tiny(), config::parse_kv_spec("int8:g48")), UserError);
  std::vector<TokenSequence> long_one(1);
  long_one[0].tokens.assign(2049, 1);
  EXPECT_THROW(static_cast<void>(measure_quality(tiny(), config::parse_kv_spec("f16"), long_one, {})),
               UserError);
}

struct BadLine {
  const char* text;
  const char* says;
};

TEST(Sequences, SayWhereAndWhat) {
  for (const BadLine& bad :
       {BadLine{"{", "parse error"}, BadLine{"[]", "a line is"}, BadLine{"{\"tokens\": 3}", "no list"},
        BadLine{R"({"tokens": [1]})", "two tokens"}, BadLine{R"({"tokens": [1, -2]})", "whole number"},
        BadLine{R"({"tokens": [1, 2.5]})", "whole number"},
        BadLine{R"({"tokens": [1, 5000000000]})", "whole number"},
        BadLine{R"({"tokens": [1, 2], "answer": []})", "unknown key"},
        BadLine{R"({"tokens": [1, 2, 3], "answers": [[0, 1]]})", "not within"},
        BadLine{R"({"tokens": [1, 2, 3], "answers": [[2, 1]]})", "not within"},
        BadLine{R"({"tokens": [1, 2, 3], "answers": [[1]]})", "pair"}}) {
    try {
      static_cast<void>(parse_sequences("f.jsonl", std::string("{\"tokens\": [1, 2]}\n") + bad.text));
      ADD_FAILURE() << bad.text;
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), ::testing::AllOf(HasSubstr("f.jsonl:2: "), HasSubstr(bad.says)));
    }
  }
  EXPECT_THROW(static_cast<void>(parse_sequences("f.jsonl", "\n\n")), UserError);
  EXPECT_THROW(static_cast<void>(read_text("/nowhere/f.jsonl")), UserError);
  const auto good = parse_sequences("f.jsonl", "\n{\"tokens\": [1, 2, 3], \"answers\": [[1, 1]]}\r\n");
  EXPECT_EQ(good.at(0).tokens, (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_EQ(good.at(0).answers.at(0).distance, 1U);
}

/// A file with metadata and no tensors.
std::string refusal(const config::GgufBuilder& builder) {
  const std::string path = ::testing::TempDir() + "/bad.gguf";
  std::ofstream(path, std::ios::binary) << builder.bytes();
  try {
    static_cast<void>(llama_weights(config::GgufFile::open(path)));
  } catch (const UserError& error) {
    return error.what();
  }
  return "taken";
}

TEST(LlamaWeights, RefusesModelsThatItCannotCompute) {
  EXPECT_THAT(refusal(config::GgufBuilder().text("general.architecture", "gpt2")), HasSubstr("'gpt2'"));
  EXPECT_THAT(refusal(config::GgufBuilder().text("general.architecture", "llama")),
              HasSubstr("embedding_length"));
  EXPECT_THAT(refusal(config::GgufBuilder()
                          .text("general.architecture", "llama")
                          .text("llama.rope.scaling.type", "yarn")),
              HasSubstr("yarn"));
}

}  // namespace
}  // namespace kvsim::trace
