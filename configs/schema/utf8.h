// SPDX-License-Identifier: Apache-2.0
// Tells text from binary data.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace kvsim::config {

/// Position of the first byte that is not part of valid UTF-8 text: a malformed sequence, or a control
/// character other than tab and line ends.
[[nodiscard]] std::optional<std::size_t> find_non_text(std::string_view text);

}  // namespace kvsim::config
