// SPDX-License-Identifier: Apache-2.0
// What may be opened for reading.
#pragma once

#include <filesystem>

namespace kvsim {

/// Throws UserError for a named pipe: to open one waits until somebody writes to it, which may be never.
/// Pipes that are open already, such as /dev/stdin or a shell's <(command), pass.
void refuse_named_pipe(const std::filesystem::path& path);

}  // namespace kvsim
