// SPDX-License-Identifier: Apache-2.0
// Other programs that read files through the page cache.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "configs/spec/file_reader_spec.h"
#include "models/page_cache/page_cache.h"
#include "models/storage/storage_device.h"
#include "traces/record/spread.h"

namespace kvsim::model {

class FileReaders {
 public:
  FileReaders(PageCache& cache, std::uint64_t seed) : cache_(cache), random_(seed) {}

  /// Programs whose files lie on `device` from `behind` on. Throws UserError if they do not fit.
  void add(const std::vector<config::FileReaderSpec>& programs, StorageDevice& device, Bytes behind);
  /// Times count from now on.
  void begin(Picoseconds now);
  /// Lets them do what they begin before `now`. Returns what the device read for them.
  [[nodiscard]] Bytes until(Picoseconds now);

 private:
  struct Program {
    config::FileReaderSpec spec;
    FileId file{};
    Bytes at;         ///< in the file, if it is read in order
    Bytes left;       ///< to be read this time
    Picoseconds due;  ///< this time
    Picoseconds clock;
  };

  [[nodiscard]] Bytes advance(Program& program, std::int64_t lane);
  [[nodiscard]] Bytes place(Program& program, Bytes bytes);

  PageCache& cache_;
  trace::SplitMix64 random_;
  std::vector<Program> programs_;
};

}  // namespace kvsim::model
