// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/resolve.h"

#include "configs/schema/edit.h"
#include "configs/spec/expand.h"
#include "configs/spec/schemas.h"

namespace kvsim::config {
namespace {

/// Everything is expanded and read even after mistakes, so that all of them are told.
RunSpec resolve_with(Expander& expander, Value& root, std::string_view file, Diagnostics& errors) {
  expander.scenario(root, file);
  RunSpec spec;
  if (!root.is_invalid()) {
    spec = schema<RunSpec>().read({root, "", errors});
  }
  errors.throw_if_any();
  return spec;
}

Scenario load(const SourceText& source, const Overrides& overrides) {
  Diagnostics errors;
  Expander expander(errors);
  Value root = expander.load(source);
  if (root.is_map()) {
    for (const std::string& change : overrides) {
      apply_override(root, change);
    }
  }
  Scenario scenario;
  scenario.spec = resolve_with(expander, root, source.name, errors);
  scenario.inputs = expander.inputs();
  return scenario;
}

template <class T>
T load_entry(std::string_view folder, std::string_view id_or_path) {
  Diagnostics errors;
  Expander expander(errors);
  const CatalogueKind& kind = *find_kind(folder);
  Value value = scalar_value(id_or_path, {std::string(kind.noun)});
  expander.entry(value, kind, schema<T>().info(), "");
  T result;
  if (!value.is_invalid()) {
    result = schema<T>().read({value, "", errors});
  }
  errors.throw_if_any();
  return result;
}

}  // namespace

Scenario load_scenario(const std::filesystem::path& path, const Overrides& overrides) {
  return load(read_source(path), overrides);
}

Scenario restore_scenario(std::string_view json, const Overrides& overrides, std::string_view source) {
  return load({.name = std::string(source), .text = std::string(json)}, overrides);
}

RunSpec resolve(Value root) {
  Diagnostics errors;
  Expander expander(errors);
  return resolve_with(expander, root, root.where.file, errors);
}

DeviceSpec load_device(std::string_view id_or_path) {
  return load_entry<DeviceSpec>("devices", id_or_path);
}
DramPartSpec load_dram_part(std::string_view id_or_path) {
  return load_entry<DramPartSpec>("dram", id_or_path);
}
CoreSpec load_core(std::string_view id_or_path) {
  return load_entry<CoreSpec>("cores", id_or_path);
}
LlmSpec load_llm(std::string_view id_or_path) {
  return load_entry<LlmSpec>("llms", id_or_path);
}
WeightFormat load_weight_format(std::string_view id_or_path) {
  return load_entry<WeightFormat>("formats", id_or_path);
}

nlohmann::ordered_json to_json(const RunSpec& spec) {
  return schema<RunSpec>().write(spec);
}

RunSpec run_spec_from_json(std::string_view json) {
  return restore_scenario(json).spec;
}

}  // namespace kvsim::config
