// SPDX-License-Identifier: Apache-2.0
#include "configs/schema/info.h"

#include <algorithm>
#include <utility>

#include "configs/schema/edit.h"

namespace kvsim::config {
namespace {

using Json = nlohmann::ordered_json;

Json entry_schema(const FieldInfo& field, CatalogueIds ids) {
  Json map = to_json_schema(*field.nested, ids);
  map["properties"][std::string(kExtends)] = {{"type", "string"},
                                              {"description", "id or file that this map changes"}};
  return {
      {"anyOf", {{{"enum", ids(field.catalogue)}}, {{"type", "string"}, {"pattern", "/|\\.ya?ml$"}}, map}}};
}

Json field_schema(const FieldInfo& field, CatalogueIds ids) {
  Json one = field.nested == nullptr   ? field.json
             : field.catalogue.empty() ? to_json_schema(*field.nested, ids)
                                       : entry_schema(field, ids);
  if (field.may_be_none) {
    one = {{"anyOf", {std::move(one), {{"const", kNone}}}}};
  }
  if (!field.is_list) {
    return one;
  }
  Json elements = {
      {"type", "object"}, {"patternProperties", {{"^[0-9]+$", true}}}, {"additionalProperties", false}};
  return {{"anyOf", {{{"type", "array"}, {"items", one}}, elements}}};
}

std::string description(const FieldInfo& field) {
  std::string text = field.doc;
  if (!field.allowed.empty()) {
    text += "; " + field.allowed;
  }
  if (field.fallback && !field.fallback->empty()) {
    text += "; default " + *field.fallback;
  }
  return text;
}

}  // namespace

const FieldInfo* SchemaInfo::find(std::string_view key) const {
  const auto found = std::ranges::find(fields, key, &FieldInfo::key);
  return found == fields.end() ? nullptr : &*found;
}

std::vector<std::string> SchemaInfo::keys() const {
  std::vector<std::string> result;
  for (const FieldInfo& field : fields) {
    result.push_back(field.key);
  }
  return result;
}

Json to_json_schema(const SchemaInfo& schema, CatalogueIds ids) {
  Json properties = Json::object();
  for (const FieldInfo& field : schema.fields) {
    Json property = field_schema(field, ids);
    property["description"] = description(field);
    properties[field.key] = std::move(property);
  }
  return {{"type", "object"}, {"additionalProperties", false}, {"properties", std::move(properties)}};
}

}  // namespace kvsim::config
