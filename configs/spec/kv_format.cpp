// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/kv_format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "configs/error/error.h"

namespace kvsim::config {
namespace {

constexpr std::int64_t kMaxGroup = 4096;
constexpr std::int64_t kMaxHeadDim = 1 << 20;  // far above any model; keeps sizes in 64 bits
constexpr std::int64_t kScaleBytes = 2;        // F16
constexpr double kSmallestLimit = 1e-6;
constexpr double kLargestLimit = 1e6;

struct NumberInfo {
  KvNumber number;
  std::string_view name;
  std::int64_t block;  ///< values of a block; 0: the user chooses the group
  std::int64_t
      bytes;  ///< of a block, with its scale (ggml-common.h); without one if the user chooses the group
};

constexpr std::array kNumbers{
    NumberInfo{KvNumber::f32, "f32", 1, 4},           NumberInfo{KvNumber::f16, "f16", 1, 2},
    NumberInfo{KvNumber::bf16, "bf16", 1, 2},         NumberInfo{KvNumber::fp8_e4m3, "fp8_e4m3", 1, 1},
    NumberInfo{KvNumber::fp8_e5m2, "fp8_e5m2", 1, 1}, NumberInfo{KvNumber::int8, "int8", 0, 0},
    NumberInfo{KvNumber::int4, "int4", 0, 0},         NumberInfo{KvNumber::q8_0, "q8_0", 32, 34},
    NumberInfo{KvNumber::q5_1, "q5_1", 32, 24},       NumberInfo{KvNumber::q5_0, "q5_0", 32, 22},
    NumberInfo{KvNumber::q4_1, "q4_1", 32, 20},       NumberInfo{KvNumber::q4_0, "q4_0", 32, 18},
    NumberInfo{KvNumber::iq4_nl, "iq4_nl", 32, 18},
};

const NumberInfo& info(KvNumber number) {
  const auto* found = std::ranges::find(kNumbers, number, &NumberInfo::number);
  check(found != kNumbers.end(), "a KV number is in the table");
  return *found;
}

bool has_group(KvNumber number) {
  return info(number).block == 0;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return result;
}

[[noreturn]] void refuse(std::string_view text, std::string_view reason) {
  throw UserError(
      fmt::format("'{}' is no format for the KV cache: {}. Allowed: {}", text, reason, kv_format_choices()));
}

/// GGML's types and file formats that exist for weights alone: Q4_K_M, q6_K, IQ2_XS, TQ1_0, MXFP4, ...
bool made_for_weights(std::string_view number) {
  const bool k_quant =
      number.size() >= 4 && number[0] == 'q' && number.substr(2, 2) == "_k" && number != "q8_kv";
  const auto starts = [&](std::string_view start) { return number.starts_with(start); };
  return k_quant || starts("iq") || starts("tq") || starts("mxfp") || starts("nvfp") || starts("q1_0") ||
         starts("q2_0") || starts("gptq") || starts("awq");
}

double parse_limit(std::string_view text, std::string_view number) {
  double limit = 0;
  const char* end = number.data() + number.size();
  const auto [stop, error] = std::from_chars(number.data(), end, limit);
  if (error != std::errc() || stop != end || !(limit >= kSmallestLimit && limit <= kLargestLimit)) {
    refuse(text,
           fmt::format("'{}' is no range; write range= and the largest magnitude to keep, from {} to {}",
                       number, kSmallestLimit, kLargestLimit));
  }
  return limit;
}

constexpr std::string_view kFixed = "range=";

void parse_option(std::string_view text, std::string_view option, KvFormat& format) {
  if (option == "asym") {
    if (format.asymmetric) {
      refuse(text, "'asym' stands there twice");
    }
    format.asymmetric = true;
  } else if (option == "head" || option == "channel" || option.starts_with(kFixed)) {
    if (format.range != KvRange::token) {
      refuse(text, "it names two ranges");
    }
    format.range = option == "head" ? KvRange::head : option == "channel" ? KvRange::channel : KvRange::fixed;
    if (format.range == KvRange::fixed) {
      format.limit = parse_limit(text, option.substr(kFixed.size()));
    }
  } else if (option.starts_with('g')) {
    if (format.group != 0) {
      refuse(text, "it names two groups");
    }
    const char* end = option.data() + option.size();
    const auto [stop, error] = std::from_chars(option.data() + 1, end, format.group);
    if (error != std::errc() || stop != end || format.group < 2 || format.group > kMaxGroup ||
        format.group % 2 != 0) {
      refuse(text, fmt::format("'{}' is no group; write g and an even number from 2 to {}, such as g64",
                               option, kMaxGroup));
    }
  } else {
    refuse(text, fmt::format("'{}' is unknown", option));
  }
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(':', start), text.size());
    parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

/// Whole blocks in the head's vector, or UserError.
std::int64_t blocks(const KvFormat& format, std::int64_t head_dim, std::int64_t block) {
  if (head_dim % block != 0) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t group = 8; group <= std::min<std::int64_t>(head_dim, 256); group *= 2) {
      if (head_dim % group == 0) {
        divisors.push_back(group);
      }
    }
    const std::string advice =
        has_group(format.number)
            ? fmt::format("groups that divide it: {}", divisors.empty()
                                                           ? fmt::format("{}", head_dim)
                                                           : fmt::format("{}", fmt::join(divisors, ", ")))
            : std::string("take int8 or int4 with a group that divides it, fp8_e4m3 or f16");
    throw UserError(
        fmt::format("a KV cache in {} needs heads whose size is a multiple of {}, and this model's is {}; {}",
                    name(format), block, head_dim, advice));
  }
  return head_dim / block;
}

std::int64_t integer_bytes(const KvFormat& format, std::int64_t values) {
  return format.number == KvNumber::int8 ? values : values / 2;
}

std::int64_t scale_bytes(const KvFormat& format) {
  return format.asymmetric ? 2 * kScaleBytes : kScaleBytes;
}

void check_head(const KvFormat& format, std::int64_t head_dim) {
  if (head_dim < 1 || head_dim > kMaxHeadDim) {
    throw UserError(fmt::format("a head of {} values cannot be stored; 1 to {} can", head_dim, kMaxHeadDim));
  }
  if (format.number == KvNumber::int4 && head_dim % 2 != 0) {
    throw UserError(fmt::format("int4 keeps two values in a byte; a head of {} values is odd", head_dim));
  }
}

}  // namespace

KvFormat parse_kv_format(std::string_view text) {
  const std::string folded = lower(text);
  const std::vector<std::string_view> parts = split(folded);
  const auto* found = std::ranges::find(kNumbers, parts.front(), &NumberInfo::name);
  if (found == kNumbers.end()) {
    if (made_for_weights(parts.front())) {
      refuse(text,
             "it is made for weights, which are quantised offline, in super-blocks of 256 values along whole "
             "rows and "
             "with importance found by calibration; K and V come one head vector and token at a time");
    }
    refuse(text, "it is unknown");
  }
  KvFormat format{.number = found->number};
  if (parts.size() > 1 && !has_group(format.number)) {
    refuse(text, fmt::format("{} has no group, range or minimum to choose", found->name));
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    parse_option(text, parts[i], format);
  }
  if (format.range == KvRange::fixed) {
    if (format.group != 0 || format.asymmetric) {
      refuse(text, "a range stated beforehand has no groups and no minimum");
    }
  } else if (has_group(format.number) && format.group == 0 && format.range != KvRange::head) {
    format.group = kDefaultKvGroup;
  }
  return format;
}

std::string name(const KvFormat& format) {
  std::string text(info(format.number).name);
  if (format.group != 0) {
    text += fmt::format(":g{}", format.group);
  }
  if (format.range == KvRange::fixed) {
    text += fmt::format(":{}{}", kFixed, format.limit);
  } else if (format.range != KvRange::token) {
    text += format.range == KvRange::head ? ":head" : ":channel";
  }
  return format.asymmetric ? text + ":asym" : text;
}

std::string kv_format_choices() {
  std::vector<std::string_view> names;
  for (const NumberInfo& number : kNumbers) {
    names.push_back(number.name);
  }
  return fmt::format(
      "{}; int8 and int4 with :gN (N values share a scale; {} if not given), :head (a scale per head and "
      "token), :channel (a scale per channel and N tokens) or :range=X (one scale, the largest magnitude "
      "being X), :asym (with a minimum), as in int4:g32:channel:asym",
      fmt::join(names, ", "), kDefaultKvGroup);
}

std::int64_t values_per_unit(const KvFormat& format, std::int64_t head_dim) {
  return format.range == KvRange::channel ? format.group * head_dim : head_dim;
}

std::int64_t scale_group(const KvFormat& format, std::int64_t head_dim) {
  if (!has_group(format.number)) {
    return info(format.number).block;
  }
  if (format.range == KvRange::fixed) {
    return 1;
  }
  return format.group == 0 ? head_dim : format.group;
}

Bytes kv_vector_bytes(const KvFormat& format, std::int64_t head_dim) {
  check_head(format, head_dim);
  if (!has_group(format.number)) {
    const NumberInfo& number = info(format.number);
    return Bytes(blocks(format, head_dim, number.block) * number.bytes);
  }
  if (format.range == KvRange::channel) {
    const Bytes bytes = kv_group_bytes(format, head_dim);
    if (bytes.count() % format.group != 0) {
      throw UserError(
          fmt::format("{} takes {} bytes for {} tokens of a head of {} values, which is no whole number per "
                      "token; take a group that divides {}",
                      name(format), bytes.count(), format.group, head_dim, head_dim * scale_bytes(format)));
    }
    return bytes / format.group;
  }
  if (format.range == KvRange::fixed) {
    return Bytes(integer_bytes(format, head_dim));
  }
  const std::int64_t group = scale_group(format, head_dim);
  const std::int64_t groups = blocks(format, head_dim, group);
  if (format.range == KvRange::head && groups != 1) {
    throw UserError(fmt::format(
        "{} means one scale for a whole head of {} values, and this model's have {}; write {}:head",
        name(format), group, head_dim, info(format.number).name));
  }
  return Bytes(groups * (scale_bytes(format) + integer_bytes(format, group)));
}

Bytes kv_group_bytes(const KvFormat& format, std::int64_t head_dim) {
  check(format.range == KvRange::channel && format.group > 0,
        "only channels are scaled over groups of tokens");
  check_head(format, head_dim);
  return Bytes(head_dim * (scale_bytes(format) + integer_bytes(format, format.group)));
}

}  // namespace kvsim::config
