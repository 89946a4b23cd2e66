// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/expand.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "configs/error/error.h"
#include "configs/gguf/gguf_model.h"
#include "configs/schema/edit.h"
#include "configs/spec/master_series.h"
#include "configs/spec/schemas.h"

namespace kvsim::config {
namespace {

constexpr std::size_t kMaxChain = 16;
constexpr std::string_view kName = "name";

bool is_gguf(std::string_view name) {
  return name.ends_with(".gguf");
}

bool is_path(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".yaml") || name.ends_with(".yml") ||
         is_gguf(name);
}

/// A path in a file is relative to that file, one on the command line to the working directory.
std::filesystem::path resolve_path(const Value& name) {
  const std::filesystem::path path(name.text);
  if (name.where.line == 0) {
    return path.lexically_normal();
  }
  return (std::filesystem::path(name.where.file).parent_path() / path).lexically_normal();
}

std::string text_of(const Value& map, std::string_view key) {
  const Value* value = map.find(key);
  return value != nullptr && value->is_scalar() ? value->text : std::string();
}

void set_name(Value& map, std::string_view name) {
  map.entries.insert(map.entries.begin(),
                     MapEntry{std::string(kName), map.where, scalar_value(name, map.where)});
}

std::string stem(const std::string& file) {
  return std::filesystem::path(file).stem().string();
}

/// What a set says of its default that is made of its members' ones.
constexpr std::string_view kSetOfDefaults = "see its keys";

/// Parameter sets that were left out are written in, so that the names within them are expanded too.
void add_defaults(Value& map, const SchemaInfo& schema) {
  for (const FieldInfo& info : schema.fields) {
    const bool is_set = info.nested != nullptr && !info.is_list && !info.may_be_none;
    if (!is_set || !info.fallback || map.find(info.key) != nullptr) {
      continue;
    }
    if (info.catalogue.empty() && *info.fallback != kSetOfDefaults) {  // left out by a rule
      continue;
    }
    map.set(info.key,
            info.catalogue.empty() ? map_value(map.where) : scalar_value(*info.fallback, map.where));
  }
}

}  // namespace

std::string content_hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return fmt::format("{:016x}", hash);
}

Value Expander::load(const SourceText& source) {
  if (std::ranges::find(inputs_, source.name, &InputFile::path) == inputs_.end()) {
    inputs_.push_back({source.name, content_hash(source.text)});
  }
  return parse_yaml(source, errors_);
}

void Expander::scenario(Value& root, std::string_view file) {
  if (!root.is_map()) {
    return;
  }
  if (!merge_base(root, nullptr, "", {std::string(file)})) {
    root.kind = Value::Kind::invalid;
    return;
  }
  if (root.find(kName) == nullptr) {
    set_name(root, stem(std::string(file)));
  }
  adopt_weights(root);
  fields(root, schema<RunSpec>().info(), "");
}

/// `model: FILE.gguf` says its weights' formats too: they become engine.weights, which may not be given
/// besides.
void Expander::adopt_weights(Value& root) {
  Value* model = root.find("model");
  if (model == nullptr) {
    return;
  }
  gguf_weights_.reset();
  entry(*model, *find_kind("llms"), schema<LlmSpec>().info(), "model");
  if (!gguf_weights_) {
    return;
  }
  if (root.find("engine") == nullptr) {
    root.set("engine", map_value(root.where));
  }
  Value& engine = *root.find("engine");
  if (const Value* weights = engine.find("weights")) {
    errors_.error(weights->where, "engine.weights",
                  fmt::format("{} says itself in which formats its weights are; leave this key out",
                              gguf_weights_->name));
  } else if (engine.is_map()) {
    engine.set("weights", parse_yaml(*gguf_weights_, errors_));
  }
}

void Expander::entry(Value& value, const CatalogueKind& kind, const SchemaInfo& schema,
                     const std::string& path) {
  if (value.is_scalar()) {
    value = named(value, &kind, path, {});
  } else if (value.is_map() && !merge_base(value, &kind, path, {})) {
    value.kind = Value::Kind::invalid;
  }
  if (!value.is_map()) {
    return;
  }
  if (kind.folder == "formats") {
    add_tensor_types(value, path);
  }
  fields(value, schema, path);
}

void Expander::fields(Value& map, const SchemaInfo& schema, const std::string& path) {
  add_defaults(map, schema);
  for (const FieldInfo& info : schema.fields) {
    if (Value* value = map.find(info.key)) {
      field(*value, info, join_path(path, info.key));
    }
  }
}

void Expander::field(Value& value, const FieldInfo& info, const std::string& path) {
  if (info.nested == nullptr) {
    return;
  }
  const auto expand = [&](Value& one, const std::string& where) {
    if (info.fallback == kNone && one.is_scalar() && one.text == kNone) {
      return;
    }
    if (const CatalogueKind* kind = find_kind(info.catalogue)) {
      entry(one, *kind, *info.nested, where);
    } else if (one.is_map()) {
      if (info.nested == &kvsim::config::schema<SeriesSpec>().info()) {
        series(one, where);
      }
      fields(one, *info.nested, where);
    }
  };
  if (!info.is_list) {
    return expand(value, path);
  }
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    expand(value.items[i], join_path(path, i));
  }
}

/// A captured series' file becomes its items. Those of a run that is restored are there already.
void Expander::series(Value& map, const std::string& path) {
  const Value* file = map.find("file");
  if (file == nullptr || !file->is_scalar() || map.find("items") != nullptr) {
    return;
  }
  const Value name = *file;
  Value items;
  items.kind = Value::Kind::invalid;
  try {
    const SourceText csv = read_source(resolve_path(name));
    inputs_.push_back({csv.name, content_hash(csv.text)});
    items = series_items(csv, join_path(path, "file"), errors_);
  } catch (const UserError& error) {
    errors_.error(name.where, join_path(path, "file"), error.what());
  }
  map.set("items", std::move(items));
}

/// The model in a GGUF file, as the text of a catalogue entry would be.
SourceText Expander::gguf_source(const std::filesystem::path& path) {
  const GgufFile file = GgufFile::open(path);
  inputs_.push_back({file.name(), provenance_hash(file)});
  const auto text = [&](const nlohmann::ordered_json& json) {
    return SourceText{.name = file.name(), .text = json.dump(), .has_lines = false};
  };
  const LlmSpec model = llm_spec(file);  // its refusals say more
  gguf_weights_ = text(schema<WeightFormat>().write(weight_format(file)));
  return text(schema<LlmSpec>().write(model));
}

/// The text that a name stands for; none, and an error, if there is none.
std::optional<SourceText> Expander::find_source(const Value& name, const CatalogueKind* kind,
                                                const std::string& path) {
  std::string what;
  if (is_gguf(name.text) && (kind == nullptr || kind->folder != "llms")) {
    what = in_quotes(name.text) + " is a model file; it may stand at 'model' alone";
  } else if (is_path(name.text)) {
    try {
      return is_gguf(name.text) ? gguf_source(resolve_path(name)) : read_source(resolve_path(name));
    } catch (const UserError& error) {
      what = error.what();
    }
  } else if (kind == nullptr) {
    what =
        in_quotes(name.text) + " is no file; a scenario extends another scenario's file, such as ./base.yaml";
  } else if (const CatalogueFile* file = find_entry(kind->folder, name.text)) {
    return SourceText{.name = std::string(file->path), .text = std::string(file->text)};
  } else {
    what = unknown_entry(*kind, name.text);
  }
  errors_.error(name.where, path, what);
  return std::nullopt;
}

/// The map that a name stands for, with all that it extends merged; invalid, and an error, if there is none.
Value Expander::named(const Value& name, const CatalogueKind* kind, const std::string& path, Chain chain) {
  Value invalid;
  invalid.kind = Value::Kind::invalid;
  const std::optional<SourceText> source = find_source(name, kind, path);
  if (!source) {
    return invalid;
  }
  const bool seen = std::ranges::find(chain, source->name) != chain.end();
  chain.push_back(source->name);
  if (seen || chain.size() > kMaxChain) {
    errors_.error(name.where, path,
                  seen ? fmt::format("extends itself: {}", fmt::join(chain, " -> "))
                       : fmt::format("extends through more than {} files", kMaxChain));
    return invalid;
  }
  Value map = load(*source);
  if (!map.is_map()) {
    errors_.error(map.where, path, fmt::format("expects a map, found {}", describe(map)));
    return invalid;
  }
  if (!merge_base(map, kind, path, chain)) {
    return invalid;
  }
  if (map.find(kName) == nullptr) {
    set_name(map, stem(source->name));
  }
  return map;
}

/// Lays a map over what its `extends` names. False, and an error, if that cannot be had.
bool Expander::merge_base(Value& map, const CatalogueKind* kind, const std::string& path,
                          const Chain& chain) {
  const Value* extends = map.find(kExtends);
  if (extends == nullptr) {
    return true;
  }
  const Value base_name = *extends;
  const std::string key = join_path(path, kExtends);
  if (!base_name.is_scalar()) {
    errors_.error(base_name.where, key,
                  fmt::format("expects an id or a file, found {}", describe(base_name)));
    return false;
  }
  map.erase(kExtends);
  Value base = named(base_name, kind, key, chain);
  if (base.is_invalid()) {
    return false;
  }
  const std::string name = text_of(base, kName);
  base.erase(kName);
  // A map in place of an entry is no longer that entry. Tensor types keep their name: rules know them by it.
  if (chain.empty() && map.find(kName) == nullptr) {
    const bool same = map.entries.empty() || kind->folder == "tensor_types";
    set_name(map, same ? name : name + " (changed)");
  }
  map = merge(base, map, path, errors_);
  return true;
}

/// Completes `types` with all that `main`, the rules and the fall-backs lead to, and F32 and F16, which
/// llama.cpp uses for vectors and as the last fall-back.
void Expander::add_tensor_types(Value& format, const std::string& path) {
  const CatalogueKind& kind = *find_kind("tensor_types");
  if (format.find("types") == nullptr) {
    Value list;
    list.kind = Value::Kind::list;
    list.where = format.where;
    format.set("types", std::move(list));
  }
  Value& types = *format.find("types");
  std::set<std::string> known;
  std::vector<Value> wanted{scalar_value("F32", format.where), scalar_value("F16", format.where)};
  const auto want = [&wanted](const Value* name) {
    if (name != nullptr && name->is_scalar() && !name->text.empty()) {
      wanted.push_back(*name);
    }
  };
  for (std::size_t i = 0; i < types.items.size(); ++i) {
    entry(types.items[i], kind, schema<TensorType>().info(), join_path(join_path(path, "types"), i));
    known.insert(text_of(types.items[i], kName));
    want(types.items[i].find("fallback"));
  }
  want(format.find("main"));
  if (const Value* rules = format.find("rules")) {
    for (const Value& rule : rules->items) {
      want(rule.find("type"));
    }
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {  // NOLINT(modernize-loop-convert): fall-backs are added
    const Value name = wanted[i];
    if (!known.insert(name.text).second) {
      continue;
    }
    Value type = named(name, &kind, path, {});
    want(type.find("fallback"));
    types.items.push_back(std::move(type));
  }
}

}  // namespace kvsim::config
