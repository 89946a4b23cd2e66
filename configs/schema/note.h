// SPDX-License-Identifier: Apache-2.0
// Finds the comment behind a value: YAML parsers drop comments, but a catalogue value's source stands there.
#pragma once

#include <cstddef>
#include <string_view>

namespace kvsim::config {

/// The comment of `line`, without '#' and blanks around it, seen from a value that begins at `column` (bytes,
/// from 0). A '#' within quotes or without a blank before it begins none.
[[nodiscard]] std::string_view find_note(std::string_view line, std::size_t column);

/// Position behind the quoted text that begins at `at`; npos if it does not end.
[[nodiscard]] std::size_t skip_quoted(std::string_view text, std::size_t at);

}  // namespace kvsim::config
