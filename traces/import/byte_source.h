// SPDX-License-Identifier: Apache-2.0
// The bytes of a file, unpacked where it is compressed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

namespace kvsim::trace {

/// Pull source of bytes; holds a buffer of fixed size, whatever the file's length.
class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;

  /// Up to `size` bytes; 0 at the end, which may come early: see problem().
  [[nodiscard]] virtual std::size_t read(char* data, std::size_t size) = 0;
  /// Why the bytes ended before the file should; empty if they did not.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 protected:
  std::string problem_;
};

/// Opens a file that is plain, gzip (RFC 1952) or zstd (RFC 8878), as its first bytes tell. Throws UserError
/// if it cannot be opened.
[[nodiscard]] std::unique_ptr<ByteSource> open_bytes(const std::filesystem::path& path);

}  // namespace kvsim::trace
