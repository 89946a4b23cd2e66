// SPDX-License-Identifier: Apache-2.0
// Reads YAML (and so JSON) into Values. Takes a plain subset: no anchors, aliases, tags, merge keys or
// duplicate keys, one document a file.
#pragma once

#include <filesystem>
#include <string>

#include "configs/schema/value.h"

namespace kvsim::config {

/// A text and what messages call it.
struct SourceText {
  std::string name;
  std::string text;
  bool has_lines = true;  ///< false: from the command line, where a place is its name alone
  std::string path = {};  ///< of the key whose value this is, for messages; empty: the text stands for itself
};

/// Reads a file whole. Throws UserError if there is none, it is a directory, too large or cannot be read.
[[nodiscard]] SourceText read_source(const std::filesystem::path& path);

/// The one document in `source`. Throws UserError at broken syntax; what is only not allowed goes to
/// `errors`.
[[nodiscard]] Value parse_yaml(const SourceText& source, Diagnostics& errors);

}  // namespace kvsim::config
