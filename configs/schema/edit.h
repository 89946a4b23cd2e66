// SPDX-License-Identifier: Apache-2.0
// Changes to configurations as written: one laid over another (`extends`), and single values set (`--set`).
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

#include "configs/schema/value.h"

namespace kvsim::config {

inline constexpr std::string_view kExtends = "extends";

/// `over` laid over `base`. Maps merge key by key; scalars and lists replace. A map over a name extends what
/// the name stands for; a map whose keys are numbers changes these elements of a list.
[[nodiscard]] Value merge(const Value& base, const Value& over, std::string_view path, Diagnostics& errors);

/// A change from the command line.
struct Override {
  /// Of `--set TEXT`.
  template <std::convertible_to<std::string> Text>
  Override(const Text& set) : text(set), name("--set " + text) {}  // NOLINT(google-explicit-constructor)
  /// Of another option, as the user typed it ("--device rk3588").
  Override(std::string change, std::string typed) : text(std::move(change)), name(std::move(typed)) {}

  std::string text;  ///< "path.to.key=value", the value in YAML
  std::string name;  ///< what messages call it
};

/// Steps lead through map keys and list indices (from 0); a name on the way becomes a map that extends it.
/// Throws UserError if the text is malformed.
void apply_override(Value& root, const Override& change);

}  // namespace kvsim::config
