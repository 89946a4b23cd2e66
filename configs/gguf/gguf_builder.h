// SPDX-License-Identifier: Apache-2.0
// Writes GGUF files for tests, right ones and wrong ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "configs/gguf/gguf_content.h"

namespace kvsim::config {

/// Little-endian values, one behind the other.
class GgufBytes {
 public:
  template <class T>
  GgufBytes& add(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  GgufBytes& text(std::string_view text) {
    add(std::uint64_t{text.size()});
    bytes_ += text;
    return *this;
  }
  [[nodiscard]] const std::string& str() const { return bytes_; }

 private:
  std::string bytes_;
};

struct GgufBuilder {
  std::uint32_t magic = 0x46554747;
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;  ///< of the data section; the key is up to the test
  std::vector<std::string> metadata;
  std::vector<std::string> tensors;
  std::size_t data = 0;  ///< bytes of tensor data
  /// Counts in the header, if they are to lie.
  std::uint64_t extra_metadata = 0;
  std::uint64_t extra_tensors = 0;

  GgufBuilder& raw(std::string_view key, GgufType type, std::string_view value) {
    metadata.push_back(GgufBytes().text(key).add(static_cast<std::uint32_t>(type)).str() +
                       std::string(value));
    return *this;
  }
  template <class T>
  GgufBuilder& value(std::string_view key, GgufType type, T number) {
    return raw(key, type, GgufBytes().add(number).str());
  }
  GgufBuilder& u32(std::string_view key, std::uint32_t number) { return value(key, GgufType::u32, number); }
  GgufBuilder& text(std::string_view key, std::string_view text) {
    return raw(key, GgufType::text, GgufBytes().text(text).str());
  }
  template <class T>
  GgufBuilder& array(std::string_view key, GgufType type, const std::vector<T>& elements) {
    GgufBytes bytes;
    bytes.add(static_cast<std::uint32_t>(type)).add(std::uint64_t{elements.size()});
    for (const T& element : elements) {
      bytes.add(element);
    }
    return raw(key, GgufType::array, bytes.str());
  }
  GgufBuilder& texts(std::string_view key, const std::vector<std::string>& elements) {
    GgufBytes bytes;
    bytes.add(static_cast<std::uint32_t>(GgufType::text)).add(std::uint64_t{elements.size()});
    for (const std::string& element : elements) {
      bytes.text(element);
    }
    return raw(key, GgufType::array, bytes.str());
  }
  GgufBuilder& tensor(std::string_view name, const std::vector<std::uint64_t>& dims, std::uint32_t type,
                      std::uint64_t offset) {
    GgufBytes bytes;
    bytes.text(name).add(static_cast<std::uint32_t>(dims.size()));
    for (const std::uint64_t dim : dims) {
      bytes.add(dim);
    }
    tensors.push_back(bytes.add(type).add(offset).str());
    return *this;
  }

  [[nodiscard]] std::string bytes() const {
    GgufBytes head;
    head.add(magic).add(version).add(tensors.size() + extra_tensors).add(metadata.size() + extra_metadata);
    std::string file = head.str();
    for (const std::string& entry : metadata) {
      file += entry;
    }
    for (const std::string& entry : tensors) {
      file += entry;
    }
    file.resize((file.size() + alignment - 1) / alignment * alignment);
    return file + std::string(data, '\x5a');
  }
};

inline GgufContent read(const std::string& bytes) {
  return read_gguf("test.gguf", std::as_bytes(std::span(bytes)));
}

}  // namespace kvsim::config
