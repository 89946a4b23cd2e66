// SPDX-License-Identifier: Apache-2.0
// The subcommands of `kvsim`. Each takes its own arguments and writes its result to stdout.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvsim::sim {

struct Command {
  std::string_view name;
  std::string_view arguments;  ///< for the usage line
  std::string_view summary;
  std::string_view examples;  ///< one a line
  int (*run)(const Command& self, const std::vector<std::string>& arguments);
};

/// All commands, in the order of the help.
[[nodiscard]] std::span<const Command> commands();

/// Runs `kvsim ARGUMENTS...`. Returns the exit code: 0 ran, 2 the user's input is wrong, 3 a bug, 128 +
/// signal interrupted.
int run_command_line(const std::vector<std::string>& arguments);

int run_run(const Command& self, const std::vector<std::string>& arguments);
int run_replay(const Command& self, const std::vector<std::string>& arguments);
int run_validate(const Command& self, const std::vector<std::string>& arguments);
int run_explain(const Command& self, const std::vector<std::string>& arguments);
/// `kvsim quality`.
int run_quality(const Command& self, const std::vector<std::string>& arguments);
/// `kvsim compare`.
int run_compare(const Command& self, const std::vector<std::string>& arguments);
/// `kvsim session`.
int run_session(const Command& self, const std::vector<std::string>& arguments);
/// `kvsim attention`.
int run_attention(const Command& self, const std::vector<std::string>& arguments);
int run_list(const Command& self, const std::vector<std::string>& arguments);

/// `kvsim trace info`.
int run_trace(const Command& self, const std::vector<std::string>& arguments);
int trace_info(const Command& self, const std::vector<std::string>& arguments);

/// `kvsim dram run|bench|check`.
int run_dram(const Command& self, const std::vector<std::string>& arguments);
int dram_run(const Command& self, const std::vector<std::string>& arguments);
int dram_bench(const Command& self, const std::vector<std::string>& arguments);
/// `kvsim dram check`. Returns 1 if the trace breaks a rule.
int dram_check(const Command& self, const std::vector<std::string>& arguments);

/// `kvsim storage bench`.
int run_storage(const Command& self, const std::vector<std::string>& arguments);

}  // namespace kvsim::sim
