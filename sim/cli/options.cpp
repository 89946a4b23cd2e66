// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/options.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include <fmt/format.h>

#include "configs/error/diagnostics.h"
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
    // A shortened option would change its meaning when a later version has another that begins alike.
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(arguments).options(all).positional(positional_).style(style).run(),
              values_);
    po::notify(values_);
  } catch (const po::unknown_option& error) {
    fail_unknown(error.get_option_name());
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

void Options::fail_unknown(const std::string& option) const {
  std::vector<std::string> known;
  for (const auto& each : options_.options()) {
    known.push_back(each->long_name());
  }
  const std::string name = option.substr(std::min(option.find_first_not_of('-'), option.size()));
  auto meant = did_you_mean(name, known);
  for (const std::string& each : known) {
    if (!name.empty() && each.starts_with(name)) {
      meant = each;
    }
  }
  throw UserError(fmt::format("unknown option '{}'{}; see 'kvsim {} --help'", option,
                              meant ? fmt::format(", did you mean '--{}'?", *meant) : "", command_.name));
}

std::string Options::text(const char* name) const {
  std::string value = values_[name].as<std::string>();
  if (value.empty()) {
    throw UserError(fmt::format("--{}: is empty; see 'kvsim {} --help'", name, command_.name));
  }
  return value;
}

int Options::count(const char* name, unsigned fallback, int most) const {
  if (!has(name)) {
    return static_cast<int>(fallback);
  }
  const std::string value = text(name);
  int number = 0;
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || stop != end || number < 1 || number > most) {
    throw UserError(fmt::format("--{}: '{}' is not from 1 to {}", name, value, most));
  }
  return number;
}

std::vector<std::string> Options::list(const char* name) const {
  return has(name) ? values_[name].as<std::vector<std::string>>() : std::vector<std::string>{};
}

}  // namespace kvsim::sim
