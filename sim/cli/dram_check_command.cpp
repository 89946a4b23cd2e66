// SPDX-License-Identifier: Apache-2.0
// `kvsim dram check`.
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "configs/error/error.h"
#include "configs/spec/dram_temperature.h"
#include "configs/spec/resolve.h"
#include "models/dram/command_csv.h"
#include "models/dram/legality/trace_check.h"
#include "sim/cli/commands.h"
#include "sim/cli/dram_setup.h"
#include "sim/cli/options.h"
#include "sim/cli/output.h"

namespace kvsim::sim {

namespace po = boost::program_options;

namespace {

using model::legality::TraceFindings;

constexpr std::size_t kTold = 20;
constexpr std::int64_t kMostRanks = 8;  // as in a scenario

config::RefreshMode refresh_of(const std::string& text) {
  if (text == "all_bank") {
    return config::RefreshMode::all_bank;
  }
  if (text == "per_bank") {
    return config::RefreshMode::per_bank;
  }
  if (text == "none") {
    return config::RefreshMode::none;
  }
  throw UserError(fmt::format("--refresh: '{}' is unknown; all_bank, per_bank or none", text));
}

std::string text_of(const TraceFindings& findings, const std::string& part) {
  std::string text = fmt::format("part        {}\nchannels    {}\ncommands    {}\nviolations  {}\n", part,
                                 findings.channels, findings.commands, findings.violations);
  for (const TraceFindings::Found& found : findings.first) {
    text += fmt::format("line {}: {}: {}{}\n", found.line, found.rule,
                        findings.channels > 1 ? fmt::format("channel {}: ", found.channel) : "", found.text);
  }
  if (findings.violations > findings.first.size()) {
    text += fmt::format("... and {} more\n", findings.violations - findings.first.size());
  }
  text += findings.by_rule.empty() ? "" : "by rule\n";
  for (const auto& [rule, count] : findings.by_rule) {
    text += fmt::format("{:>12}  {}\n", count, rule);
  }
  return text;
}

std::string json_of(const TraceFindings& findings, const std::string& part) {
  nlohmann::ordered_json first = nlohmann::ordered_json::array();
  for (const TraceFindings::Found& found : findings.first) {
    first.push_back({{"line", found.line},
                     {"channel", found.channel},
                     {"rule", std::string(found.rule)},
                     {"text", found.text}});
  }
  nlohmann::ordered_json by_rule = nlohmann::ordered_json::object();
  for (const auto& [rule, count] : findings.by_rule) {
    by_rule[std::string(rule)] = count;
  }
  const nlohmann::ordered_json json = {{"part", part},
                                       {"commands", findings.commands},
                                       {"channels", findings.channels},
                                       {"violations", findings.violations},
                                       {"first", first},
                                       {"by_rule", by_rule}};
  return json.dump(2) + "\n";
}

/// What the channel is like; of refreshes, what the part has to be given at its temperature.
model::legality::Conditions conditions_of(const Options& options, const config::DramPartSpec& part) {
  model::legality::Conditions conditions{
      .ranks = number_option(options, "ranks", 1, kMostRanks),
      .refresh = refresh_of(options.text("refresh")),
      .refresh_rate = config::refresh_rate(part, temperature_option(options))};
  if (options.has("postponed-refreshes")) {
    const std::int64_t most = model::legality::rule_table(part, conditions).postponed;
    conditions.postponed = number_option(options, "postponed-refreshes", 1, most);
  }
  return conditions;
}

std::vector<std::string> notes_of(const TraceFindings& findings,
                                  const model::legality::Conditions& conditions, const std::string& file) {
  std::vector<std::string> notes;
  if (findings.commands == 0) {
    notes.push_back(fmt::format("{}: has no commands", file));
  }
  if (findings.highest_rank >= conditions.ranks) {
    notes.push_back(fmt::format(
        "commands name rank {}, but --ranks is {}; a channel with ranks 0 to {} needs "
        "--ranks {}",
        findings.highest_rank, conditions.ranks, findings.highest_rank, findings.highest_rank + 1));
  }
  return notes;
}

}  // namespace

int dram_check(const Command& self, const std::vector<std::string>& arguments) {
  Options options(self);
  options.add()("part", po::value<std::string>(),
                "DRAM part, an id of 'kvsim list dram' or a file; required")(
      "ranks", po::value<std::string>()->default_value("1"), "ranks of a channel")(
      "refresh", po::value<std::string>()->default_value("all_bank"),
      "all_bank or per_bank: every bank must be refreshed in time; none: refreshes may be missing")(
      "postponed-refreshes", po::value<std::string>(),
      "refreshes that a bank may be owed, 1 to what the standard allows, which is the default")(
      "format", po::value<std::string>()->default_value("text"), "text or json");
  add_temperature_option(options);
  options.positional("files");
  if (!options.parse(arguments)) {
    return 0;
  }
  const std::vector<std::string> files = options.list("files");
  if (files.size() != 1) {
    throw UserError(fmt::format("give one command trace ({} given); see --help", files.size()));
  }
  if (!options.has("part")) {
    throw UserError("give the part with --part; 'kvsim list dram' has their ids");
  }
  const std::string format = options.text("format");
  if (format != "text" && format != "json") {
    throw UserError(fmt::format("--format: '{}' is unknown; text or json", format));
  }
  config::DramPartSpec part = config::load_dram_part(options.text("part"));
  if (part.psram) {
    throw UserError(fmt::format("--part: {} is a serial PSRAM, which has no DRAM commands", part.name));
  }
  write_notes(part_notes(part));
  const model::legality::Conditions conditions = conditions_of(options, part);
  part.timing = config::timing_at(part, temperature_option(options));
  model::CommandCsvReader reader(files[0]);
  const TraceFindings findings = model::legality::check_trace(reader, part, conditions, kTold);
  write_notes(notes_of(findings, conditions, files[0]));
  write_stdout(format == "json" ? json_of(findings, part.name) : text_of(findings, part.name));
  return findings.violations == 0 ? 0 : 1;
}

}  // namespace kvsim::sim
