// SPDX-License-Identifier: Apache-2.0
// Reads the memory trace of Valgrind's lackey (--trace-mem=yes) as text, plain, gzip or zstd.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/units/quantity.h"
#include "traces/import/byte_source.h"
#include "traces/record/record.h"

namespace kvsim::trace {

/// A line of the trace that says something.
struct LackeyEvent {
  enum class What : std::uint8_t {
    instruction,
    load,
    store,
    modify,  ///< a load, then a store, of the same bytes
    token_start,
    token_end,
  };
  std::uint64_t value = 0;  ///< virtual address; of a token its number
  std::uint32_t bytes = 0;
  What what = What::load;

  bool operator==(const LackeyEvent&) const = default;
};
static_assert(sizeof(LackeyEvent) == 16, "a batch is compact");

[[nodiscard]] constexpr bool is_access(LackeyEvent::What what) {
  return what == LackeyEvent::What::load || what == LackeyEvent::What::store ||
         what == LackeyEvent::What::modify;
}
[[nodiscard]] constexpr bool reads(LackeyEvent::What what) {
  return what == LackeyEvent::What::load || what == LackeyEvent::What::modify;
}
[[nodiscard]] constexpr bool writes(LackeyEvent::What what) {
  return what == LackeyEvent::What::store || what == LackeyEvent::What::modify;
}

/// Bytes of one access at most. Lackey itself has 512 (MAX_DSIZE in lk_main.c).
inline constexpr std::uint32_t kMostAccessBytes = 4096;

/// Streaming; trusts nothing: what is not as the format has it is a UserError with file, line and column.
/// Tokens do not nest, and every one that starts ends.
class LackeyReader {
 public:
  explicit LackeyReader(const std::filesystem::path& path);

  /// Replaces `batch` by the next events, at least one; false, with `batch` empty, after the last.
  [[nodiscard]] bool next(std::vector<LackeyEvent>& batch);

 private:
  void refill();
  void parse(std::vector<LackeyEvent>& batch, const char* end);
  void other_line(std::vector<LackeyEvent>& batch, std::string_view line);
  void token_line(std::vector<LackeyEvent>& batch, std::string_view line);
  [[noreturn]] void refuse_access(std::string_view line) const;
  [[noreturn]] void fail(std::size_t column, std::string_view what) const;

  std::string path_;
  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  ///< of what has not been read, in the buffer
  std::size_t end_ = 0;
  bool source_ended_ = false;
  std::uint64_t lines_ = 0;  ///< up to the one in hand
  std::optional<std::uint64_t> token_;
  std::uint64_t token_line_ = 0;
};

/// Whether the file begins as such a trace, or is compressed.
[[nodiscard]] bool looks_like_lackey(const std::filesystem::path& path);

}  // namespace kvsim::trace
