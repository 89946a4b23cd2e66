// SPDX-License-Identifier: Apache-2.0
// Reads a kvsim trace file (.kvt).
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "traces/codec/header.h"
#include "traces/record/source.h"

namespace kvsim::trace {

/// Hands out a file's records block by block and holds one block in memory. Nothing in the file is trusted:
/// whatever is wrong with it becomes a UserError with file, byte offset, and what to do.
class TraceReader final : public AccessSource {
 public:
  explicit TraceReader(std::filesystem::path path);
  ~TraceReader() override;

  [[nodiscard]] const TraceHeader& header() const;
  [[nodiscard]] bool next(std::vector<Record>& batch) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether the file begins as one that kvsim has recorded.
[[nodiscard]] bool is_recording(const std::filesystem::path& path);

}  // namespace kvsim::trace
