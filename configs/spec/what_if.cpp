// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/what_if.h"

#include <set>

#include <fmt/format.h>

#include "configs/schema/schema.h"
#include "configs/schema/yaml.h"
#include "configs/spec/grammar.h"

namespace kvsim::config {

template <>
const Schema<WhatIfVariant>& schema<WhatIfVariant>() {
  using T = WhatIfVariant;
  static const Schema<T> kSchema{
      "a variant",
      {field("name", &T::name, "what tables call it"),
       field("set", &T::set, "changes to the base, each PATH=VALUE; none: the base itself").by_default({})}};
  return kSchema;
}

namespace {

void check_what_if(const WhatIf& what_if, const Place& place) {
  if (what_if.variants.size() < 2) {
    place.error("variants",
                fmt::format("there {} {}; give two or more", what_if.variants.size() == 1 ? "is" : "are",
                            what_if.variants.size()));
  }
  std::set<std::string> names;
  for (std::size_t i = 0; i < what_if.variants.size(); ++i) {
    const std::string& name = what_if.variants[i].name;
    if (name.empty() || !names.insert(name).second) {
      place.error(fmt::format("variants.{}.name", i),
                  name.empty() ? std::string("is empty") : fmt::format("'{}' stands there twice", name));
    }
  }
}

}  // namespace

template <>
const Schema<WhatIf>& schema<WhatIf>() {
  using T = WhatIf;
  static const Schema<T> kSchema{
      "a what-if",
      {field("description", &T::description, "what it asks").by_default(""),
       field("base", &T::base, "scenario file, seen from this file's folder"),
       field("variants", &T::variants, "what is compared; the first is the reference")},
      check_what_if};
  return kSchema;
}

bool is_what_if(const std::filesystem::path& path) {
  Diagnostics errors;
  const Value root = parse_yaml(read_source(path), errors);
  return root.is_map() && root.find("variants") != nullptr;
}

WhatIf load_what_if(const std::filesystem::path& path) {
  Diagnostics errors;
  const Value root = parse_yaml(read_source(path), errors);
  WhatIf what_if;
  if (!root.is_invalid()) {
    what_if = schema<WhatIf>().read({root, "", errors});
  }
  errors.throw_if_any();
  what_if.base = (path.parent_path() / what_if.base).string();
  return what_if;
}

}  // namespace kvsim::config
