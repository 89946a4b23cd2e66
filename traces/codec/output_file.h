// SPDX-License-Identifier: Apache-2.0
// A file that appears under its name only when it is complete. Internal to the codec.
#pragma once

#include <filesystem>
#include <string_view>

namespace kvsim::trace {

/// Writes beside the target under a temporary name; commit() gives it the target's. Every failure is a
/// UserError.
class OutputFile {
 public:
  explicit OutputFile(std::filesystem::path target);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  /// Without commit() nothing is left behind.
  ~OutputFile();

  void write(std::string_view bytes);
  void commit();

 private:
  [[noreturn]] void fail(int error) const;
  void close();

  std::filesystem::path target_;
  std::filesystem::path temporary_;
  int descriptor_;
};

}  // namespace kvsim::trace
