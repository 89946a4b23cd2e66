// SPDX-License-Identifier: Apache-2.0
#include "sim/soak/child.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <poll.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "sim/run/runner.h"

namespace kvsim::sim {
namespace {

/// First byte of what a child tells.
constexpr char kResult = 'r';
constexpr char kUserError = 'u';
constexpr char kBug = 'b';
constexpr char kInterrupted = 'i';

void tell(int pipe, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = write(pipe, text.data() + done, text.size() - done);
    if (written < 0 && errno != EINTR) {
      return;
    }
    done += written > 0 ? static_cast<std::size_t>(written) : 0;
  }
}

std::string outcome_of(const std::function<std::string()>& work) {
  try {
    return kResult + work();
  } catch (const UserError& error) {
    return kUserError + std::string(error.what());
  } catch (const Interrupted&) {
    return std::string(1, kInterrupted);
  } catch (const std::exception& error) {
    return kBug + std::string(error.what());
  }
}

/// Ended if it is still there when this goes.
class Child {
 public:
  Child(const std::function<std::string()>& work, std::size_t index) : index_(index) {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) {
      throw UserError(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
    }
    pid_ = fork();
    if (pid_ < 0) {
      close(ends[0]);
      close(ends[1]);
      throw UserError(fmt::format("cannot start another process: {}", std::strerror(errno)));
    }
    if (pid_ == 0) {
      close(ends[0]);
      tell(ends[1], outcome_of(work));
      _exit(0);
    }
    close(ends[1]);
    pipe_ = ends[0];
  }
  ~Child() {
    close(pipe_);
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] std::size_t index() const { return index_; }
  [[nodiscard]] int pipe_end() const { return pipe_; }

  /// True at the end of what it tells.
  bool listen() {
    std::array<char, 4096> piece{};
    const ssize_t got = read(pipe_, piece.data(), piece.size());
    if (got > 0) {
      told_.append(piece.data(), static_cast<std::size_t>(got));
    }
    return got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN);
  }

  /// Precondition: listen() said that it has ended.
  [[nodiscard]] std::string result() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    if (WIFSIGNALED(status)) {
      throw UserError(
          fmt::format("a window's process was ended by signal {}; this machine may have too little memory",
                      WTERMSIG(status)));
    }
    const std::string text = told_.empty() ? std::string() : told_.substr(1);
    switch (told_.empty() ? kBug : told_.front()) {
      case kResult:
        return text;
      case kUserError:
        throw UserError(text);
      case kInterrupted:
        throw Interrupted();
      default:
        throw std::runtime_error(fmt::format("a window could not be measured: {}", text));
    }
  }

 private:
  std::size_t index_;
  pid_t pid_ = 0;
  int pipe_ = -1;
  std::string told_;
};

}  // namespace

std::vector<std::string> in_children(const std::vector<std::function<std::string()>>& work,
                                     std::size_t at_once, const std::atomic<bool>* stop) {
  constexpr int kWaitMilliseconds = 100;
  std::vector<std::string> results(work.size());
  std::vector<std::unique_ptr<Child>> running;
  std::size_t next = 0, done = 0;
  while (done < work.size()) {
    if (stop != nullptr && stop->load()) {
      throw Interrupted();
    }
    for (; next < work.size() && running.size() < at_once; ++next) {
      running.push_back(std::make_unique<Child>(work[next], next));
    }
    std::vector<pollfd> ends;
    for (const auto& child : running) {
      ends.push_back({.fd = child->pipe_end(), .events = POLLIN, .revents = 0});
    }
    poll(ends.data(), ends.size(), kWaitMilliseconds);
    for (std::size_t i = ends.size(); i-- > 0;) {
      if (ends[i].revents != 0 && running[i]->listen()) {
        results[running[i]->index()] = running[i]->result();
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
        ++done;
      }
    }
  }
  return results;
}

}  // namespace kvsim::sim
