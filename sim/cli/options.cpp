// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/options.h"

#include <sstream>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "sim/cli/output.h"

namespace kvsim::sim {

namespace po = boost::program_options;

Options::Options(const Command& command) : command_(command) {
  options_.add_options()("help,h", "print this help");
}

void Options::positional(const char* name) {
  hidden_.add_options()(name, po::value<std::vector<std::string>>());
  positional_.add(name, -1);
}

bool Options::parse(const std::vector<std::string>& arguments) {
  po::options_description all;
  all.add(options_).add(hidden_);
  try {
    po::store(po::command_line_parser(arguments).options(all).positional(positional_).run(), values_);
    po::notify(values_);
  } catch (const po::error& error) {
    throw UserError(fmt::format("{}; see 'kvsim {} --help'", error.what(), command_.name));
  }
  if (!has("help")) {
    return true;
  }
  std::ostringstream text;
  text << "usage: kvsim " << command_.name << ' ' << command_.arguments << "\n\n"
       << command_.summary << "\n\n"
       << options_;
  if (!command_.examples.empty()) {
    text << "\nExamples:\n" << command_.examples << '\n';
  }
  write_stdout(text.str());
  return false;
}

std::vector<std::string> Options::list(const char* name) const {
  return has(name) ? values_[name].as<std::vector<std::string>>() : std::vector<std::string>{};
}

}  // namespace kvsim::sim
