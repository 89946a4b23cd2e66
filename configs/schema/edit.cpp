// SPDX-License-Identifier: Apache-2.0
#include "configs/schema/edit.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "configs/schema/yaml.h"

namespace kvsim::config {
namespace {

constexpr std::size_t kMaxSteps = 64;

std::optional<std::size_t> list_index(std::string_view text) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return index;
}

bool has_only_indices(const Value& map) {
  return !map.entries.empty() && std::ranges::all_of(map.entries, [](const MapEntry& entry) {
    return list_index(entry.key).has_value();
  });
}

std::string no_such_element(std::string_view step, const Value& list) {
  return fmt::format("there is no element {}; the list has {}, counted from 0", step, list.items.size());
}

Value merge_elements(const Value& base, const Value& over, std::string_view path, Diagnostics& errors) {
  Value result = base;
  for (const MapEntry& entry : over.entries) {
    const std::string element = join_path(path, entry.key);
    const std::size_t index = list_index(entry.key).value_or(result.items.size());
    if (index < result.items.size()) {
      result.items[index] = merge(result.items[index], entry.value, element, errors);
    } else {
      errors.error(entry.where, element, no_such_element(entry.key, base));
    }
  }
  return result;
}

Value extend_name(const Value& name, const Value& over) {
  Value result = over;
  result.entries.insert(result.entries.begin(), MapEntry{std::string(kExtends), name.where, name});
  return result;
}

/// "model.layers=2" in its parts.
struct Change {
  std::vector<std::string_view> path;
  Value value;
};

Change parse_override(std::string_view text, const std::string& name) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    throw UserError(
        fmt::format("{}: has no '='; write it as path.to.key=value, such as model.layers=2", name));
  }
  Change result;
  std::string_view path = text.substr(0, equals);
  while (true) {
    const std::size_t dot = path.find('.');
    if (path.substr(0, dot).empty()) {
      throw UserError(fmt::format("{}: has an empty step in its path; write it as path.to.key=value", name));
    }
    if (result.path.size() >= kMaxSteps) {
      throw UserError(fmt::format("{}: has more than {} steps in its path", name, kMaxSteps));
    }
    result.path.push_back(path.substr(0, dot));
    if (dot == std::string_view::npos) {
      break;
    }
    path.remove_prefix(dot + 1);
  }
  const std::string value(text.substr(equals + 1));
  if (value.find_first_not_of(' ') == std::string::npos) {
    throw UserError(fmt::format("{}: has no value behind '='", name));
  }
  Diagnostics errors;
  result.value = parse_yaml(
      {.name = name, .text = value, .has_lines = false, .path = std::string(text.substr(0, equals))}, errors);
  errors.throw_if_any();
  return result;
}

/// The element that one step leads to from a list.
Value& element(Value& list, std::string_view step, const SourceLocation& where) {
  const std::optional<std::size_t> index = list_index(step);
  if (!index || *index >= list.items.size()) {
    fail_at(where, no_such_element(step, list));
  }
  return list.items[*index];
}

/// What is neither a list nor a map becomes a map: a name one that extends it, unless it says that there is
/// none.
void make_container(Value& value, const SourceLocation& where) {
  if (value.is_list() || value.is_map()) {
    return;
  }
  value = value.is_scalar() && value.text != "none" ? extend_name(value, map_value(where)) : map_value(where);
}

/// Sets what the path leads to, from its step `first` on.
void set_path(Value& root, const Change& change, std::size_t first, const SourceLocation& where) {
  const std::string_view step = change.path[first];
  const bool last = first + 1 == change.path.size();
  make_container(root, where);
  if (root.is_map() && last) {
    return root.set(step, change.value);
  }
  if (root.is_map() && root.find(step) == nullptr) {
    root.set(step, map_value(where));
  }
  Value& child = root.is_map() ? *root.find(step) : element(root, step, where);
  if (last) {
    child = change.value;
  } else {
    set_path(child, change, first + 1, where);
  }
}

}  // namespace

Value merge(const Value& base, const Value& over, std::string_view path, Diagnostics& errors) {
  if (!over.is_map() || over.find(kExtends) != nullptr) {
    return over;
  }
  if (base.is_list() && has_only_indices(over)) {
    return merge_elements(base, over, path, errors);
  }
  if (base.is_scalar()) {
    return extend_name(base, over);
  }
  if (!base.is_map()) {
    return over;
  }
  Value result = base;
  result.where = over.where;
  for (const MapEntry& entry : over.entries) {
    Value* old = result.find(entry.key);
    if (old == nullptr) {
      result.entries.push_back(entry);
    } else {
      *old = merge(*old, entry.value, join_path(path, entry.key), errors);
    }
  }
  return result;
}

void apply_override(Value& root, const Override& change) {
  set_path(root, parse_override(change.text, change.name), 0, SourceLocation{change.name});
}

}  // namespace kvsim::config
