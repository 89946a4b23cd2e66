// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/kv_spec.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "configs/error/error.h"

namespace kvsim::config {
namespace {

constexpr std::string_view kForm =
    "a KV specification is a type (f16, q8_0, int4:g32, ...) or k=TYPE,v=TYPE, then any of +window=N, "
    "+sinks=N, "
    "+h2o=N, +entropy=N, +topk=N, +first=N or +first=P%, +recent=N, +unrotated";

struct Option {
  std::string_view key;
  std::int64_t KvSpec::*tokens;
};

constexpr std::array kOptions{Option{"window", &KvSpec::window}, Option{"sinks", &KvSpec::sinks},
                              Option{"h2o", &KvSpec::h2o},       Option{"entropy", &KvSpec::entropy},
                              Option{"topk", &KvSpec::topk},     Option{"first", &KvSpec::first},
                              Option{"recent", &KvSpec::recent}};

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw UserError(fmt::format("'{}': {}", text, why));
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

void read_formats(std::string_view text, KvSpec& spec) {
  // "int4:range=8" is one type for both.
  if (text.find('=') == std::string_view::npos || text.find(':') < text.find('=')) {
    spec.k = spec.v = parse_kv_format(text);
    return;
  }
  std::set<std::string_view> sides;
  for (const std::string_view part : split(text, ',')) {
    const std::string_view side = part.substr(0, part.find('='));
    if ((side != "k" && side != "v") || side.size() == part.size() || !sides.insert(side).second) {
      refuse(text, kForm);
    }
    (side == "k" ? spec.k : spec.v) = parse_kv_format(part.substr(2));
  }
  if (sides.size() != 2) {
    refuse(text, "both k=TYPE and v=TYPE are needed");
  }
}

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// "first=5%".
bool read_share(std::string_view key, std::string_view value, KvSpec& spec) {
  if (key != "first" || !value.ends_with('%')) {
    return false;
  }
  const auto percent = number<double>(value.substr(0, value.size() - 1));
  if (!percent || !(*percent > 0 && *percent <= 100)) {
    refuse(value, "a share of the context is above 0 % and at most 100 %");
  }
  spec.first_share = *percent / 100;
  return true;
}

void read_option(std::string_view text, KvSpec& spec, std::set<std::string_view>& seen) {
  if (text == "unrotated") {
    spec.unrotated = true;
    return;
  }
  const std::size_t equals = text.find('=');
  const std::string_view key = text.substr(0, equals);
  const auto option =
      std::find_if(kOptions.begin(), kOptions.end(), [&](const Option& o) { return o.key == key; });
  if (option == kOptions.end() || equals == std::string_view::npos) {
    refuse(text, kForm);
  }
  if (!seen.insert(key).second) {
    refuse(text, "is given twice");
  }
  const std::string_view value = text.substr(equals + 1);
  if (read_share(key, value, spec)) {
    return;
  }
  const auto tokens = number<std::int64_t>(value);
  if (!tokens || *tokens < 1 || *tokens > std::int64_t{1} << 31) {
    refuse(text, "needs a number of tokens from 1 to 2147483648");
  }
  spec.*(option->tokens) = *tokens;
}

void check_budget(std::string_view text, const KvSpec& spec) {
  const std::int64_t budget = spec.h2o + spec.entropy;
  const std::int64_t fixed = spec.sinks + recent_share(spec);
  if (fixed >= budget) {
    refuse(text, fmt::format(
                     "of a budget of {} tokens {} always stay ({} first and {} last ones), which leaves none "
                     "to choose; give a larger budget, or a smaller window or fewer sinks",
                     budget, fixed, spec.sinks, recent_share(spec)));
  }
}

void check_together(std::string_view text, const KvSpec& spec) {
  const bool evicts = spec.window + spec.h2o + spec.entropy > 0;
  if (spec.h2o > 0 && spec.entropy > 0) {
    refuse(text, "h2o and entropy both rank the tokens; give one");
  }
  if (spec.h2o + spec.entropy > 0) {
    check_budget(text, spec);
  }
  if (spec.sinks > 0 && !evicts) {
    refuse(text, "sinks need a window, h2o or entropy: nothing is dropped without");
  }
  if (spec.topk > 0 && evicts) {
    refuse(text, "topk reads a part of a cache that keeps all; give it without window, h2o and entropy");
  }
  if (spec.topk > 0 && spec.topk < kTopkPage) {
    refuse(text, fmt::format("topk reads pages of {} tokens; give at least one", kTopkPage));
  }
  const bool by_channel = spec.k.range == KvRange::channel || spec.v.range == KvRange::channel;
  if (spec.topk > 0 && (by_channel || spec.recent > 0)) {
    refuse(
        text,
        "topk ranks pages of tokens that stay where they are; give it without recent and ranges by channel");
  }
  if (by_channel && evicts) {
    refuse(
        text,
        "a range by channel spans a group of tokens, which cannot leave one by one; use a range by token or "
        "by head");
  }
}

}  // namespace

KvSpec parse_kv_spec(std::string_view text) {
  KvSpec spec;
  const std::vector<std::string_view> parts = split(text, '+');
  read_formats(parts.front(), spec);
  std::set<std::string_view> seen;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    read_option(parts[i], spec, seen);
  }
  check_together(text, spec);
  return spec;
}

void check_groups(const KvFormat& format, const KvArrangement& arrangement) {
  if (format.range != KvRange::channel) {
    return;
  }
  const bool apart = arrangement.layout == KvLayout::token_major ||
                     (arrangement.layout == KvLayout::paged && arrangement.block % format.group != 0);
  if (apart || arrangement.row_alignment > Bytes(1)) {
    throw UserError(fmt::format(
        "{} needs the {} tokens of a group side by side: kv_layout head_major, or paged with a kv_block "
        "that is a multiple of {}, and kv_row_alignment 1 B",
        name(format), format.group, format.group));
  }
}

std::string name(const KvSpec& spec) {
  std::string text = spec.k == spec.v ? name(spec.k) : fmt::format("k={},v={}", name(spec.k), name(spec.v));
  for (const Option& option : kOptions) {
    if (spec.*(option.tokens) > 0) {
      text += fmt::format("+{}={}", option.key, spec.*(option.tokens));
    }
  }
  text += spec.unrotated ? "+unrotated" : "";
  return spec.first_share > 0 ? fmt::format("{}+first={}%", text, spec.first_share * 100) : text;
}

namespace {

constexpr std::int64_t kRotation = 64;

bool rotated(const KvSpec& spec, const KvFormat& format, std::int64_t head_dim) {
  return !spec.unrotated && format.number >= KvNumber::q8_0 && head_dim % kRotation == 0;
}

}  // namespace

std::int64_t key_rotation(const KvSpec& spec, std::int64_t head_dim) {
  return rotated(spec, spec.k, head_dim) ? head_dim & -head_dim : 0;
}

std::int64_t value_rotation(const KvSpec& spec, std::int64_t head_dim) {
  return rotated(spec, spec.v, head_dim) ? kRotation : 0;
}

std::int64_t recent_share(const KvSpec& spec) {
  return spec.window > 0 ? spec.window : (spec.h2o + spec.entropy) / 2;
}

}  // namespace kvsim::config
