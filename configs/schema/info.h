// SPDX-License-Identifier: Apache-2.0
// What is known of a parameter set apart from its C++ type: for documentation, JSON Schema and catalogue
// look-up.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace kvsim::config {

/// What is written for an optional value that is not there.
inline constexpr std::string_view kNone = "none";

struct SchemaInfo;

struct FieldInfo {
  std::string key;
  std::string doc;
  std::string type;                     ///< in words: "a size in bytes"
  std::string allowed;                  ///< "1 to 64", "at least 1 B"; empty: every value of the type
  std::optional<std::string> fallback;  ///< the default as text; none: the key is required
  std::string catalogue;                ///< kind of catalogue entry whose id may stand here; empty: none
  const SchemaInfo* nested = nullptr;   ///< of a map, or of the maps in a list
  bool is_list = false;
  bool may_be_none = false;     ///< `none` may stand in place of the value or map
  nlohmann::ordered_json json;  ///< JSON Schema of one scalar
};

struct SchemaInfo {
  std::string doc;
  std::vector<FieldInfo> fields;

  [[nodiscard]] const FieldInfo* find(std::string_view key) const;
  [[nodiscard]] std::vector<std::string> keys() const;
};

/// A JSON Schema for maps of this parameter set. No key is required in it, because a map may extend another
/// that has the key. `ids` gives the known entries of a catalogue kind.
using CatalogueIds = std::vector<std::string> (*)(std::string_view kind);
[[nodiscard]] nlohmann::ordered_json to_json_schema(const SchemaInfo& schema, CatalogueIds ids);

}  // namespace kvsim::config
