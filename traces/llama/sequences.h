// SPDX-License-Identifier: Apache-2.0
// Token sequences with questions whose answers were stated earlier: what quality is measured on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kvsim::trace {

/// The two tokens from `first` on repeat what was stated `distance` tokens earlier.
struct Answer {
  std::uint32_t first = 0;
  std::uint32_t distance = 0;
};
inline constexpr std::uint32_t kAnswerTokens = 2;

struct TokenSequence {
  std::vector<std::uint32_t> tokens;
  std::vector<Answer> answers;
};

/// The contents of a file. Throws UserError if it cannot be read.
[[nodiscard]] std::string read_text(const std::string& path);

/// Reads JSON lines `{"tokens": [...], "answers": [[first, distance], ...]}`; answers may be left out. Throws
/// UserError with `path` and line.
[[nodiscard]] std::vector<TokenSequence> parse_sequences(const std::string& path,
                                                         const std::string& contents);

}  // namespace kvsim::trace
