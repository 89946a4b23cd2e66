// SPDX-License-Identifier: Apache-2.0
// The user's mistakes with their places, collected so that all of them are told at once.
#pragma once

#include <compare>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvsim {

/// Where something was written. Lines and columns count from 1; line 0 means there are none (a command line).
struct SourceLocation {
  std::string file;
  int line = 0;
  int column = 0;

  auto operator<=>(const SourceLocation&) const = default;
};

/// "file:line:column", or the file alone.
[[nodiscard]] std::string to_string(const SourceLocation& where);

class Diagnostics {
 public:
  /// `key` is the path of the parameter ("device.llc.size"; may be empty); `what` says what is wrong and what
  /// to do.
  void error(const SourceLocation& where, std::string_view key, std::string_view what);

  /// Adds " (cause)" to the errors that are not among `others`, but for those that stand at one of `places`:
  /// what changes from the command line have done to a file that is right by itself.
  void add_cause(const Diagnostics& others, std::span<const std::string> places, std::string_view cause);

  /// A value was met about which an error has been told already.
  void repeat() { ++repeats_; }

  /// Grows with every error told or met again: equal before and after some reading means that nothing was
  /// wrong.
  [[nodiscard]] std::size_t count() const { return errors_.size() + repeats_; }
  [[nodiscard]] bool empty() const { return errors_.empty(); }

  /// One UserError with a line for each mistake, in the order of the files; nothing if there is none.
  void throw_if_any() const;

 private:
  struct Error {
    SourceLocation where;
    std::string text;
  };
  std::vector<Error> errors_;
  std::size_t repeats_ = 0;
};

/// Throws a UserError about one place.
[[noreturn]] void fail_at(const SourceLocation& where, std::string_view what);

/// The candidate that `word` is most likely a misspelling of, if one is near enough.
[[nodiscard]] std::optional<std::string> did_you_mean(std::string_view word,
                                                      std::span<const std::string_view> candidates);
[[nodiscard]] std::optional<std::string> did_you_mean(std::string_view word,
                                                      std::span<const std::string> candidates);

}  // namespace kvsim
