// SPDX-License-Identifier: Apache-2.0
#include "configs/schema/note.h"

namespace kvsim::config {
namespace {

// A file without line breaks has no comments behind values, but would cost its length for each value.
constexpr std::size_t kMaxLine = 1'000;

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

}  // namespace

std::size_t skip_quoted(std::string_view text, std::size_t at) {
  const char quote = text[at];
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

std::string_view find_note(std::string_view line, std::size_t column) {
  if (line.size() > kMaxLine) {
    return {};
  }
  bool token_start = true;  // quotes mean quoting only where a value can begin
  for (std::size_t i = column; i < line.size();) {
    const char c = line[i];
    if (c == '#' && i > 0 && (line[i - 1] == ' ' || line[i - 1] == '\t')) {
      return trim(line.substr(i + 1));
    }
    if (token_start && (c == '"' || c == '\'')) {
      i = skip_quoted(line, i);
      token_start = false;
      continue;
    }
    const bool separator = c == ',' || c == '[' || c == '{' || c == ':';
    if (separator || c != ' ') {
      token_start = separator;
    }
    ++i;
  }
  return {};
}

}  // namespace kvsim::config
