// SPDX-License-Identifier: Apache-2.0
// One table per parameter set: name, type and unit, default or required, range and meaning of each member.
// Reading, printing, documentation and JSON Schema all come from it.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "configs/schema/member.h"

namespace kvsim::config {

/// One line of a table, for a struct T.
template <class T>
struct Field {
  FieldInfo info;
  std::function<void(const Place&, T&)> read;
  std::function<void(T&)> set_default;  ///< empty: required
  std::function<nlohmann::ordered_json(const T&)> write;
};

template <class T>
class Schema {
 public:
  using Check = std::function<void(const T&, const Place&)>;
  using Complete = std::function<void(T&, const Place&)>;

  /// `check` sees what holds between members; it runs when each of them is right by itself. Before it,
  /// `complete` works out those that were left out and follow from others.
  Schema(std::string doc, std::initializer_list<Field<T>> fields, Check check = {}, Complete complete = {})
      : fields_(fields), check_(std::move(check)), complete_(std::move(complete)) {
    info_.doc = std::move(doc);
    for (const Field<T>& field : fields_) {
      info_.fields.push_back(field.info);
    }
  }

  [[nodiscard]] const SchemaInfo& info() const { return info_; }

  /// Reads a map; every mistake in it goes to the place's Diagnostics, and its member keeps its default.
  [[nodiscard]] T read(const Place& place) const {
    T result{};
    if (!open_map(place, info_)) {
      return result;
    }
    const std::size_t before = place.errors().count();
    for (const Field<T>& field : fields_) {
      if (const Value* value = place.value().find(field.info.key)) {
        field.read(place.child(field.info.key, *value), result);
      } else if (field.set_default) {
        field.set_default(result);
      } else {
        report_missing(place, field.info);
      }
    }
    if (place.errors().count() != before) {
      return result;
    }
    if (complete_) {
      complete_(result, place);
    }
    if (check_) {
      check_(result, place);
    }
    return result;
  }

  [[nodiscard]] nlohmann::ordered_json write(const T& value) const {
    nlohmann::ordered_json result = nlohmann::ordered_json::object();
    for (const Field<T>& field : fields_) {
      result[field.info.key] = field.write(value);
    }
    return result;
  }

  /// T with every member at its default. Precondition: none is required.
  [[nodiscard]] T defaults() const {
    T result{};
    for (const Field<T>& field : fields_) {
      check(static_cast<bool>(field.set_default), "a set with defaults has no required member");
      field.set_default(result);
    }
    return result;
  }

 private:
  std::vector<Field<T>> fields_;
  Check check_;
  Complete complete_;
  SchemaInfo info_;
};

/// Builds a line of a table: field("size", &CacheSpec::size, "capacity").between(1_KiB, 1_GiB).
template <class T, class M>
class FieldBuilder {
 public:
  FieldBuilder(std::string key, M T::*member, std::string doc) : member_(member) {
    info_.key = std::move(key);
    info_.doc = std::move(doc);
    describe_member<M>(info_);
  }

  FieldBuilder& between(Content<M> low, Content<M> high) {
    return rules_.low = low, rules_.high = high, *this;
  }
  FieldBuilder& at_least(Content<M> low) { return rules_.low = low, *this; }
  FieldBuilder& power_of_two() { return rules_.power_of_two = true, *this; }

  /// Not required; `value` if it is left out.
  FieldBuilder& by_default(M value) {
    info_.fallback = member_text(value);
    set_default_ = [member = member_, value = std::move(value)](T& object) { object.*member = value; };
    return *this;
  }
  /// Not required; what the struct itself begins with, or for a parameter set, all of that set's defaults.
  FieldBuilder& optional() {
    if constexpr (HasSchema<M>) {
      info_.fallback = "see its keys";
      set_default_ = [member = member_](T& object) { object.*member = schema<M>().defaults(); };
      return *this;
    } else {
      return by_default(T{}.*member_);
    }
  }
  /// Not required; the value of another member, which stands above it in the table.
  FieldBuilder& same_as(std::string key, M T::*other) {
    info_.fallback = std::move(key);
    set_default_ = [member = member_, other](T& object) { object.*member = object.*other; };
    return *this;
  }
  /// Not required; a `complete` works it out. `rule` is what it does, in words.
  FieldBuilder& by_rule(std::string rule) {
    info_.fallback = std::move(rule);
    set_default_ = [member = member_](T& object) { object.*member = T{}.*member; };
    return *this;
  }
  /// The id of a catalogue entry may stand in place of the map; with `id`, not required.
  FieldBuilder& entry_of(std::string catalogue, std::string id = {}) {
    if (!info_.is_list) {
      info_.type = fmt::format("an id of `kvsim list {}`, a file, or a map", catalogue);
    }
    info_.catalogue = std::move(catalogue);
    if (!id.empty()) {
      info_.fallback = std::move(id);
    }
    return *this;
  }

  operator Field<T>() const {  // NOLINT(google-explicit-constructor): tables list builders
    FieldInfo info = info_;
    describe_rules(rules_, info);
    const auto read = [member = member_, rules = rules_](const Place& place, T& object) {
      read_member(place, rules, object.*member);
    };
    const auto write = [member = member_](const T& object) { return write_member(object.*member); };
    return {std::move(info), read, set_default_, write};
  }

 private:
  M T::*member_;
  FieldInfo info_;
  Rules<Content<M>> rules_;
  std::function<void(T&)> set_default_;
};

template <class T, class M>
[[nodiscard]] FieldBuilder<T, M> field(std::string key, M T::*member, std::string doc) {
  return {std::move(key), member, std::move(doc)};
}

}  // namespace kvsim::config
