// SPDX-License-Identifier: Apache-2.0
// Runs every variant in a process of its own.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace kvsim::sim {

/// `kvsim ARGUMENTS...`, and what it is for.
struct Job {
  std::string name;
  std::vector<std::string> arguments;
};

struct JobResult {
  std::string out;                 ///< what it printed
  std::vector<std::string> notes;  ///< lines of its standard error
};

struct JobOptions {
  int at_once = 1;
  std::function<void(double)> progress;  ///< called with the share that is done
  const std::atomic<bool>* stop = nullptr;
};

/// The results in the order of the jobs. Throws UserError if one ends with exit code 2 or by a signal,
/// std::runtime_error for any other failure, Interrupted if `stop` was set; the other processes are ended
/// first.
[[nodiscard]] std::vector<JobResult> run_jobs(const std::vector<Job>& jobs, const JobOptions& options);

}  // namespace kvsim::sim
