// SPDX-License-Identifier: Apache-2.0
#include "configs/schema/place.h"

#include <algorithm>

namespace kvsim::config {

void Place::error(std::string_view key, std::string_view what) const {
  const Value* nearest = value_;
  const SourceLocation* where = &value_->where;
  for (std::string_view rest = key; !rest.empty();) {
    const std::size_t dot = rest.find('.');
    const auto next = std::ranges::find(nearest->entries, rest.substr(0, dot), &MapEntry::key);
    if (next == nearest->entries.end()) {
      break;
    }
    nearest = &next->value;
    // A map may come from another file than the one that chose it; the key stands where it was chosen.
    where = nearest->is_map() ? &next->where : &nearest->where;
    rest.remove_prefix(dot == std::string_view::npos ? rest.size() : dot + 1);
  }
  errors_->error(*where, join_path(path_, key), what);
}

}  // namespace kvsim::config
