// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/master_series.h"

#include <algorithm>

#include <fmt/format.h>

#include "configs/units/decimal.h"

namespace kvsim::config {
namespace {

using namespace kvsim::literals;

constexpr int kPicosecondPower = 12;
constexpr Picoseconds kLatest = Picoseconds(1'000'000'000'000) * 86'400;
constexpr Bytes kMost = 16_GiB;
constexpr std::string_view kHeader = "time,bytes";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // some spreadsheets begin with it
constexpr std::string_view kBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t from = text.find_first_not_of(kBlanks);
  return from == std::string_view::npos ? std::string_view()
                                        : text.substr(from, text.find_last_not_of(kBlanks) - from + 1);
}

std::string order_problem(const SeriesItem& before, const SeriesItem& item) {
  return item.at < before.at
             ? fmt::format("{} s comes before the item above it, {} s; items are sorted by time",
                           exact_quotient(item.at.count(), {.factor = 1, .power10 = kPicosecondPower}, 12),
                           exact_quotient(before.at.count(), {.factor = 1, .power10 = kPicosecondPower}, 12))
             : std::string();
}

std::string too_many() {
  return fmt::format("is one item too many; a series has at most {}", kMostSeriesItems);
}

}  // namespace

Parsed<SeriesItem> parse_series_item(std::string_view text) {
  const auto no = [](std::string_view why) {
    return refused<SeriesItem>(
        fmt::format("{}; write seconds after the start, a comma and bytes, such as 0.0125,1500", why));
  };
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos || text.find(',', comma + 1) != std::string_view::npos) {
    return no("does not have two fields");
  }
  const Parsed<NumberAndRest> time = split_number(trimmed(text.substr(0, comma)));
  const Parsed<NumberAndRest> bytes = split_number(trimmed(text.substr(comma + 1)));
  if (!time.value || !time.value->rest.empty() || time.value->number.negative) {
    return no("has a time that is no number of seconds");
  }
  if (!bytes.value || !bytes.value->rest.empty() || bytes.value->number.negative) {
    return no("has bytes that are no number");
  }
  const Parsed<std::int64_t> at =
      to_integer(time.value->number, {.factor = 1, .power10 = kPicosecondPower}, Rounding::nearest, "ps");
  const Parsed<std::int64_t> count =
      to_integer(bytes.value->number, {.factor = 1, .power10 = 0}, Rounding::exact, "B");
  if (!at.value) {
    return no(fmt::format("has a time that {}", at.reason));
  }
  if (Picoseconds(*at.value) > kLatest) {
    return refused<SeriesItem>("has a time beyond a day");
  }
  if (!count.value || Bytes(*count.value) < 1_B || Bytes(*count.value) > kMost) {
    return refused<SeriesItem>("has bytes out of range; allowed is 1 to 16 GiB, whole");
  }
  return accepted(SeriesItem{.at = Picoseconds(*at.value), .bytes = Bytes(*count.value)});
}

std::string to_series_text(const SeriesItem& item) {
  return fmt::format("{},{}", exact_quotient(item.at.count(), {.factor = 1, .power10 = kPicosecondPower}, 12),
                     item.bytes.count());
}

std::optional<SeriesProblem> series_problem(const std::vector<SeriesItem>& items) {
  if (items.size() > kMostSeriesItems) {
    return SeriesProblem{.item = kMostSeriesItems, .what = too_many()};
  }
  for (std::size_t i = 1; i < items.size(); ++i) {
    if (std::string what = order_problem(items[i - 1], items[i]); !what.empty()) {
      return SeriesProblem{.item = i, .what = std::move(what)};
    }
  }
  return std::nullopt;
}

Value series_items(const SourceText& csv, const std::string& path, Diagnostics& errors) {
  Value list;
  list.kind = Value::Kind::list;
  list.where = {.file = csv.name, .line = 1, .column = 1};
  std::optional<SeriesItem> before;
  std::string_view rest = csv.text;
  if (rest.starts_with(kByteOrderMark)) {
    rest.remove_prefix(kByteOrderMark.size());
  }
  for (int line = 1; !rest.empty(); ++line) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view text = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (text.empty() || text.front() == '#' || (line == 1 && text == kHeader)) {
      continue;
    }
    const SourceLocation where{.file = csv.name, .line = line, .column = 1};
    const Parsed<SeriesItem> item = parse_series_item(text);
    std::string what = item.value ? (before ? order_problem(*before, *item.value) : std::string())
                                  : fmt::format("{} {}", in_quotes(text), item.reason);
    if (what.empty() && list.items.size() == kMostSeriesItems) {
      what = too_many();
    }
    if (!what.empty()) {
      errors.error(where, path, what);
      list.kind = Value::Kind::invalid;
      return list;
    }
    before = item.value;
    list.items.push_back(scalar_value(text, where));
  }
  return list;
}

Parsed<std::vector<SeriesItem>> ListGrammar<std::vector<SeriesItem>>::parse_item(std::string_view text) {
  const Parsed<SeriesItem> item = parse_series_item(text);
  return item.value ? accepted(std::vector{*item.value}) : refused<std::vector<SeriesItem>>(item.reason);
}

std::vector<std::string> ListGrammar<std::vector<SeriesItem>>::to_items(
    const std::vector<SeriesItem>& items) {
  std::vector<std::string> texts;
  texts.reserve(items.size());
  for (const SeriesItem& item : items) {
    texts.push_back(to_series_text(item));
  }
  return texts;
}

}  // namespace kvsim::config
