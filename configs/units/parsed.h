// SPDX-License-Identifier: Apache-2.0
// Result of reading a value from text.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace kvsim {

/// A value, or why the text is none. `reason` continues the sentence "'TEXT' ...": "has no unit; write it as
/// ...".
template <class T>
struct Parsed {
  std::optional<T> value;
  std::string reason;
};

template <class T>
[[nodiscard]] Parsed<T> accepted(T value) {
  return {std::move(value), {}};
}

template <class T>
[[nodiscard]] Parsed<T> refused(std::string reason) {
  return {std::nullopt, std::move(reason)};
}

}  // namespace kvsim
