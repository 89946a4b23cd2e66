// SPDX-License-Identifier: Apache-2.0
// A configuration as it was written: text, lists and maps, each with its place.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "configs/error/diagnostics.h"

namespace kvsim::config {

struct MapEntry;

struct Value {
  enum class Kind {
    null,  ///< nothing, ~ or null
    scalar,
    list,
    map,
    invalid,  ///< an error was reported about it; readers pass over it
  };

  Kind kind = Kind::null;
  SourceLocation where;
  std::string text;     ///< of a scalar, without quotes
  bool quoted = false;  ///< the scalar stood in quotes (or was a block of text)
  std::string note;     ///< the comment behind a scalar on its line: where the value is from
  std::vector<Value> items;
  std::vector<MapEntry> entries;

  [[nodiscard]] bool is_map() const { return kind == Kind::map; }
  [[nodiscard]] bool is_list() const { return kind == Kind::list; }
  [[nodiscard]] bool is_scalar() const { return kind == Kind::scalar; }
  [[nodiscard]] bool is_invalid() const { return kind == Kind::invalid; }

  /// The value of a key of this map, or null if there is none.
  [[nodiscard]] const Value* find(std::string_view key) const;
  [[nodiscard]] Value* find(std::string_view key);
  /// Appends or replaces a key of this map.
  void set(std::string_view key, Value value);
  /// Takes a key out of this map; false if it is not there.
  bool erase(std::string_view key);
};

struct MapEntry {
  std::string key;
  SourceLocation where;
  Value value;
};

[[nodiscard]] Value scalar_value(std::string_view text, const SourceLocation& where);
[[nodiscard]] Value map_value(const SourceLocation& where);

/// For messages: a text in quotes, cut if it is long.
[[nodiscard]] std::string in_quotes(std::string_view text);
/// For messages: "the text '3'", "a list", "a map", "nothing".
[[nodiscard]] std::string describe(const Value& value);

/// A path with one more step: "device" and "llc" give "device.llc".
[[nodiscard]] std::string join_path(std::string_view path, std::string_view step);
[[nodiscard]] std::string join_path(std::string_view path, std::size_t index);

/// The value as indented text, each scalar with its note behind it.
[[nodiscard]] std::string to_annotated_text(const Value& value);

}  // namespace kvsim::config
