// SPDX-License-Identifier: Apache-2.0
#include "tests/support/process.h"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kvsim::testing {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "kvsim-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error("cannot make a temporary folder");
  }
  folder_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::filesystem::remove_all(folder_);
}

std::string TemporaryFolder::file(const std::string& name, const std::string& content) const {
  std::ofstream(folder_ / name, std::ios::binary) << content;
  return path(name);
}

std::size_t TemporaryFolder::entries() const {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) {
    ++count;
  }
  return count;
}

namespace {

void redirect(const std::string& path, int descriptor) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(file, descriptor);
  close(file);
}

}  // namespace

Outcome kvsim(const std::vector<std::string>& arguments, int interrupt_after_ms) {
  const TemporaryFolder folder;
  std::vector<std::string> words = {KVSIM_BINARY};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);

  const pid_t child = fork();
  if (child == 0) {
    redirect(folder.path("out"), STDOUT_FILENO);
    redirect(folder.path("err"), STDERR_FILENO);
    if (chdir(KVSIM_SOURCE_DIR) == 0) {
      execv(argv[0], argv.data());
    }
    _exit(127);
  }
  if (interrupt_after_ms > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(interrupt_after_ms));
    kill(child, SIGINT);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .out = read_file(folder.path("out")),
          .err = read_file(folder.path("err"))};
}

Outcome shell(const std::string& script) {
  const TemporaryFolder folder;
  const std::string whole = "cd '" KVSIM_SOURCE_DIR "'\nK='" KVSIM_BINARY "'\n" + script;
  const std::string command = "sh '" + folder.file("script", whole) + "' >'" + folder.path("out") + "' 2>'" +
                              folder.path("err") + "'";
  const int status = std::system(command.c_str());
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .out = read_file(folder.path("out")),
          .err = read_file(folder.path("err"))};
}

}  // namespace kvsim::testing
