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

const std::atomic<bool>& interrupt_flag() {
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted.store(true); };
    action.sa_flags = SA_RESETHAND;
    return sigaction(SIGINT, &action, nullptr) == 0;
  }();
  check(installed, "a signal handler can be installed");
  return interrupted;
}

}  // namespace kvsim::sim
