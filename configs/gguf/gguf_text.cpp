// SPDX-License-Identifier: Apache-2.0
// A GGUF file in words, for `kvsim explain FILE.gguf`.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "configs/error/error.h"
#include "configs/gguf/gguf_model.h"
#include "configs/schema/utf8.h"
#include "configs/spec/grammar.h"
#include "configs/spec/schemas.h"

namespace kvsim::config {
namespace {

constexpr std::size_t kLongestText = 60;
constexpr std::size_t kElementsShown = 6;

/// Without what a terminal should not see.
std::string printable(std::string_view text) {
  std::string shown(text.substr(0, kLongestText));
  const bool readable = text.size() <= kLongestText && !find_non_text(text);
  std::ranges::replace_if(
      shown, [&](char c) { return (c >= 0 && c < ' ') || c == '\x7f' || (c < 0 && !readable); }, '?');
  return text.size() > kLongestText ? shown + "..." : shown;
}

std::string array_text(const GgufArray& array) {
  std::string text = fmt::format("{} x {}", array.size, type_name(array.type));
  std::vector<std::string> shown;
  if (array.type == GgufType::text) {
    for (const std::string_view element : array.texts()) {
      shown.push_back("'" + printable(element) + "'");
      if (shown.size() == kElementsShown) {
        break;
      }
    }
  } else if (array.type != GgufType::f32 && array.type != GgufType::f64) {
    for (const std::int64_t element : array.integers()) {
      shown.push_back(fmt::format("{}", element));
      if (shown.size() == kElementsShown) {
        break;
      }
    }
  }
  if (!shown.empty()) {
    text += fmt::format(": {}{}", fmt::join(shown, " "), shown.size() < array.size ? " ..." : "");
  }
  return text;
}

std::string value_text(const GgufValue& entry) {
  if (const auto* text = std::get_if<std::string_view>(&entry.value)) {
    return printable(*text);
  }
  if (const auto* array = std::get_if<GgufArray>(&entry.value)) {
    return array_text(*array);
  }
  if (const auto* truth = std::get_if<bool>(&entry.value)) {
    return *truth ? "true" : "false";
  }
  if (const auto* real = std::get_if<double>(&entry.value)) {
    return fmt::format("{}", static_cast<float>(*real));
  }
  if (const auto* whole = std::get_if<std::int64_t>(&entry.value)) {
    return fmt::format("{}", *whole);
  }
  return fmt::format("{}", std::get<std::uint64_t>(entry.value));
}

std::string model_text(const GgufFile& file) {
  try {
    const nlohmann::ordered_json model = schema<LlmSpec>().write(llm_spec(file));
    static_cast<void>(tensors(file));
    std::string text = "model, as `model: FILE.gguf` takes it:\n";
    for (const auto& [key, value] : model.items()) {
      text += fmt::format("  {:<16} {}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
    }
    return text;
  } catch (const UserError& error) {
    return fmt::format("model: cannot be run:\n  {}\n", error.what());
  }
}

std::string tensors_text(const GgufFile& file) {
  struct Sum {
    std::int64_t tensors = 0;
    Bytes bytes;
  };
  std::map<std::string_view, Sum> sums;
  for (const GgufTensor& tensor : file.tensors()) {
    Sum& sum = sums[tensor.type.name];
    ++sum.tensors;
    sum.bytes += tensor.bytes;
  }
  std::string text = "tensors, by type:\n";
  for (const auto& [type, sum] : sums) {
    text += fmt::format("  {:<8} {:>5}  {} B\n", type, sum.tensors, sum.bytes.count());
  }
  return text;
}

}  // namespace

std::string describe(const GgufFile& file) {
  std::string text =
      fmt::format("{}: GGUF version {}, {} B, {} tensors aligned to {}, {} metadata entries, hash {}\n",
                  file.name(), file.version(), file.size().count(), file.tensors().size(),
                  to_text(file.alignment()), file.metadata().size(), provenance_hash(file));
  text += model_text(file) + tensors_text(file) + "metadata:\n";
  for (const GgufValue& entry : file.metadata()) {
    text += fmt::format("  {}  {}  {}\n", entry.key, type_name(entry.type), value_text(entry));
  }
  return text;
}

}  // namespace kvsim::config
