// SPDX-License-Identifier: Apache-2.0
#include "configs/schema/place.h"

#include <algorithm>
#include <charconv>

namespace kvsim::config {
namespace {

/// What a step leads to from a list: an element, counted from 0; null if it is none.
const Value* element(const Value& list, std::string_view step) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), index);
  const bool whole = error == std::errc() && end == step.data() + step.size();
  return list.is_list() && whole && index < list.items.size() ? &list.items[index] : nullptr;
}

}  // namespace

void Place::error(std::string_view key, std::string_view what) const {
  const Value* nearest = value_;
  const SourceLocation* where = &value_->where;
  for (std::string_view rest = key; !rest.empty();) {
    const std::size_t dot = rest.find('.');
    const std::string_view step = rest.substr(0, dot);
    if (const Value* item = element(*nearest, step)) {
      nearest = item;
      where = &item->where;
    } else {
      const auto next = std::ranges::find(nearest->entries, step, &MapEntry::key);
      if (next == nearest->entries.end()) {
        break;
      }
      nearest = &next->value;
      // A map may come from another file than the one that chose it; the key stands where it was chosen.
      where = nearest->is_map() ? &next->where : &nearest->where;
    }
    rest.remove_prefix(dot == std::string_view::npos ? rest.size() : dot + 1);
  }
  errors_->error(*where, join_path(path_, key), what);
}

}  // namespace kvsim::config
