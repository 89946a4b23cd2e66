// SPDX-License-Identifier: Apache-2.0
// How members of each type are read, written and described: scalars by their grammar, lists of short texts,
// parameter sets by their table, lists of these, and optional ones, for which `none` may stand.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "configs/error/error.h"
#include "configs/schema/info.h"
#include "configs/schema/place.h"
#include "configs/units/text.h"

namespace kvsim::config {

template <class T>
class Schema;
/// The table of T. Specialised for each parameter set.
template <class T>
const Schema<T>& schema();

/// A list written as short texts, each of which gives one or more elements. A specialisation has
///   static std::string kind();
///   static std::string pattern();
///   static Parsed<List> parse_item(std::string_view);
///   static std::vector<std::string> to_items(const List&);
template <class List>
struct ListGrammar;

template <class M>
concept HasListGrammar = requires {
  ListGrammar<M>::kind();
};

template <class M>
struct IsVector : std::false_type {};
template <class E>
struct IsVector<std::vector<E>> : std::true_type {};

template <class M>
struct IsOptional : std::false_type {
  using Content = M;
};
template <class E>
struct IsOptional<std::optional<E>> : std::true_type {
  using Content = E;
};
/// M, or what an optional M holds.
template <class M>
using Content = typename IsOptional<M>::Content;

/// Every other class has a table.
template <class M>
concept HasSchema = std::is_class_v<M> && !HasGrammar<M> && !HasListGrammar<M> && !IsVector<M>::value &&
                    !IsOptional<M>::value;

/// What is allowed of a scalar beyond its grammar.
template <class M>
struct Rules {
  std::optional<M> low;
  std::optional<M> high;
  bool power_of_two = false;
};

/// False, and an error, if the place holds no map. Reports keys that `info` does not know.
[[nodiscard]] bool open_map(const Place& place, const SchemaInfo& info);
[[nodiscard]] bool open_list(const Place& place);
/// False, and an error, if the place holds no scalar. Numbers may not stand in quotes.
[[nodiscard]] bool open_scalar(const Place& place, std::string_view kind, bool may_be_quoted);
void report_missing(const Place& parent, const FieldInfo& field);

[[nodiscard]] bool is_power_of_two(std::int64_t value);
[[nodiscard]] bool is_power_of_two(Bytes value);

template <class M>
std::string range_text(const Rules<M>& rules) {
  if (rules.low && rules.high) {
    return fmt::format("{} to {}", to_text(*rules.low), to_text(*rules.high));
  }
  return rules.low ? fmt::format("at least {}", to_text(*rules.low)) : std::string();
}

/// Why a value is not allowed; empty if it is.
template <class M>
std::string broken_rule(const Rules<M>& rules, const M& value) {
  if constexpr (std::totally_ordered<M>) {
    if ((rules.low && value < *rules.low) || (rules.high && *rules.high < value)) {
      return fmt::format("is out of range; allowed is {}", range_text(rules));
    }
  }
  if constexpr (std::same_as<M, std::int64_t> || std::same_as<M, Bytes>) {
    if (rules.power_of_two && !is_power_of_two(value)) {
      return "is not a power of two";
    }
  }
  return {};
}

/// Numbers and truth values go into JSON as such, everything else as text.
template <class M>
inline constexpr bool kIsJsonNative =
    std::same_as<M, bool> || std::same_as<M, std::int64_t> || std::same_as<M, double>;

template <class M>
void read_scalar(const Place& place, const Rules<M>& rules, M& out) {
  if (!open_scalar(place, Grammar<M>::kind(), !kIsJsonNative<M>)) {
    return;
  }
  const std::string& text = place.value().text;
  Parsed<M> parsed = parse<M>(text);
  if (!parsed.value) {
    const bool ranged = std::same_as<M, std::int64_t> && rules.low;
    return place.error(fmt::format("{} {}{}", in_quotes(text), parsed.reason,
                                   ranged ? "; allowed is " + range_text(rules) : ""));
  }
  if (const std::string broken = broken_rule(rules, *parsed.value); !broken.empty()) {
    return place.error(fmt::format("{} {}", in_quotes(text), broken));
  }
  out = std::move(*parsed.value);
}

template <class M>
void read_member(const Place& place, const Rules<Content<M>>& rules, M& out);

template <class E>
void read_elements(const Place& place, std::vector<E>& out) {
  if (!open_list(place)) {
    return;
  }
  const std::vector<Value>& items = place.value().items;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Place item = place.child(std::to_string(i), items[i]);
    if constexpr (HasListGrammar<std::vector<E>>) {
      using List = ListGrammar<std::vector<E>>;
      if (!open_scalar(item, List::kind(), true)) {
        continue;
      }
      Parsed<std::vector<E>> parsed = List::parse_item(items[i].text);
      if (!parsed.value) {
        item.error(fmt::format("{} {}", in_quotes(items[i].text), parsed.reason));
        continue;
      }
      out.insert(out.end(), parsed.value->begin(), parsed.value->end());
    } else {
      read_member(item, Rules<E>{}, out.emplace_back());
    }
  }
}

template <class M>
void read_member(const Place& place, const Rules<Content<M>>& rules, M& out) {
  const Value& value = place.value();
  if (value.is_invalid()) {
    return place.errors().repeat();
  }
  if constexpr (IsOptional<M>::value) {
    out.reset();
    if (!value.is_scalar() || value.text != kNone) {
      read_member(place, rules, out.emplace());
    }
  } else if constexpr (IsVector<M>::value) {
    out.clear();
    read_elements(place, out);
  } else if constexpr (HasSchema<M>) {
    out = schema<M>().read(place);
  } else {
    read_scalar(place, rules, out);
  }
}

template <class M>
nlohmann::ordered_json write_member(const M& value) {
  if constexpr (IsOptional<M>::value) {
    return value ? write_member(*value) : nlohmann::ordered_json(kNone);
  } else if constexpr (HasListGrammar<M>) {
    return ListGrammar<M>::to_items(value);
  } else if constexpr (IsVector<M>::value) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const auto& element : value) {
      list.push_back(write_member(element));
    }
    return list;
  } else if constexpr (HasSchema<M>) {
    return schema<M>().write(value);
  } else if constexpr (kIsJsonNative<M>) {
    return value;
  } else {
    return to_text(value);
  }
}

/// A default as text.
template <class M>
std::string member_text(const M& value) {
  if constexpr (IsOptional<M>::value) {
    return value ? member_text(*value) : std::string(kNone);
  } else if constexpr (HasGrammar<M>) {
    return to_text(value);
  } else {
    return write_member(value).dump();
  }
}

template <class M>
nlohmann::ordered_json scalar_json_schema() {
  if constexpr (std::same_as<M, bool>) {
    return {{"type", "boolean"}};
  }
  if constexpr (std::same_as<M, std::int64_t>) {
    return {{"type", "integer"}};
  }
  if constexpr (std::same_as<M, double>) {
    return {{"type", "number"}};
  }
  if constexpr (std::is_enum_v<M>) {
    return {{"enum", Grammar<M>::names()}};
  }
  nlohmann::ordered_json schema = {{"type", "string"}};
  if constexpr (!std::is_enum_v<M>) {
    if (!Grammar<M>::pattern().empty()) {
      schema["pattern"] = Grammar<M>::pattern();
    }
  }
  return schema;
}

/// Fills in what follows from the member's type.
template <class M>
void describe_member(FieldInfo& info) {
  if constexpr (IsOptional<M>::value) {
    describe_member<Content<M>>(info);
    info.may_be_none = true;
    info.type += fmt::format(", or {}", kNone);
  } else if constexpr (HasListGrammar<M>) {
    info.is_list = true;
    info.type = fmt::format("a list of {}", ListGrammar<M>::kind());
    info.json = {{"type", {"string", "integer"}}, {"pattern", ListGrammar<M>::pattern()}};
  } else if constexpr (IsVector<M>::value) {
    describe_member<typename M::value_type>(info);
    info.is_list = true;
    info.type = "a list of maps";
  } else if constexpr (HasSchema<M>) {
    info.nested = &schema<M>().info();
    info.type = "a map";
  } else {
    info.type = Grammar<M>::kind();
    info.json = scalar_json_schema<M>();
  }
}

template <class M>
void describe_rules(const Rules<M>& rules, FieldInfo& info) {
  if constexpr (HasGrammar<M>) {
    info.allowed = range_text(rules);
    if (rules.power_of_two) {
      info.allowed += info.allowed.empty() ? "a power of two" : ", a power of two";
    }
    if constexpr (std::same_as<M, std::int64_t> || std::same_as<M, double>) {
      if (rules.low) {
        info.json["minimum"] = *rules.low;
      }
      if (rules.high) {
        info.json["maximum"] = *rules.high;
      }
    }
  }
}

}  // namespace kvsim::config
