// SPDX-License-Identifier: Apache-2.0
// Reading a command's arguments.
#pragma once

#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include "sim/cli/commands.h"

namespace kvsim::sim {

/// A command's options and positional arguments. `--help` prints them and ends the command.
class Options {
 public:
  explicit Options(const Command& command);

  /// Adds options in Boost's notation.
  boost::program_options::options_description_easy_init add() { return options_.add_options(); }
  /// The positional arguments are collected under `name`.
  void positional(const char* name);

  /// Returns false if the help was asked for and printed. Throws UserError for arguments it does not know.
  [[nodiscard]] bool parse(const std::vector<std::string>& arguments);

  [[nodiscard]] bool has(const char* name) const { return values_.count(name) != 0; }
  /// Throws UserError if it is empty.
  [[nodiscard]] std::string text(const char* name) const;
  /// A whole number from 1 to `most`; `fallback` if the option was not given. Throws UserError for others.
  [[nodiscard]] int count(const char* name, unsigned fallback, int most) const;
  /// Empty if the option was not given.
  [[nodiscard]] std::vector<std::string> list(const char* name) const;

 private:
  [[noreturn]] void fail_unknown(const std::string& option) const;

  const Command& command_;
  boost::program_options::options_description options_{"Options"};
  boost::program_options::options_description hidden_;
  boost::program_options::positional_options_description positional_;
  boost::program_options::variables_map values_;
};

}  // namespace kvsim::sim
