// SPDX-License-Identifier: Apache-2.0
#include "configs/error/input_path.h"

#include <system_error>

#include <fmt/format.h>

#include "configs/error/error.h"

namespace kvsim {

void refuse_named_pipe(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_fifo(path, error)) {
    return;
  }
  // What /dev/stdin leads to has no name: /proc/self/fd/pipe:[4711].
  const std::filesystem::path named = std::filesystem::canonical(path, error);
  if (!error && std::filesystem::is_fifo(named, error)) {
    throw UserError(
        fmt::format("{}: is a named pipe, and nobody may ever write to it; give the name of a file, or write "
                    "into kvsim and give /dev/stdin",
                    path.string()));
  }
}

}  // namespace kvsim
