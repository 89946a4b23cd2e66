// SPDX-License-Identifier: Apache-2.0
#include "sim/compare/run_variants.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <spawn.h>
#include <sstream>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "sim/run/runner.h"

extern char** environ;

namespace kvsim::sim {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// Without a name, so that it goes with the process however that ends.
File temporary_file() {
  File file(std::tmpfile(), std::fclose);
  if (file == nullptr) {
    throw UserError(fmt::format("cannot make a temporary file: {}", std::strerror(errno)));
  }
  return file;
}

std::string contents(std::FILE* file) {
  std::string text;
  std::rewind(file);
  char piece[4096];
  for (std::size_t read = 0; (read = std::fread(piece, 1, sizeof piece, file)) > 0;) {
    text.append(piece, read);
  }
  return text;
}

/// A process; ended if it is still there when this goes.
class Process {
 public:
  Process(const Job& job, std::size_t index) : index_(index), name_(job.name) {
    std::vector<std::string> words = {"kvsim"};
    words.insert(words.end(), job.arguments.begin(), job.arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) {
      argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fileno(out_.get()), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(err_.get()), STDERR_FILENO);
    const int error = posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
      pid_ = 0;
      throw UserError(fmt::format("cannot start another kvsim: {}", std::strerror(error)));
    }
  }
  ~Process() {
    if (pid_ != 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] std::size_t index() const { return index_; }

  [[nodiscard]] bool ended() {
    const pid_t done = waitpid(pid_, &status_, WNOHANG);
    if (done == 0 || (done < 0 && errno == EINTR)) {
      return false;
    }
    pid_ = 0;
    return true;
  }

  /// Precondition: it has ended.
  [[nodiscard]] JobResult result() const {
    const std::string err = contents(err_.get());
    if (!WIFEXITED(status_)) {
      throw UserError(fmt::format(
          "variant '{}': its process was ended by signal {}; this machine may have too little memory, see -j",
          name_, WTERMSIG(status_)));
    }
    if (const int code = WEXITSTATUS(status_); code == 2) {
      throw UserError(fmt::format("variant '{}': {}", name_, err));
    } else if (code != 0) {
      throw std::runtime_error(fmt::format("variant '{}' ended with exit code {}: {}", name_, code, err));
    }
    JobResult result{.out = contents(out_.get()), .notes = {}};
    std::istringstream lines(err);
    for (std::string line; std::getline(lines, line);) {
      result.notes.push_back(line);
    }
    return result;
  }

 private:
  std::size_t index_;
  std::string name_;
  File out_ = temporary_file();
  File err_ = temporary_file();
  pid_t pid_ = 0;
  int status_ = 0;
};

}  // namespace

std::vector<JobResult> run_jobs(const std::vector<Job>& jobs, const JobOptions& options) {
  constexpr std::chrono::milliseconds kBetween{5};
  std::vector<JobResult> results(jobs.size());
  std::vector<std::unique_ptr<Process>> running;
  std::size_t next = 0, done = 0;
  while (done < jobs.size()) {
    if (options.stop != nullptr && options.stop->load()) {
      throw Interrupted();
    }
    while (next < jobs.size() && running.size() < static_cast<std::size_t>(options.at_once)) {
      running.push_back(std::make_unique<Process>(jobs[next], next));
      ++next;
    }
    const auto ended = std::ranges::find_if(running, [](const auto& process) { return process->ended(); });
    if (ended == running.end()) {
      std::this_thread::sleep_for(kBetween);
      continue;
    }
    if (options.stop != nullptr && options.stop->load()) {  // Ctrl-C ends the variants too
      throw Interrupted();
    }
    results[(*ended)->index()] = (*ended)->result();
    running.erase(ended);
    ++done;
    if (options.progress) {
      options.progress(static_cast<double>(done) / static_cast<double>(jobs.size()));
    }
  }
  return results;
}

}  // namespace kvsim::sim
