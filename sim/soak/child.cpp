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
#include <sys/prctl.h>
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

}  // namespace

/// Ended if it is still there when this goes.
class Children::Child {
 public:
  explicit Child(const Work& work) {
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
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // also when this process is killed
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

  [[nodiscard]] int pipe_end() const { return pipe_; }

  [[nodiscard]] bool is_done() const { return done_; }
  void listen() {
    std::array<char, 4096> piece{};
    const ssize_t got = read(pipe_, piece.data(), piece.size());
    if (got > 0) {
      told_.append(piece.data(), static_cast<std::size_t>(got));
    }
    done_ = got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN);
  }

  /// Precondition: it is done.
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
  pid_t pid_ = 0;
  int pipe_ = -1;
  std::string told_;
  bool done_ = false;  ///< with telling
};

Children::Children(const std::atomic<bool>* stop) : stop_(stop) {}
Children::~Children() = default;

Children::Ticket Children::start(const Work& work) {
  const Ticket ticket{started_++};
  children_.emplace(ticket, std::make_unique<Child>(work));
  return ticket;
}

std::size_t Children::running() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(children_, [](const auto& entry) { return !entry.second->is_done(); }));
}

bool Children::is_done(Ticket ticket) const {
  return children_.at(ticket)->is_done();
}

void Children::listen() {
  constexpr int kWaitMilliseconds = 100;
  if (stop_ != nullptr && stop_->load()) {
    throw Interrupted();
  }
  std::vector<pollfd> ends;
  std::vector<Child*> heard;
  for (const auto& [ticket, child] : children_) {
    if (!child->is_done()) {
      ends.push_back({.fd = child->pipe_end(), .events = POLLIN, .revents = 0});
      heard.push_back(child.get());
    }
  }
  poll(ends.data(), ends.size(), kWaitMilliseconds);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (ends[i].revents != 0) {
      heard[i]->listen();
    }
  }
}

std::string Children::take(Ticket ticket) {
  check(is_done(ticket), "a process is listened to until it is done");
  const std::unique_ptr<Child> child = std::move(children_.extract(ticket).mapped());
  return child->result();
}

std::vector<std::string> in_children(const std::vector<Children::Work>& work, std::size_t at_once,
                                     const std::atomic<bool>* stop) {
  Children children(stop);
  std::vector<Children::Ticket> tickets;
  std::vector<std::string> results;
  while (results.size() < work.size()) {
    while (tickets.size() < work.size() && children.running() < at_once) {
      tickets.push_back(children.start(work[tickets.size()]));
    }
    children.listen();
    while (results.size() < tickets.size() && children.is_done(tickets[results.size()])) {
      results.push_back(children.take(tickets[results.size()]));
    }
  }
  return results;
}

}  // namespace kvsim::sim
