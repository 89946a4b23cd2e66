// SPDX-License-Identifier: Apache-2.0
#include "configs/error/diagnostics.h"

#include <algorithm>
#include <cctype>
#include <numeric>

#include <fmt/format.h>

#include "configs/error/error.h"

namespace kvsim {
namespace {

// More than anyone reads; the rest is counted.
constexpr std::size_t kMaxShown = 40;
constexpr std::size_t kMaxMessage = 1'000;
// Longer words are no misspelt keys, and the distance costs their product.
constexpr std::size_t kMaxWord = 64;

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return result;
}

/// Edit distance where swapping two neighbours counts as one edit (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replace, above[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

template <class Text>
std::optional<std::string> nearest(std::string_view word, std::span<const Text> candidates) {
  if (word.size() > kMaxWord) {
    return std::nullopt;
  }
  std::optional<std::string> best;
  // A third of the word may be wrong; of "ab" nothing but its case.
  std::size_t limit = word.size() / 3 + 1;
  for (const std::string_view candidate : candidates) {
    if (candidate.size() > kMaxWord) {
      continue;
    }
    const std::size_t distance = edit_distance(lower(word), lower(candidate));
    if (distance < limit) {
      limit = distance;
      best = candidate;
    }
  }
  return best;
}

/// What the user wrote may be long and have line ends; a message is one line that can be read.
std::string one_line(std::string text) {
  if (text.size() > kMaxMessage) {
    text = text.substr(0, kMaxMessage) + "...";
  }
  std::ranges::replace(text, '\n', ' ');
  return text;
}

}  // namespace

std::string to_string(const SourceLocation& where) {
  if (where.line == 0) {
    return where.file;
  }
  return fmt::format("{}:{}:{}", where.file, where.line, where.column);
}

void Diagnostics::error(const SourceLocation& where, std::string_view key, std::string_view what) {
  const std::string_view colon = key.empty() ? "" : ": ";
  errors_.push_back({where, one_line(fmt::format("{}: {}{}{}", to_string(where), key, colon, what))});
}

void Diagnostics::add_cause(const Diagnostics& others, std::span<const std::string> places,
                            std::string_view cause) {
  for (Error& error : errors_) {
    const bool known = std::ranges::find(others.errors_, error.text, &Error::text) != others.errors_.end();
    const bool at_place = std::ranges::find(places, error.where.file) != places.end();
    if (!known && !at_place) {
      error.text = one_line(fmt::format("{} ({})", error.text, cause));
    }
  }
}

void Diagnostics::throw_if_any() const {
  if (errors_.empty()) {
    return;
  }
  std::vector<const Error*> sorted;
  for (const Error& error : errors_) {
    sorted.push_back(&error);
  }
  std::ranges::stable_sort(sorted, {}, [](const Error* error) { return error->where; });
  std::string text;
  for (std::size_t i = 0; i < sorted.size() && i < kMaxShown; ++i) {
    text += (i == 0 ? "" : "\n") + sorted[i]->text;
  }
  if (sorted.size() > kMaxShown) {
    text += fmt::format("\n... and {} more errors", sorted.size() - kMaxShown);
  }
  throw UserError(text);
}

void fail_at(const SourceLocation& where, std::string_view what) {
  throw UserError(one_line(fmt::format("{}: {}", to_string(where), what)));
}

std::optional<std::string> did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  return nearest(word, candidates);
}

std::optional<std::string> did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  return nearest(word, candidates);
}

}  // namespace kvsim
