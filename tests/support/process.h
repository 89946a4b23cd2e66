// SPDX-License-Identifier: Apache-2.0
// Runs the kvsim binary as its users do.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace kvsim::testing {

struct Outcome {
  int exit_code = -1;  ///< 128 + signal if a signal ended it
  std::string out;
  std::string err;
};

/// Runs `kvsim ARGUMENTS...` in the source folder and waits for its end. A positive `interrupt_after_ms`
/// sends SIGINT after so long.
[[nodiscard]] Outcome kvsim(const std::vector<std::string>& arguments, int interrupt_after_ms = 0);

/// Runs a script of sh in which $K is the binary, for what signals, limits and pipes do to it.
[[nodiscard]] Outcome shell(const std::string& script);

/// An empty folder that is removed with its content at the end of the scope.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  /// Writes a file and returns its path.
  [[nodiscard]] std::string file(const std::string& name, const std::string& content) const;
  [[nodiscard]] std::size_t entries() const;

 private:
  std::filesystem::path folder_;
};

[[nodiscard]] std::string read_file(const std::string& path);

}  // namespace kvsim::testing
