// SPDX-License-Identifier: Apache-2.0
// What goes to the terminal: results to stdout, everything else to stderr.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace kvsim::sim {

/// Writes a result. Throws UserError if stdout does not take it (disk full, closed pipe).
void write_stdout(std::string_view text);
void write_stderr(std::string_view text);
/// What is allowed but odd: a line on stderr each, "note: ...".
void write_notes(const std::vector<std::string>& notes);

/// A bar on stderr while something takes longer than a second; nothing if stderr is not a terminal.
class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(double done);

 private:
  bool terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_;
};

/// From now on a write that fails returns its error where a signal would end the process: a pipe that is
/// closed, a file that reaches the user's limit.
void ignore_write_signals();

/// Set when the process is asked to end (Ctrl-C, SIGTERM, SIGHUP); asked again it ends at once.
[[nodiscard]] const std::atomic<bool>& interrupt_flag();
/// The signal that set it; 0 if none has.
[[nodiscard]] int interrupt_signal();

}  // namespace kvsim::sim
