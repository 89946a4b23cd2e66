// SPDX-License-Identifier: Apache-2.0
// Small GGUF models for tests.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "configs/error/test_support.h"
#include "configs/gguf/ggml_type.h"
#include "configs/gguf/gguf_builder.h"
#include "configs/gguf/gguf_model.h"
#include "configs/spec/scenario_test_support.h"

namespace kvsim::config {

/// Llama of one layer: width 64, two heads of 32, one KV head, inner width 96, vocabulary of 10.
struct Llama {
  std::string arch = "llama";
  GgufBuilder file{};
  std::uint64_t end = 0;

  void tensor(std::string_view name, const std::vector<std::uint64_t>& dims, std::uint32_t type = 8) {
    std::uint64_t elements = 1;
    for (const std::uint64_t dim : dims) {
      elements *= dim;
    }
    file.tensor(name, dims, type, end);
    const GgmlType& ggml = *find_ggml_type(type);
    end += elements / static_cast<std::uint64_t>(ggml.block) * static_cast<std::uint64_t>(ggml.bytes.count());
    end = (end + 31) / 32 * 32;
    file.data = end;
  }
  void key(const char* name, std::uint32_t value) { file.u32(arch + "." + name, value); }

  void keys() {
    file.text("general.architecture", arch);
    key("embedding_length", 64);
    key("attention.head_count", 2);
    key("feed_forward_length", 96);
    key("context_length", 128);
  }
  void tensors() {
    tensor("token_embd.weight", {64, 10});
    tensor("blk.0.attn_norm.weight", {64}, 0);
    tensor("blk.0.attn_q.weight", {64, 64});
    tensor("blk.0.attn_k.weight", {64, 32});
    tensor("blk.0.attn_v.weight", {64, 32});
    tensor("blk.0.attn_output.weight", {64, 64});
    tensor("blk.0.ffn_norm.weight", {64}, 0);
    tensor("blk.0.ffn_gate.weight", {64, 96});
    tensor("blk.0.ffn_up.weight", {64, 96});
    tensor("blk.0.ffn_down.weight", {96, 64});
    tensor("output_norm.weight", {64}, 0);
  }
};

inline Llama plain(const char* arch = "llama") {
  Llama llama{.arch = arch};
  llama.keys();
  llama.key("block_count", 1);
  llama.key("attention.head_count_kv", 1);
  llama.key("vocab_size", 10);
  llama.tensors();
  return llama;
}

/// Writes GGUF files and reads them.
class GgufModel : public ScenarioTest {
 protected:
  GgufFile file(const GgufBuilder& builder) const {
    return GgufFile::open(write("made.gguf", builder.bytes()));
  }
  std::string refusal(const GgufBuilder& builder) const {
    const GgufFile made = file(builder);
    return message_of([&] { static_cast<void>(tensors(made)); });
  }
};

}  // namespace kvsim::config
