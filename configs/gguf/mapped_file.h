// SPDX-License-Identifier: Apache-2.0
// A file's content as memory, read as it is touched.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace kvsim::config {

class MappedFile {
 public:
  /// Throws UserError if there is no such regular file or it cannot be read.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace kvsim::config
