// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/resolve.h"

#include <fmt/ranges.h>

#include "configs/error/error.h"
#include "configs/spec/expand.h"
#include "configs/spec/schemas.h"

namespace kvsim::config {
namespace {

/// Everything is expanded and read even after mistakes, so that all of them are told.
RunSpec read_with(Expander& expander, Value& root, std::string_view file, Diagnostics& errors) {
  expander.scenario(root, file);
  return root.is_invalid() ? RunSpec{} : schema<RunSpec>().read({root, "", errors});
}

Scenario read(const SourceText& source, const Overrides& overrides, Diagnostics& errors) {
  Expander expander(errors);
  Value root = expander.load(source);
  if (root.is_map()) {
    for (const Override& change : overrides) {
      apply_override(root, change);
    }
  }
  Scenario scenario;
  scenario.spec = read_with(expander, root, source.name, errors);
  scenario.inputs = expander.inputs();
  return scenario;
}

/// Names the changes in the errors that are told about a place in a file and would not be there without them.
void blame(const Overrides& overrides, const SourceText& source, Diagnostics& errors) {
  Diagnostics without;
  try {
    static_cast<void>(read(source, {}, without));
  } catch (const UserError&) {  // broken syntax in what a change replaces: it has no errors to compare with
  }
  std::vector<std::string> names;
  for (const Override& change : overrides) {
    names.push_back(change.name);
  }
  errors.add_cause(without, names, fmt::format("after {}", fmt::join(names, " ")));
}

Scenario load(const SourceText& source, const Overrides& overrides) {
  Diagnostics errors;
  Scenario scenario = read(source, overrides, errors);
  if (!errors.empty() && !overrides.empty()) {
    blame(overrides, source, errors);
  }
  errors.throw_if_any();
  return scenario;
}

template <class T>
T load_entry(std::string_view folder, std::string_view id_or_path, std::vector<InputFile>* inputs = nullptr) {
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
  if (inputs != nullptr) {
    *inputs = expander.inputs();
  }
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
  RunSpec spec = read_with(expander, root, root.where.file, errors);
  errors.throw_if_any();
  return spec;
}

DeviceSpec load_device(std::string_view id_or_path) {
  return load_entry<DeviceSpec>("devices", id_or_path);
}
DramPartSpec load_dram_part(std::string_view id_or_path, std::vector<InputFile>* inputs) {
  return load_entry<DramPartSpec>("dram", id_or_path, inputs);
}
StoragePartSpec load_storage_part(std::string_view id_or_path, std::vector<InputFile>* inputs) {
  return load_entry<StoragePartSpec>("storage", id_or_path, inputs);
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
TensorType load_tensor_type(std::string_view id_or_path) {
  return load_entry<TensorType>("tensor_types", id_or_path);
}

nlohmann::ordered_json to_json(const RunSpec& spec) {
  return schema<RunSpec>().write(spec);
}

RunSpec run_spec_from_json(std::string_view json) {
  return restore_scenario(json).spec;
}

}  // namespace kvsim::config
