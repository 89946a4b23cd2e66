// SPDX-License-Identifier: Apache-2.0
// Captured series of transfers: the text of their items, and what must hold between them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/schema/member.h"
#include "configs/schema/yaml.h"
#include "configs/spec/master_spec.h"

namespace kvsim::config {

inline constexpr std::size_t kMostSeriesItems = 1'000'000;

/// "0.000125,1500": seconds after the start, and bytes.
[[nodiscard]] Parsed<SeriesItem> parse_series_item(std::string_view text);
[[nodiscard]] std::string to_series_text(const SeriesItem& item);

struct SeriesProblem {
  std::size_t item = 0;
  std::string what;
};
/// The first item that comes before the one above it, or is one too many.
[[nodiscard]] std::optional<SeriesProblem> series_problem(const std::vector<SeriesItem>& items);

/// The lines of a CSV file of items as a list of their texts, each with its place. Empty lines, those that
/// begin with # and a first line "time,bytes" are passed over. Tells the first bad line in `errors`, and is
/// invalid then.
[[nodiscard]] Value series_items(const SourceText& csv, const std::string& path, Diagnostics& errors);

template <>
struct ListGrammar<std::vector<SeriesItem>> {
  static std::string kind() { return "times and bytes"; }
  static std::string pattern() { return "^[0-9.eE+-]+,[0-9]+$"; }
  static Parsed<std::vector<SeriesItem>> parse_item(std::string_view text);
  static std::vector<std::string> to_items(const std::vector<SeriesItem>& items);
};

}  // namespace kvsim::config
