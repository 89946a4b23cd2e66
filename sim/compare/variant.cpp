// SPDX-License-Identifier: Apache-2.0
#include "sim/compare/variant.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "configs/error/error.h"
#include "configs/spec/what_if.h"

namespace kvsim::sim {
namespace {

using Texts = std::vector<std::string>;

constexpr std::size_t kMostVariants = 1000;

struct Vary {
  std::string key;
  Texts values;
};

Vary parse_vary(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
    throw UserError(fmt::format("--vary '{}': write PATH=VALUE,VALUE, as in engine.kv=f16,q8_0", text));
  }
  Vary vary{.key = text.substr(0, equals), .values = {}};
  const char separator = text.find(';') == std::string::npos ? ',' : ';';
  for (std::size_t start = equals + 1; start <= text.size();) {
    const std::size_t end = std::min(text.find(separator, start), text.size());
    vary.values.push_back(text.substr(start, end - start));
    if (vary.values.back().empty()) {
      throw UserError(fmt::format("--vary '{}': a value is empty", text));
    }
    start = end + 1;
  }
  return vary;
}

/// "workload.threads": what tables call a change to it.
std::string short_name(const std::string& key) {
  const std::size_t dot = key.rfind('.');
  return dot == std::string::npos ? key : key.substr(dot + 1);
}

std::vector<Variant> combinations(const std::string& file, const Texts& vary) {
  std::vector<Variant> variants{{.name = "", .scenario = file, .set = {}, .resolved = {}}};
  std::set<std::string> keys;
  for (const std::string& text : vary) {
    const Vary one = parse_vary(text);
    if (!keys.insert(one.key).second) {
      throw UserError(fmt::format("--vary: {} is varied twice; give all its values once", one.key));
    }
    std::vector<Variant> more;
    for (const Variant& so_far : variants) {
      for (const std::string& value : one.values) {
        Variant& next = more.emplace_back(so_far);
        next.set.push_back(one.key + "=" + value);
        next.name += fmt::format("{}{}={}", next.name.empty() ? "" : ", ", short_name(one.key), value);
      }
    }
    variants = std::move(more);
    if (variants.size() > kMostVariants) {
      throw UserError(fmt::format("--vary: more than {} combinations; vary fewer values", kMostVariants));
    }
  }
  return variants;
}

std::vector<Variant> named_by_file(const Texts& files) {
  std::map<std::string, int> stems;
  for (const std::string& file : files) {
    ++stems[std::filesystem::path(file).stem().string()];
  }
  std::vector<Variant> variants;
  for (const std::string& file : files) {
    const std::string stem = std::filesystem::path(file).stem().string();
    variants.push_back({.name = stems[stem] == 1 ? stem : file, .scenario = file, .set = {}, .resolved = {}});
  }
  return variants;
}

std::vector<Variant> of_what_if(const std::string& file) {
  const config::WhatIf what_if = config::load_what_if(file);
  std::vector<Variant> variants;
  for (const config::WhatIfVariant& variant : what_if.variants) {
    variants.push_back({.name = variant.name, .scenario = what_if.base, .set = variant.set, .resolved = {}});
  }
  return variants;
}

std::vector<Variant> asked(const Texts& files, const Texts& vary) {
  if (files.empty()) {
    throw UserError("give scenario files, or one and --vary, or a what-if file; see 'kvsim compare --help'");
  }
  const bool what_if = files.size() == 1 && config::is_what_if(files[0]);
  if (what_if && !vary.empty()) {
    throw UserError(fmt::format("{} names its variants; --vary needs a scenario", files[0]));
  }
  if (files.size() > 1 && !vary.empty()) {
    throw UserError("--vary changes one scenario, and several are given");
  }
  if (files.size() == 1 && vary.empty() && !what_if) {
    throw UserError(
        fmt::format("{} alone has nothing to be compared with; give another scenario or --vary", files[0]));
  }
  std::vector<Variant> variants = what_if        ? of_what_if(files[0])
                                  : vary.empty() ? named_by_file(files)
                                                 : combinations(files[0], vary);
  if (variants.size() < 2) {
    throw UserError("--vary: one value gives nothing to compare; give two or more");
  }
  return variants;
}

/// The configuration without what it is called.
std::string substance(const Variant& variant) {
  nlohmann::ordered_json json = config::to_json(variant.resolved.spec);
  json.erase("name");
  json.erase("description");
  return json.dump();
}

}  // namespace

std::vector<Variant> variants_of(const Texts& files, const Texts& vary, const Texts& set) {
  std::vector<Variant> variants = asked(files, vary);
  for (const std::string& text : vary) {
    const std::string key = text.substr(0, text.find('=') + 1);
    if (std::ranges::any_of(set, [&](const std::string& change) { return change.starts_with(key); })) {
      throw UserError(
          fmt::format("--set {0}: --vary varies {0} already; leave one out", key.substr(0, key.size() - 1)));
    }
  }
  std::map<std::string, std::string> names;
  for (Variant& variant : variants) {
    variant.set.insert(variant.set.begin(), set.begin(), set.end());
    config::Overrides changes;
    for (const std::string& change : variant.set) {
      changes.emplace_back(change, fmt::format("{}variant '{}': set {}",
                                               vary.empty() && files.size() == 1 ? files[0] + ": " : "",
                                               variant.name, change));
    }
    variant.resolved = config::load_scenario(variant.scenario, changes);
    const auto [same, is_new] = names.emplace(substance(variant), variant.name);
    if (!is_new) {
      throw UserError(
          fmt::format("variants '{}' and '{}' differ in nothing; leave one out", same->second, variant.name));
    }
  }
  return variants;
}

}  // namespace kvsim::sim
