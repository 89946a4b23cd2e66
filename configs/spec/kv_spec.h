// SPDX-License-Identifier: Apache-2.0
// How a KV cache keeps what it is given: in which number formats, and which tokens stay.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "configs/spec/kv_format.h"
#include "configs/units/quantity.h"

namespace kvsim::config {

/// Order of a KV cache's cells within a layer's K and V: [token][head], [head][token], or pages of some
/// tokens, [block][head][token].
enum class KvLayout { token_major, head_major, paged };

/// Where a head's vectors lie.
struct KvArrangement {
  KvLayout layout = KvLayout::token_major;
  std::int64_t block = 16;  ///< tokens of a page, if paged
  Bytes row_alignment{1};   ///< a vector is padded to a multiple of this
};

/// A group of tokens that share a range by channel lies side by side, without padding. Throws UserError if
/// the arrangement separates them.
void check_groups(const KvFormat& format, const KvArrangement& arrangement);

/// Tokens of the pages that `topk` ranks (Quest, Tang et al. 2024).
inline constexpr std::int64_t kTopkPage = 16;

/// Counts are tokens; 0 means that the option is not used.
struct KvSpec {
  KvFormat k{};
  KvFormat v{};
  std::int64_t window =
      0;  ///< alone: only the last `window` tokens stay; with h2o or entropy: they always stay
  std::int64_t sinks = 0;  ///< the first tokens stay too (StreamingLLM, Xiao et al. 2023)
  std::int64_t h2o =
      0;  ///< as many stay: recent ones, and those that drew most attention (Zhang et al. 2023)
  std::int64_t entropy = 0;  ///< as many stay: recent ones, and those that add most to attention's entropy
  std::int64_t topk =
      0;  ///< as many are read, in pages ranked by a bound of their scores (Quest, Tang et al. 2024)
  std::int64_t first = 0;   ///< the first tokens are kept in F16
  double first_share = 0;   ///< so is this share of the context
  std::int64_t recent = 0;  ///< the last tokens are kept in F16 until they are older

  /// GGML's quantised types hold keys and values that a Hadamard transform has turned, as llama.cpp does
  /// where head_dim is a multiple of 64 (llama-kv-cache.cpp, attn_rot; since April 2026).
  bool unrotated = false;

  bool operator==(const KvSpec&) const = default;
};

/// "f16", "k=q8_0,v=q4_0", "int4:g32+window=512+sinks=4+recent=64". Throws UserError that says what is
/// allowed.
[[nodiscard]] KvSpec parse_kv_spec(std::string_view text);

/// The shortest text that parses to `spec`.
[[nodiscard]] std::string name(const KvSpec& spec);

/// Size of the Hadamard transform for keys, or values, of a format; 0 if they are kept as they are. For keys
/// the largest power of two that divides head_dim, for values 64, as in llama.cpp.
[[nodiscard]] std::int64_t key_rotation(const KvSpec& spec, std::int64_t head_dim);
[[nodiscard]] std::int64_t value_rotation(const KvSpec& spec, std::int64_t head_dim);

/// Tokens that always stay because they are the last: `window`, else half of the budget as in H2O's paper.
/// Precondition: h2o or entropy is used.
[[nodiscard]] std::int64_t recent_share(const KvSpec& spec);

}  // namespace kvsim::config
