// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/explain.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "configs/error/error.h"
#include "configs/gguf/gguf_model.h"
#include "configs/schema/edit.h"
#include "configs/spec/expand.h"
#include "configs/spec/schemas.h"

namespace kvsim::config {
namespace {

constexpr std::string_view kFirst = "0";

struct Row {
  std::string path;
  const FieldInfo* info;
};

enum class Depth {
  all,
  up_to_entries,  ///< the keys of catalogue entries are left out
};

/// The keys below a table, depth first. A list has the keys of its first element, as `--set` names them.
void add_rows(const SchemaInfo& schema, const std::string& path, Depth depth, std::vector<Row>& rows) {
  for (const FieldInfo& info : schema.fields) {
    const std::string key = join_path(path, info.key);
    rows.push_back({key, &info});
    const bool open = depth == Depth::all || info.catalogue.empty();
    if (info.nested != nullptr && open) {
      add_rows(*info.nested, info.is_list ? join_path(key, kFirst) : key, depth, rows);
    }
  }
}

std::string default_text(const FieldInfo& info) {
  if (!info.fallback) {
    return "required";
  }
  return info.fallback->empty() ? "default empty" : fmt::format("default {}", *info.fallback);
}

std::string table_text(const std::vector<Row>& rows) {
  std::size_t width = 0;
  for (const Row& row : rows) {
    width = std::max(width, row.path.size());
  }
  std::string text;
  for (const Row& row : rows) {
    const FieldInfo& info = *row.info;
    const bool group = info.nested != nullptr && info.catalogue.empty() && !info.may_be_none;
    text += fmt::format("  {:<{}}  {}{}\n", row.path, width, info.doc,
                        group ? "" : fmt::format(" ({})", default_text(info)));
  }
  return text;
}

std::string key_text(const std::string& path, const FieldInfo& info) {
  std::string text = fmt::format("{}: {}\n  type     {}\n", path, info.doc, info.type);
  if (info.nested == nullptr || !info.catalogue.empty() || info.may_be_none) {
    const bool empty = info.fallback && info.fallback->empty();
    text +=
        fmt::format("  default  {}\n", empty ? "empty" : info.fallback.value_or("none; the key is required"));
  }
  if (!info.allowed.empty()) {
    text += fmt::format("  allowed  {}\n", info.allowed);
  }
  if (info.nested == nullptr) {
    return text;
  }
  std::vector<Row> rows;
  add_rows(*info.nested, info.is_list ? join_path(path, kFirst) : path, Depth::up_to_entries, rows);
  return text + fmt::format("  keys     {}\n", info.nested->doc) + table_text(rows);
}

bool is_index(std::string_view step) {
  return !step.empty() && std::ranges::all_of(step, [](char c) { return c >= '0' && c <= '9'; });
}

/// "device.clusters.count" for "device.clusters.0.count".
std::string without_indices(std::string_view path) {
  std::string plain;
  for (std::string_view rest = path; !rest.empty();) {
    const std::size_t dot = rest.find('.');
    if (!is_index(rest.substr(0, dot))) {
      plain = join_path(plain, rest.substr(0, dot));
    }
    rest.remove_prefix(dot == std::string_view::npos ? rest.size() : dot + 1);
  }
  return plain;
}

constexpr std::string_view kExtendsText =
    ": the file or catalogue entry that this map, or this scenario, changes\n"
    "  type     an id of the catalogue, or a file (with '/' or ending in .yaml or .gguf), as the first key "
    "of a map\n"
    "  default  none; the map then stands for itself\n"
    "Maps merge key by key, scalars and lists replace; a map with numbers as keys changes these elements of "
    "a\n"
    "list. Such as\n"
    "  extends: ./base.yaml\n"
    "  model: {extends: llama3_8b, layers: 2}\n";

/// `extends` stands in no table: every scenario and every catalogue entry may begin with it.
bool is_extends(std::string_view path, const std::vector<Row>& rows) {
  return path == kExtends || std::ranges::any_of(rows, [path](const Row& row) {
           return !row.info->catalogue.empty() && path == join_path(without_indices(row.path), kExtends);
         });
}

/// "devices/rk3588" for "rk3588".
std::optional<std::string> entry_named(std::string_view id) {
  for (const CatalogueKind& kind : catalogue_kinds()) {
    if (find_entry(kind.folder, id) != nullptr) {
      return fmt::format("{}/{}", kind.folder, id);
    }
  }
  return std::nullopt;
}

[[noreturn]] void fail_unknown_key(std::string_view path, const std::vector<Row>& rows) {
  std::vector<std::string> known;
  for (const Row& row : rows) {
    known.push_back(row.path);
  }
  std::optional<std::string> near = entry_named(path);
  near = near ? near : did_you_mean(path, known);
  // A last step alone ("ubatch") is often what is remembered.
  for (const std::string& key : known) {
    if (!near && key.ends_with(fmt::format(".{}", path))) {
      near = key;
    }
  }
  throw UserError(fmt::format("there is no key '{}'{}; `kvsim explain` lists all", path,
                              near ? fmt::format(", did you mean '{}'?", *near) : ""));
}

std::string explain_key(std::string_view path) {
  std::vector<Row> rows;
  add_rows(schema<RunSpec>().info(), "", Depth::all, rows);
  if (path.empty()) {
    return fmt::format("Keys of a scenario:\n{}", table_text(rows));
  }
  const std::string wanted = without_indices(path);
  if (is_extends(wanted, rows)) {
    return fmt::format("{}{}", path, kExtendsText);
  }
  const auto found =
      std::ranges::find_if(rows, [&wanted](const Row& row) { return without_indices(row.path) == wanted; });
  if (found == rows.end()) {
    fail_unknown_key(path, rows);
  }
  return key_text(found->path, *found->info);
}

const SchemaInfo& schema_of_kind(std::string_view kind) {
  if (kind == "devices") {
    return schema<DeviceSpec>().info();
  }
  if (kind == "dram") {
    return schema<DramPartSpec>().info();
  }
  if (kind == "llms") {
    return schema<LlmSpec>().info();
  }
  if (kind == "formats") {
    return schema<WeightFormat>().info();
  }
  if (kind == "storage") {
    return schema<StoragePartSpec>().info();
  }
  if (kind == "masters") {
    return schema<MasterSpec>().info();
  }
  if (kind == "cores") {
    return schema<CoreSpec>().info();
  }
  return schema<TensorType>().info();
}

/// The keys of an entry of a folder: of storage parts, which stand in no scenario, nothing else tells them.
std::string explain_kind(const CatalogueKind& kind) {
  std::vector<Row> rows;
  add_rows(schema_of_kind(kind.folder), "", Depth::up_to_entries, rows);
  return fmt::format("Keys of a {} (an entry of configs/catalogue/{}):\n{}", kind.noun, kind.folder,
                     table_text(rows));
}

std::string explain_entry(std::string_view folder, std::string_view id) {
  const std::vector<std::string> ids = catalogue_ids(folder);
  const CatalogueKind& kind = *find_kind(folder);
  if (std::ranges::find(ids, id) == ids.end()) {
    throw UserError(unknown_entry(kind, id));
  }
  Diagnostics errors;
  Expander expander(errors);
  Value value = scalar_value(id, {std::string(id)});
  expander.entry(value, kind, schema_of_kind(folder), "");
  errors.throw_if_any();
  return fmt::format("{} {}, with the source of each value:\n{}", kind.noun, id, to_annotated_text(value));
}

}  // namespace

std::string explain(std::string_view path) {
  if (path.ends_with(".gguf")) {
    return describe(GgufFile::open(path));
  }
  const std::size_t slash = path.find('/');
  if (const CatalogueKind* kind = find_kind(path)) {
    return explain_kind(*kind);
  }
  if (slash == std::string_view::npos) {
    return explain_key(path);
  }
  return explain_entry(path.substr(0, slash), path.substr(slash + 1));
}

nlohmann::ordered_json json_schema() {
  const SchemaInfo& scenario = schema<RunSpec>().info();
  const std::string extends(kExtends);
  nlohmann::ordered_json required = nlohmann::ordered_json::array();
  for (const FieldInfo& info : scenario.fields) {
    if (!info.fallback) {
      required.push_back(info.key);
    }
  }
  nlohmann::ordered_json result = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                                   {"title", "kvsim scenario"}};
  result.update(to_json_schema(scenario, catalogue_ids));
  result["properties"][extends] = {{"type", "string"},
                                   {"description", "scenario file that this one changes"}};
  // What a scenario leaves out, the one that it extends may give.
  result["anyOf"] = {{{"required", {extends}}}, {{"required", required}}};
  return result;
}

}  // namespace kvsim::config
