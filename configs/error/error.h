// SPDX-License-Identifier: Apache-2.0
// The two kinds of failure: the user's mistake (a clear message, exit code 2) and a bug of ours (exit code
// 3).
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>

namespace kvsim {

/// The user's input is wrong. The message says where, what is wrong, what is allowed and what to do; it may
/// hold several lines when several things are wrong.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A bug in kvsim: an invariant does not hold. Never reachable from input.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void fail_check(const char* what, const std::source_location& where);

/// Throws InternalError with the caller's place unless `holds`. `what` is the condition in words.
inline void check(bool holds, const char* what,
                  const std::source_location& where = std::source_location::current()) {
  if (!holds) [[unlikely]] {
    fail_check(what, where);
  }
}

}  // namespace kvsim
