// SPDX-License-Identifier: Apache-2.0
// `kvsim validate`, `explain` and `list`.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "configs/error/error.h"
#include "configs/spec/catalogue.h"
#include "configs/spec/explain.h"
#include "configs/spec/resolve.h"
#include "configs/spec/what_if.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"
#include "sim/cli/output.h"
#include "sim/compare/variant.h"

namespace kvsim::sim {

namespace {

/// Throws UserError with the file's mistakes.
std::string summary_of(const std::string& file) {
  if (config::is_what_if(file)) {
    return fmt::format("{} variants", variants_of({file}, {}, {}).size());
  }
  const config::Scenario scenario = config::load_scenario(file);
  return fmt::format("{} on {}", scenario.spec.model.name, scenario.spec.device.name);
}

}  // namespace

int run_validate(const Command& self, const std::vector<std::string>& arguments) {
  Options options(self);
  options.positional("files");
  if (!options.parse(arguments)) {
    return 0;
  }
  const std::vector<std::string> files = options.list("files");
  if (files.empty() || std::find(files.begin(), files.end(), "") != files.end()) {
    throw UserError(files.empty() ? "give at least one scenario file; see --help"
                                  : "the name of a scenario file is empty; see --help");
  }
  std::string mistakes;
  for (const std::string& file : files) {
    try {
      write_stdout(fmt::format("{}: ok ({})\n", file, summary_of(file)));
    } catch (const UserError& error) {
      mistakes += fmt::format("{}{}", mistakes.empty() ? "" : "\n", error.what());
    }
  }
  if (!mistakes.empty()) {
    throw UserError(mistakes);
  }
  return 0;
}

int run_explain(const Command& self, const std::vector<std::string>& arguments) {
  Options options(self);
  options.add()("json-schema", "print a JSON Schema of scenario files, for editors");
  options.positional("keys");
  if (!options.parse(arguments)) {
    return 0;
  }
  const std::vector<std::string> keys = options.list("keys");
  if (options.has("json-schema")) {
    if (!keys.empty()) {
      throw UserError(fmt::format("--json-schema: takes no key, but '{}' is given", keys[0]));
    }
    write_stdout(config::json_schema().dump(2) + "\n");
    return 0;
  }
  if (keys.size() > 1) {
    throw UserError("give one key, or none for all; see --help");
  }
  if (!keys.empty() && keys[0].empty()) {
    throw UserError("the key is empty; give a key, or no argument for all; see --help");
  }
  write_stdout(config::explain(keys.empty() ? "" : keys[0]));
  return 0;
}

int run_list(const Command& self, const std::vector<std::string>& arguments) {
  Options options(self);
  options.positional("kinds");
  if (!options.parse(arguments)) {
    return 0;
  }
  const std::vector<std::string> kinds = options.list("kinds");
  if (kinds.size() != 1) {
    std::string known;
    for (const config::CatalogueKind& kind : config::catalogue_kinds()) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", kind.folder);
    }
    throw UserError(fmt::format("give one of {}; see --help", known));
  }
  std::string text;
  for (const std::string& id : config::catalogue_ids(kinds[0])) {
    text += id + "\n";
  }
  write_stdout(text);
  return 0;
}

}  // namespace kvsim::sim
