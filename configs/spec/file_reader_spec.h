// SPDX-License-Identifier: Apache-2.0
// Another program that reads a file through the same page cache, from the same storage.
#pragma once

#include <cstdint>
#include <string>

#include "configs/units/quantity.h"

namespace kvsim::config {

/// sequential: on from where it stopped, and from the beginning again after the end; random: anywhere.
enum class FileOrder { sequential, random };

struct FileReaderSpec {
  std::string name;
  Bytes file;                ///< its size
  Bytes bytes;               ///< that it reads at a time,
  Picoseconds every;         ///< at the beginning of each such interval,
  Picoseconds first;         ///< the first time so long after the engine has loaded
  Bytes request{128 << 10};  ///< of each read()
  FileOrder order = FileOrder::sequential;

  bool operator==(const FileReaderSpec&) const = default;
};

}  // namespace kvsim::config
