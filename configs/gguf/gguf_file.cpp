// SPDX-License-Identifier: Apache-2.0
#include "configs/gguf/gguf_file.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "configs/error/error.h"

namespace kvsim::config {

GgufFile GgufFile::open(const std::filesystem::path& path) {
  return {path.string(), MappedFile(path)};
}

GgufFile::GgufFile(std::string name, MappedFile file)
    : name_(std::move(name)), file_(std::move(file)), content_(read_gguf(name_, file_.bytes())) {
  for (std::size_t i = 0; i < content_.metadata.size(); ++i) {
    keys_.emplace(content_.metadata[i].key, i);
  }
  for (std::size_t i = 0; i < content_.tensors.size(); ++i) {
    tensors_.emplace(content_.tensors[i].name, i);
  }
}

Bytes GgufFile::size() const {
  return Bytes(static_cast<std::int64_t>(file_.bytes().size()));
}

std::span<const std::byte> GgufFile::header() const {
  return file_.bytes().first(std::min(content_.data_start, file_.bytes().size()));
}

const GgufValue* GgufFile::metadata(std::string_view key) const {
  const auto found = keys_.find(key);
  return found == keys_.end() ? nullptr : &content_.metadata[found->second];
}

void GgufFile::wrong_kind(const GgufValue& value, std::string_view wanted) const {
  throw UserError(fmt::format("{}: byte {}: '{}' must be {}, and is of type {}", name_, value.at, value.key,
                              wanted, type_name(value.type)));
}

std::optional<std::int64_t> GgufFile::integer(std::string_view key) const {
  const GgufValue* entry = metadata(key);
  if (entry == nullptr) {
    return std::nullopt;
  }
  if (const auto* value = std::get_if<std::int64_t>(&entry->value)) {
    return *value;
  }
  const auto* value = std::get_if<std::uint64_t>(&entry->value);
  if (value == nullptr || *value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    wrong_kind(*entry, "a whole number below 2^63");
  }
  return static_cast<std::int64_t>(*value);
}

std::optional<double> GgufFile::real(std::string_view key) const {
  const GgufValue* entry = metadata(key);
  if (entry == nullptr) {
    return std::nullopt;
  }
  if (const auto* value = std::get_if<double>(&entry->value)) {
    return *value;
  }
  if (const auto* value = std::get_if<std::uint64_t>(&entry->value)) {
    return static_cast<double>(*value);
  }
  if (const auto* value = std::get_if<std::int64_t>(&entry->value)) {
    return static_cast<double>(*value);
  }
  wrong_kind(*entry, "a number");
}

std::optional<bool> GgufFile::truth(std::string_view key) const {
  const GgufValue* entry = metadata(key);
  if (entry == nullptr) {
    return std::nullopt;
  }
  if (const auto* value = std::get_if<bool>(&entry->value)) {
    return *value;
  }
  wrong_kind(*entry, "a truth value");
}

std::optional<std::string_view> GgufFile::text(std::string_view key) const {
  const GgufValue* entry = metadata(key);
  if (entry == nullptr) {
    return std::nullopt;
  }
  if (const auto* value = std::get_if<std::string_view>(&entry->value)) {
    return *value;
  }
  wrong_kind(*entry, "a text");
}

std::vector<std::int64_t> GgufFile::integers(std::string_view key) const {
  const GgufValue* entry = metadata(key);
  if (entry == nullptr) {
    return {};
  }
  const auto* array = std::get_if<GgufArray>(&entry->value);
  if (array == nullptr) {
    return {*integer(key)};
  }
  if (array->type == GgufType::text || array->type == GgufType::f32 || array->type == GgufType::f64) {
    wrong_kind(*entry, "whole numbers");
  }
  return array->integers();
}

std::vector<std::string_view> GgufFile::texts(std::string_view key) const {
  const GgufValue* entry = metadata(key);
  if (entry == nullptr) {
    return {};
  }
  const auto* array = std::get_if<GgufArray>(&entry->value);
  if (array == nullptr || array->type != GgufType::text) {
    wrong_kind(*entry, "an array of texts");
  }
  return array->texts();
}

const GgufTensor* GgufFile::tensor(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &content_.tensors[found->second];
}

std::span<const std::byte> GgufFile::data(const GgufTensor& tensor) const {
  const std::size_t start = content_.data_start + static_cast<std::size_t>(tensor.offset.count());
  const auto size = static_cast<std::size_t>(tensor.bytes.count());
  check(start <= bytes().size() && size <= bytes().size() - start, "the tensor is one of this file");
  return bytes().subspan(start, size);
}

}  // namespace kvsim::config
