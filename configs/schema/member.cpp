// SPDX-License-Identifier: Apache-2.0
#include "configs/schema/member.h"

#include <fmt/ranges.h>

#include "configs/schema/edit.h"

namespace kvsim::config {

bool open_map(const Place& place, const SchemaInfo& info) {
  const Value& value = place.value();
  if (!value.is_map()) {
    place.error(fmt::format("expects a map with the keys {}, found {}", fmt::join(info.keys(), ", "),
                            describe(value)));
    return false;
  }
  const std::vector<std::string> known = info.keys();
  for (const MapEntry& entry : value.entries) {
    if (info.find(entry.key) != nullptr) {
      continue;
    }
    const std::optional<std::string> near = did_you_mean(entry.key, known);
    place.errors().error(
        entry.where, join_path(place.path(), entry.key),
        fmt::format("unknown key{}; known here: {}", near ? fmt::format(", did you mean '{}'?", *near) : "",
                    fmt::join(known, ", ")));
  }
  return true;
}

bool open_list(const Place& place) {
  if (place.value().is_list()) {
    return true;
  }
  place.error(fmt::format("expects a list, found {}", describe(place.value())));
  return false;
}

bool open_scalar(const Place& place, std::string_view kind, bool may_be_quoted) {
  const Value& value = place.value();
  if (!value.is_scalar()) {
    place.error(fmt::format("expects {}, found {}", kind, describe(value)));
    return false;
  }
  if (value.quoted && !may_be_quoted) {
    place.error(fmt::format("{} stands in quotes; write {} without them", in_quotes(value.text), kind));
    return false;
  }
  return true;
}

bool is_power_of_two(std::int64_t value) {
  return value > 0 && (value & (value - 1)) == 0;
}
bool is_power_of_two(Bytes value) {
  return is_power_of_two(value.count());
}

void report_missing(const Place& parent, const FieldInfo& field) {
  parent.errors().error(parent.value().where, join_path(parent.path(), field.key),
                        fmt::format("is missing; add it: {} ({})", field.doc, field.type));
}

}  // namespace kvsim::config
