// SPDX-License-Identifier: Apache-2.0
// Files for the tests of this folder: plain, gzip and zstd.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>
#include <zlib.h>

#include <gtest/gtest.h>
#include <zstd.h>

#include "traces/import/lackey_reader.h"

namespace kvsim::trace::testing {

/// A file that goes with the scope.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view content) {
    std::string name = (std::filesystem::temp_directory_path() / "kvsim_import_XXXXXX").string();
    const int file = mkstemp(name.data());
    EXPECT_GE(file, 0);
    close(file);
    path_ = name;
    write(content);
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(std::string_view content) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc)
        .write(content.data(), static_cast<std::streamsize>(content.size()));
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string gzip(std::string_view text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::string zstd(std::string_view text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  const std::size_t size = ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3);
  EXPECT_FALSE(ZSTD_isError(size));
  out.resize(size);
  return out;
}

inline std::vector<LackeyEvent> read_all(const std::filesystem::path& path) {
  LackeyReader reader(path);
  std::vector<LackeyEvent> all;
  std::vector<LackeyEvent> batch;
  while (reader.next(batch)) {
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

inline std::vector<LackeyEvent> read_text(std::string_view content) {
  return read_all(TemporaryFile(content).path());
}

}  // namespace kvsim::trace::testing
