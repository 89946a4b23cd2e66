// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/grammar.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "configs/error/error.h"

namespace kvsim {
namespace {

constexpr std::string_view kClock = "tCK";
constexpr std::string_view kLarger = " min ";
// Far beyond any timing; they keep sums and products with a clock period in 64 bits.
constexpr std::int64_t kMaxClocks = 1'000'000;
constexpr Picoseconds kMaxTime{1'000'000'000};

constexpr std::array kTransferRates{Unit{"T/s", {}}, Unit{"MT/s", {1, 6}}, Unit{"GT/s", {1, 9}, false}};
constexpr UnitFamily kDataRates{"a data rate", kTransferRates, "MT/s", "GT/s", Rounding::nearest};

Parsed<std::int64_t> parse_clocks(std::string_view text) {
  const Parsed<NumberAndRest> split = split_number(text);
  if (!split.value) {
    return refused<std::int64_t>(split.reason);
  }
  if (split.value->rest != kClock) {
    return refused<std::int64_t>("is no number of clocks; write it as 8 tCK");
  }
  Parsed<std::int64_t> clocks = to_integer(split.value->number, {}, Rounding::exact, kClock);
  if (clocks.value && (*clocks.value < 0 || *clocks.value > kMaxClocks)) {
    return refused<std::int64_t>(fmt::format("is out of range; allowed is 0 to {} tCK", kMaxClocks));
  }
  return clocks;
}

}  // namespace

namespace {

/// What `read` makes of the text, or its reason without the text: whoever tells it puts that before it.
template <class Value, class Read>
Parsed<Value> read_or_refuse(std::string_view text, Read read) {
  try {
    return accepted(read(text));
  } catch (const UserError& error) {
    std::string_view reason = error.what();
    const std::string quoted = "'" + std::string(text) + "'";
    if (reason.starts_with(quoted)) {
      reason.remove_prefix(quoted.size());
      reason.remove_prefix(std::min(reason.size(), reason.find_first_not_of(": ")));
    }
    return refused<Value>(std::string(reason));
  }
}

}  // namespace

Parsed<config::KvSpec> Grammar<config::KvSpec>::parse(std::string_view text) {
  return read_or_refuse<config::KvSpec>(text, config::parse_kv_spec);
}

Parsed<config::KvFormat> Grammar<config::KvFormat>::parse(std::string_view text) {
  return read_or_refuse<config::KvFormat>(text, config::parse_kv_format);
}

std::string Grammar<config::KvSpec>::to_text(const config::KvSpec& value) {
  return config::name(value);
}

std::string Grammar<config::ClockedTime>::pattern() {
  const std::string number = R"((0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?)";
  return fmt::format("^({0} *(ps|ns|us|ms|s)( min [0-9]+ *tCK)?|[0-9]+ *tCK)$", number);
}

Parsed<config::ClockedTime> Grammar<config::ClockedTime>::parse(std::string_view text) {
  const std::size_t split = text.find(kLarger);
  const std::string_view first = text.substr(0, split);
  const bool clocks_only = split == std::string_view::npos && text.ends_with(kClock);
  config::ClockedTime result;
  if (!clocks_only) {
    Parsed<Picoseconds> time = kvsim::parse<Picoseconds>(first);
    if (!time.value) {
      return refused<config::ClockedTime>(time.reason + "; timings read as 18 ns, 8 tCK or 10 ns min 4 tCK");
    }
    if (*time.value > kMaxTime) {
      return refused<config::ClockedTime>(
          fmt::format("is out of range; no timing is above {}", kvsim::to_text(kMaxTime)));
    }
    result.time = *time.value;
  }
  if (clocks_only || split != std::string_view::npos) {
    const Parsed<std::int64_t> clocks =
        parse_clocks(clocks_only ? text : text.substr(split + kLarger.size()));
    if (!clocks.value) {
      return refused<config::ClockedTime>(clocks.reason);
    }
    result.clocks = *clocks.value;
  }
  return accepted(result);
}

std::string Grammar<config::ClockedTime>::to_text(const config::ClockedTime& value) {
  if (value.time == Picoseconds()) {
    return fmt::format("{} {}", value.clocks, kClock);
  }
  const std::string time = kvsim::to_text(value.time);
  return value.clocks == 0 ? time : fmt::format("{}{}{} {}", time, kLarger, value.clocks, kClock);
}

std::string_view EnumNames<config::MapOrder>::hint(std::string_view text) {
  return text.ends_with("-xor") ? " A hash is asked for with hash: true beside it." : "";
}

std::string Grammar<config::DataRate>::kind() {
  return std::string(kDataRates.kind);
}
std::string Grammar<config::DataRate>::pattern() {
  return quantity_pattern(kDataRates);
}

Parsed<config::DataRate> Grammar<config::DataRate>::parse(std::string_view text) {
  if (text.ends_with("Hz")) {
    return refused<config::DataRate>(
        "is a frequency; a data rate is in MT/s, transfers per second: of a clock CK of 1600 MHz 3200 MT/s "
        "where two transfers are made per clock");
  }
  const Parsed<std::int64_t> rate = parse_integer_quantity(text, kDataRates);
  return rate.value ? accepted(config::DataRate(Hertz(*rate.value))) : refused<config::DataRate>(rate.reason);
}

std::string Grammar<config::DataRate>::to_text(const config::DataRate& value) {
  return integer_quantity_text(value.count(), kDataRates);
}

}  // namespace kvsim

namespace kvsim::config {
namespace {

constexpr int kAddressBits = 64;

std::optional<int> take_bit(std::string_view& text) {
  int bit = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bit);
  const auto length = static_cast<std::size_t>(end - text.data());
  // from_chars takes a sign and leading zeros, which this grammar does not.
  const bool odd = length == 0 || text[0] == '-' || (length > 1 && text[0] == '0');
  if (error != std::errc() || odd || bit >= kAddressBits) {
    return std::nullopt;
  }
  text.remove_prefix(length);
  return bit;
}

AddressBit single(int bit) {
  return {std::uint64_t{1} << bit};
}

Parsed<std::vector<AddressBit>> bad_item() {
  return refused<std::vector<AddressBit>>(
      "is no address bit; write 7 for one bit, 0-6 for a run upwards, 13^11 for an XOR (bits are 0 to 63)");
}

std::string mask_text(std::uint64_t mask) {
  std::string text;
  for (int bit = kAddressBits - 1; bit >= 0; --bit) {
    if ((mask >> bit & 1) != 0) {
      text += (text.empty() ? "" : "^") + std::to_string(bit);
    }
  }
  return text;
}

/// How many bits from `begin` on are single address bits, each one above the one before.
std::size_t run_length(const std::vector<AddressBit>& bits, std::size_t begin) {
  std::size_t end = begin + 1;
  if (!std::has_single_bit(bits[begin].mask)) {
    return 1;
  }
  while (end < bits.size() && bits[end].mask == bits[end - 1].mask << 1 && bits[end].mask != 0) {
    ++end;
  }
  return end - begin;
}

}  // namespace

Parsed<std::vector<AddressBit>> ListGrammar<std::vector<AddressBit>>::parse_item(std::string_view text) {
  const std::optional<int> first = take_bit(text);
  if (!first) {
    return bad_item();
  }
  std::vector<AddressBit> bits{single(*first)};
  if (!text.empty() && text[0] == '-') {
    text.remove_prefix(1);
    const std::optional<int> last = take_bit(text);
    if (!last || *last <= *first) {
      return bad_item();
    }
    for (int bit = *first + 1; bit <= *last; ++bit) {
      bits.push_back(single(bit));
    }
  }
  while (!text.empty() && text[0] == '^' && bits.size() == 1) {
    text.remove_prefix(1);
    const std::optional<int> other = take_bit(text);
    if (!other || (bits[0].mask & single(*other).mask) != 0) {
      return bad_item();
    }
    bits[0].mask |= single(*other).mask;
  }
  return text.empty() ? accepted(std::move(bits)) : bad_item();
}

std::vector<std::string> ListGrammar<std::vector<AddressBit>>::to_items(const std::vector<AddressBit>& bits) {
  std::vector<std::string> items;
  for (std::size_t i = 0; i < bits.size();) {
    const std::size_t run = run_length(bits, i);
    const bool as_run = run > 2;
    items.push_back(as_run ? fmt::format("{}-{}", mask_text(bits[i].mask), mask_text(bits[i + run - 1].mask))
                           : mask_text(bits[i].mask));
    i += as_run ? run : 1;
  }
  return items;
}

}  // namespace kvsim::config
