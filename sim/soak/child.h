// SPDX-License-Identifier: Apache-2.0
// Work in processes of its own that tell a text: for simulations, of which a process can have but one.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace kvsim::sim {

/// What each piece of work returns, in their order; `at_once` of them run side by side. Throws UserError with
/// the message of the first piece that throws one, std::runtime_error for any other failure, Interrupted if
/// `stop` was set; the others are ended first. Precondition: this process has no threads.
[[nodiscard]] std::vector<std::string> in_children(const std::vector<std::function<std::string()>>& work,
                                                   std::size_t at_once, const std::atomic<bool>* stop);

}  // namespace kvsim::sim
