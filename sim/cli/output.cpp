// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/output.h"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <unistd.h>

#include <fmt/format.h>

#include "configs/error/error.h"

namespace kvsim::sim {

namespace {

constexpr std::chrono::milliseconds kPatience{1000};
constexpr std::chrono::milliseconds kBetween{100};
constexpr int kWidth = 40;

std::atomic<bool> interrupted{false};
volatile std::sig_atomic_t last_signal = 0;

void interrupt(int signal) {
  last_signal = signal;
  interrupted.store(true);
}

/// nohup has SIGHUP ignored before the process begins, and then it stays so.
bool install(int signal) {
  struct sigaction before {};
  if (signal == SIGHUP && sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) {
    return true;
  }
  struct sigaction action {};
  action.sa_handler = interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  return sigaction(signal, &action, nullptr) == 0;
}

}  // namespace

void write_stdout(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    throw UserError(fmt::format("cannot write the result to standard output: {}", std::strerror(errno)));
  }
}

void write_stderr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void write_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) {
    write_stderr("note: " + note + "\n");
  }
}

ProgressBar::ProgressBar()
    : terminal_(isatty(STDERR_FILENO) != 0), start_(std::chrono::steady_clock::now()), last_(start_) {}

ProgressBar::~ProgressBar() {
  if (shown_) {
    write_stderr("\r\033[K");
  }
}

void ProgressBar::show(double done) {
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_ || now - start_ < kPatience || now - last_ < kBetween) {
    return;
  }
  last_ = now;
  shown_ = true;
  const int full = static_cast<int>(done * kWidth);
  write_stderr(fmt::format("\r[{:<{}}] {:3.0f} %", std::string(static_cast<std::size_t>(full), '#'), kWidth,
                           100 * done));
}

void ignore_write_signals() {
  check(std::signal(SIGPIPE, SIG_IGN) != SIG_ERR && std::signal(SIGXFSZ, SIG_IGN) != SIG_ERR,
        "a signal can be ignored");
}

int interrupt_signal() {
  return last_signal;
}

const std::atomic<bool>& interrupt_flag() {
  static const bool installed = install(SIGINT) && install(SIGTERM) && install(SIGHUP);
  check(installed, "a signal handler can be installed");
  return interrupted;
}

}  // namespace kvsim::sim
