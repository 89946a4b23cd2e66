// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/dram_setup.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "configs/error/diagnostics.h"
#include "configs/error/error.h"
#include "configs/schema/yaml.h"
#include "configs/spec/address_map.h"
#include "configs/spec/dram_refresh.h"
#include "configs/spec/named_map.h"
#include "configs/spec/resolve.h"
#include "configs/spec/schemas.h"
#include "configs/units/text.h"
#include "sim/cli/output.h"

namespace kvsim::sim {

namespace po = boost::program_options;

namespace {

constexpr std::int64_t kLine = 64;
constexpr std::int64_t kLongestQueue = 4096;
constexpr std::string_view kHashed = "-xor";

std::int64_t number(std::string_view text, const char* what, std::int64_t least, std::int64_t most) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < least || value > most) {
    throw UserError(fmt::format("{}: '{}' is not a whole number from {} to {}", what, text, least, most));
  }
  return value;
}

/// A mapping by name, for one channel and rank; "-xor" behind it adds the hash. None: there is no such name.
std::optional<config::AddressMapSpec> named_mapping(std::string_view name, const config::DramPartSpec& part) {
  config::AddressMapSpec map;
  map.hash = name.ends_with(kHashed);
  name.remove_suffix(map.hash ? kHashed.size() : 0);
  for (const auto& order : EnumNames<config::MapOrder>::kAll) {
    if (name == order.name && order.value != config::MapOrder::masks) {
      map.order = order.value;
      map.channel_granule = least_granule(map.order, part, Bytes(kLine));
      name_masks(map, part, {.channels = 1, .ranks = 1, .line = Bytes(kLine)});
      return map;
    }
  }
  return std::nullopt;
}

config::AddressMapSpec mapping_file(const std::string& path, const config::DramPartSpec& part) {
  Diagnostics errors;
  const config::Value value = config::parse_yaml(config::read_source(path), errors);
  config::DeviceSpec device;
  if (!value.is_invalid()) {
    device.controller.mapping = config::schema<config::AddressMapSpec>().read({value, "", errors});
  }
  errors.throw_if_any();
  if (device.controller.mapping.order != config::MapOrder::masks) {
    throw UserError(fmt::format(
        "{}: order: a file has the bits of each coordinate; an order is given by its name", path));
  }
  if (const auto unused = unused_of_masks(device.controller.mapping); !unused.empty()) {
    throw UserError(fmt::format("{}: {}: is of an order by name, and a file has the bits; leave it out", path,
                                unused[0]));
  }
  device.dram = part;
  device.controller.channels = std::int64_t{1} << device.controller.mapping.channel.size();
  device.controller.ranks = std::int64_t{1} << device.controller.mapping.rank.size();
  device.llc.line = Bytes(kLine);
  std::string text;
  for (const config::MapProblem& problem : address_map_problems(device)) {
    text += fmt::format("{}{}: {}{}{}", text.empty() ? "" : "\n", path, problem.coordinate,
                        problem.coordinate.empty() ? "" : ": ", problem.what);
  }
  if (!text.empty()) {
    throw UserError(text);
  }
  return device.controller.mapping;
}

void set_mapping(DramSetup& setup, const Options& options) {
  setup.mapping = options.has("mapping")       ? options.text("mapping")
                  : setup.part.bank_groups > 1 ? "row-bank-column-group"
                                               : "row-bank-column";
  const auto named = named_mapping(setup.mapping, setup.part);
  if (!named && !std::filesystem::exists(setup.mapping)) {
    throw UserError(fmt::format(
        "--mapping: '{}' is neither row-bank-column, bank-row-column, row-bank-column-group, one of "
        "them with -xor behind it, nor a file",
        setup.mapping));
  }
  setup.controller.mapping = named ? *named : mapping_file(setup.mapping, setup.part);
  if (!named) {
    setup.inputs.push_back(setup.mapping);
  }
  setup.controller.channels = std::int64_t{1} << setup.controller.mapping.channel.size();
  setup.controller.ranks = std::int64_t{1} << setup.controller.mapping.rank.size();
}

/// "shared:64" or "bank:8". Writes of a shared queue are drained from three quarters of it to one.
void set_queue(DramSetup& setup, const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  if (colon == std::string::npos || (kind != "shared" && kind != "bank")) {
    throw UserError(fmt::format("--queue: '{}' is neither shared:N nor bank:N", text));
  }
  const std::int64_t depth = number(std::string_view(text).substr(colon + 1), "--queue", 1, kLongestQueue);
  config::MemoryControllerSpec& c = setup.controller;
  c.queue = kind == "bank" ? config::QueueKind::bank : config::QueueKind::shared;
  c.read_queue = c.write_queue = depth;
  c.write_high = std::max<std::int64_t>(1, depth * 3 / 4);
  c.write_low = std::min(depth / 4, c.write_high - 1);
  setup.queue = text;
}

template <class T>
T quantity(const Options& options, const char* name) {
  const Parsed<T> parsed = parse<T>(options.text(name));
  if (!parsed.value) {
    throw UserError(fmt::format("--{}: '{}' {}", name, options.text(name), parsed.reason));
  }
  return *parsed.value;
}

/// "none", as in a scenario, or a time.
std::optional<Picoseconds> idle_option(const Options& options, const char* name) {
  const std::string text = options.text(name);
  if (text == "never") {
    throw UserError(fmt::format("--{}: 'never' is written {} here", name, config::kNone));
  }
  return text == config::kNone ? std::nullopt : std::optional(time_option(options, name, Picoseconds(-1)));
}

void set_power(DramSetup& setup, const Options& options) {
  config::MemoryControllerSpec& c = setup.controller;
  c.postponed_refreshes = number_option(options, "postponed-refreshes", 0, 8);
  c.power_down = idle_option(options, "power-down");
  c.self_refresh = idle_option(options, "self-refresh");
  c.temperature = temperature_option(options);
  const auto idle = idle_problem(c);
  if (const auto problem = idle ? idle : refresh_problem(setup.part, c)) {
    std::string option = problem->key;
    std::replace(option.begin(), option.end(), '_', '-');
    throw UserError(fmt::format("--{}: {}", option, problem->what));
  }
}

template <class T>
T choice(const Options& options, const char* name) {
  const std::string text = options.text(name);
  std::string known;
  for (const auto& value : EnumNames<T>::kAll) {
    if (text == value.name) {
      return value.value;
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", value.name);
  }
  throw UserError(fmt::format("--{}: '{}' is unknown; one of {}", name, text, known));
}

}  // namespace

void add_dram_options(Options& options) {
  options.add()("part", po::value<std::string>(),
                "DRAM part, an id of 'kvsim list dram' or a file; required")(
      "fidelity", po::value<std::string>()->default_value("exact"),
      "exact: every burst is a decision; train: all bursts queued for a row are one")(
      "queue", po::value<std::string>()->default_value("shared:64"),
      "shared:N: a channel has N reads and N writes to choose from; bank:N: each bank N requests of both "
      "kinds")("mapping", po::value<std::string>(),
               "row-bank-column (default), bank-row-column, row-bank-column-group (bank groups take turns "
               "line by line; default where a part has them), one of them with -xor behind it (bank bits are "
               "XORed with the low row bits), or a file with the bits of each coordinate")(
      "refresh", po::value<std::string>()->default_value("all_bank"), "all_bank, per_bank or none")(
      "postponed-refreshes", po::value<std::string>()->default_value("0"),
      "refreshes that may wait while requests are queued, 0 to 8")(
      "page-policy", po::value<std::string>()->default_value("open"),
      "open, closed or adaptive (a row is closed after 200 ns without a request)")(
      "power-down", po::value<std::string>()->default_value("none"),
      "idle time after which a rank powers down, such as 1us; none: never")(
      "self-refresh", po::value<std::string>()->default_value("none"),
      "idle time after which a rank refreshes itself; none: never");
  add_temperature_option(options);
  options.add()("format", po::value<std::string>()->default_value("text"), "text or json");
}

void add_temperature_option(Options& options) {
  options.add()("temperature", po::value<std::string>()->default_value("45 C"),
                "of the DRAM; the hotter, the more often it is refreshed");
}

Celsius temperature_option(const Options& options) {
  const auto temperature = quantity<Celsius>(options, "temperature");
  if (temperature < Celsius(-40) || temperature > Celsius(125)) {
    throw UserError(
        fmt::format("--temperature: '{}' is not from -40 C to 125 C", options.text("temperature")));
  }
  return temperature;
}

DramSetup dram_setup(const Options& options) {
  if (!options.has("part")) {
    throw UserError("give the part with --part; 'kvsim list dram' has their ids");
  }
  DramSetup setup;
  setup.part_id = options.text("part");
  std::vector<config::InputFile> files;
  setup.part = config::load_dram_part(setup.part_id, &files);
  for (const config::InputFile& file : files) {
    setup.inputs.push_back(file.path);
  }
  config::MemoryControllerSpec& c = setup.controller;
  c.channels = c.ranks = 1;
  c.refresh = choice<config::RefreshMode>(options, "refresh");
  c.page_policy = choice<config::PagePolicy>(options, "page-policy");
  c.page_timeout = Picoseconds(200'000);
  c.age_cap = Picoseconds(2'000'000);  // a scenario's default
  set_power(setup, options);
  set_queue(setup, options.text("queue"));
  set_mapping(setup, options);

  const std::string fidelity = options.text("fidelity");
  if (fidelity != "exact" && fidelity != "train") {
    throw UserError(fmt::format("--fidelity: '{}' is unknown; exact or train", fidelity));
  }
  if (setup.part.psram && fidelity == "train") {
    throw UserError(
        fmt::format("--fidelity: {} is a serial PSRAM, which has no row trains; use exact", setup.part_id));
  }
  setup.decisions = fidelity == "train" ? model::Decisions::rows : model::Decisions::bursts;
  const std::string format = options.text("format");
  if (format != "text" && format != "json") {
    throw UserError(fmt::format("--format: '{}' is unknown; text or json", format));
  }
  setup.json = format == "json";
  write_notes(part_notes(setup.part));
  return setup;
}

std::int64_t number_option(const Options& options, const char* name, std::int64_t least, std::int64_t most) {
  return number(options.text(name), fmt::format("--{}", name).c_str(), least, most);
}

Picoseconds time_option(const Options& options, const char* name, Picoseconds least) {
  const auto time = quantity<Picoseconds>(options, name);
  constexpr Picoseconds kLongest(1'000'000'000'000);  // as in a scenario
  if (time <= least || time > kLongest) {
    throw UserError(fmt::format("--{}: '{}' is not {}up to {}", name, options.text(name),
                                least < Picoseconds() ? "" : "above 0, and ", to_text(kLongest)));
  }
  return time;
}

}  // namespace kvsim::sim
