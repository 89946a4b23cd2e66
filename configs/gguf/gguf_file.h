// SPDX-License-Identifier: Apache-2.0
// A GGUF model file: its metadata, its tensor table and its tensors' bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "configs/gguf/gguf_content.h"
#include "configs/gguf/mapped_file.h"

namespace kvsim::config {

class GgufFile {
 public:
  /// Maps and checks the file. Throws UserError that says what is wrong with it and at which byte.
  [[nodiscard]] static GgufFile open(const std::filesystem::path& path);

  [[nodiscard]] const std::string& name() const { return name_; }  ///< the path, as it was given
  [[nodiscard]] std::uint32_t version() const { return content_.version; }
  [[nodiscard]] Bytes alignment() const { return content_.alignment; }
  [[nodiscard]] Bytes size() const;
  /// Everything before the tensor data.
  [[nodiscard]] std::span<const std::byte> header() const;
  [[nodiscard]] std::span<const std::byte> bytes() const { return file_.bytes(); }

  [[nodiscard]] std::span<const GgufValue> metadata() const { return content_.metadata; }
  /// Null if the key is not there.
  [[nodiscard]] const GgufValue* metadata(std::string_view key) const;

  /// The value of a key; none if the key is not there. Throw UserError if it is of another kind.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key) const;
  [[nodiscard]] std::optional<double> real(std::string_view key) const;  ///< whole numbers too
  [[nodiscard]] std::optional<bool> truth(std::string_view key) const;
  [[nodiscard]] std::optional<std::string_view> text(std::string_view key) const;
  /// A number alone counts as a list of one, as in GGUF's keys that may be per layer; truth values as 0
  /// and 1.
  [[nodiscard]] std::vector<std::int64_t> integers(std::string_view key) const;
  [[nodiscard]] std::vector<std::string_view> texts(std::string_view key) const;

  [[nodiscard]] std::span<const GgufTensor> tensors() const { return content_.tensors; }
  /// Null if there is none.
  [[nodiscard]] const GgufTensor* tensor(std::string_view name) const;
  /// The bytes of a tensor of this file.
  [[nodiscard]] std::span<const std::byte> data(const GgufTensor& tensor) const;

 private:
  GgufFile(std::string name, MappedFile file);
  [[noreturn]] void wrong_kind(const GgufValue& value, std::string_view wanted) const;

  std::string name_;
  MappedFile file_;
  GgufContent content_;
  std::unordered_map<std::string_view, std::size_t> keys_;     ///< places in content_.metadata
  std::unordered_map<std::string_view, std::size_t> tensors_;  ///< places in content_.tensors
};

}  // namespace kvsim::config
