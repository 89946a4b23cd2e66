// SPDX-License-Identifier: Apache-2.0
// `kvsim dram` and `kvsim dram run`.
#include <algorithm>
#include <array>
#include <ctime>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "configs/error/diagnostics.h"
#include "configs/error/error.h"
#include "configs/units/text.h"
#include "models/dram/command_csv.h"
#include "models/dram/request_player.h"
#include "models/psram/psram_player.h"
#include "sim/cli/commands.h"
#include "sim/cli/dram_power.h"
#include "sim/cli/dram_setup.h"
#include "sim/cli/output.h"
#include "sim/cli/output_paths.h"
#include "sim/metrics/dram_energy.h"
#include "sim/metrics/human.h"
#include "sim/report/energy_json.h"
#include "sim/run/runner.h"

namespace kvsim::sim {

namespace po = boost::program_options;
using nlohmann::ordered_json;

namespace {

constexpr std::array kDramCommands = {
    Command{"dram run", "--part PART --trace FILE [options]",
            "Serves a raw request stream as fast as the queues take it. A trace has lines 'R 0xADDRESS' and "
            "'W 0xADDRESS' (# begins a comment), or eight bytes a request (little-endian, address << 1 | "
            "is_write), 64 B each.",
            "  kvsim dram run --part lpddr4-3200 --trace requests.bin\n"
            "  kvsim dram run --part lpddr4-3200 --trace requests.txt --queue bank:8 --commands commands.csv",
            dram_run},
    Command{"dram bench", "--part PART [options]",
            "Bandwidth by access pattern beside its closed-form bound, and latency against load.",
            "  kvsim dram bench --part lpddr4-3200\n"
            "  kvsim dram bench --part lpddr4-3200 --pattern mix --read-share 0.7 --streams 4",
            dram_bench},
    Command{
        "dram check", "COMMANDS.csv --part PART [options]",
        "Checks a command trace against the part's timings, independently of the controller. Exit code 0: "
        "it keeps all rules, 1: it breaks some, 2: it is no trace, or another mistake of input.",
        "  kvsim dram check commands.csv --part lpddr4-3200", dram_check},
};

double cpu_seconds() {
  std::timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// Writes the commands of all channels to a file, batch by batch.
class CommandRecorder {
 public:
  CommandRecorder(const DramSetup& setup, const std::string& path, model::RequestPlayer& player)
      : writer_(path, setup.part, {.channels = setup.controller.channels, .ranks = setup.controller.ranks}),
        logs_(static_cast<std::size_t>(setup.controller.channels)) {
    for (std::size_t channel = 0; channel < logs_.size(); ++channel) {
      player.log_commands(channel, &logs_[channel]);
    }
  }
  void flush() {
    for (std::size_t channel = 0; channel < logs_.size(); ++channel) {
      for (const model::IssuedCommand& command : logs_[channel]) {
        writer_.write(static_cast<std::uint32_t>(channel), command);
      }
      logs_[channel].clear();
    }
  }
  void finish() { writer_.finish(); }

 private:
  model::CommandCsvWriter writer_;
  std::vector<std::vector<model::IssuedCommand>> logs_;
};

struct DramRun {
  model::PlayResult result;
  double cpu = 0;
  double clock_ns = 0;
};

ordered_json bus_json(const model::BusCycles& bus) {
  const std::int64_t all = bus.data + bus.turnaround + bus.refresh + bus.activate + bus.command + bus.idle;
  return {{"data", share(bus.data, all)},           {"turnaround", share(bus.turnaround, all)},
          {"refresh", share(bus.refresh, all)},     {"activate_limited", share(bus.activate, all)},
          {"command_bus", share(bus.command, all)}, {"idle", share(bus.idle, all)}};
}

ordered_json latency_json(const DramRun& run) {
  const model::PlayResult& r = run.result;
  const auto mean = [&](std::int64_t cycles) {
    return r.reads == 0 ? 0 : static_cast<double>(cycles) * run.clock_ns / static_cast<double>(r.reads);
  };
  const model::ReadCycles& c = r.read_cycles;
  ordered_json histogram = ordered_json::array();
  for (const model::Histogram::Bucket& bucket : r.latencies.octaves()) {
    histogram.push_back({{"from_ns", static_cast<double>(bucket.from) * run.clock_ns},
                         {"to_ns", static_cast<double>(bucket.to) * run.clock_ns},
                         {"reads", bucket.count}});
  }
  const auto quantile = [&](double q) { return static_cast<double>(r.latencies.quantile(q)) * run.clock_ns; };
  return {{"mean_components_ns",
           {{"queue", mean(c.queue)},
            {"refresh_wait", mean(c.refresh)},
            {"precharge", mean(c.precharge)},
            {"activate", mean(c.activate)},
            {"column", mean(c.column)},
            {"bus", mean(c.bus)}}},
          {"p50_ns", quantile(0.5)},
          {"p95_ns", quantile(0.95)},
          {"p99_ns", quantile(0.99)},
          {"max_ns", static_cast<double>(r.latencies.max()) * run.clock_ns},
          {"histogram", std::move(histogram)}};
}

ordered_json banks_json(const DramRun& run, std::int64_t channels) {
  ordered_json banks = ordered_json::array();
  const std::size_t per_channel = run.result.banks.size() / static_cast<std::size_t>(channels);
  for (std::size_t i = 0; i < run.result.banks.size(); ++i) {
    const model::BankCounters& bank = run.result.banks[i];
    banks.push_back({{"channel", i / per_channel},
                     {"bank", i % per_channel},
                     {"hits", bank.hits},
                     {"misses", bank.misses},
                     {"conflicts", bank.conflicts}});
  }
  return banks;
}

ordered_json to_json(const DramSetup& setup, const DramRun& run) {
  const model::PlayResult& r = run.result;
  const model::ChannelCounters& c = r.counters;
  const std::int64_t columns = c.reads + c.writes;
  ordered_json json = {
      {"requests", r.requests},
      {"seconds_simulated", seconds(r.elapsed)},
      {"bandwidth_gbs", r.requests == 0 ? 0 : (r.moved / r.elapsed).count() / 1e9},
      {"mean_read_latency_ns", nanoseconds(r.mean_read_latency)},
      {"row_hit", share(columns - c.row_misses - c.row_conflicts, columns)},
      {"row_miss", share(c.row_misses, columns)},
      {"row_conflict", share(c.row_conflicts, columns)},
      {"cpu_seconds", run.cpu},
      {"requests_per_cpu_second", run.cpu > 0 ? static_cast<double>(r.requests) / run.cpu : 0},
      {"part", setup.part_id},
      {"fidelity", setup.decisions == model::Decisions::rows ? "train" : "exact"},
      {"queue", setup.queue},
      {"mapping", setup.mapping},
      {"reads", r.reads},
      {"writes", r.requests - r.reads},
      {"column_commands", columns},
      {"activates", c.activates},
      {"refreshes", c.refreshes},
      {"bus", bus_json(r.bus)},
      {"energy", energy_json(dram_energy(setup.part, r.activity, r.elapsed, r.moved), "total_mj")},
      {"banks", banks_json(run, setup.controller.channels)}};
  if (r.latencies.count() > 0) {
    json["read_latency"] = latency_json(run);
  }
  return json;
}

std::string energy_text(const ordered_json& energy) {
  if (energy.is_null()) {
    return "";
  }
  const auto value = [&](const char* key) { return energy[key].get<double>(); };
  std::string text = fmt::format("\nenergy          {:.4g} mJ, {:.1f} mW, {:.2f} pJ/bit:", value("total_mj"),
                                 value("average_mw"), value("pj_per_bit"));
  for (const char* kind : {"by_command", "background"}) {
    for (const auto& [name, part] : energy[kind].items()) {
      if (part.get<double>() > 0) {
        text += fmt::format(" {} {:.1f} %", name, 100 * part.get<double>() / value("total_mj"));
      }
    }
  }
  text += "\nrails          ";
  for (const auto& [name, power] : energy["rail_mw"].items()) {
    text += fmt::format(" {} {:.1f} mW", name, power.get<double>());
  }
  return text;
}

std::string to_text(const DramSetup& setup, Picoseconds simulated, const ordered_json& json) {
  const auto value = [&](const char* key) { return json[key].get<double>(); };
  std::string text = fmt::format(
      "{} ({}, queue {}, mapping {})\n"
      "requests        {} ({} reads, {} writes)\n"
      "simulated       {}\n"
      "bandwidth       {:.3f} GB/s\n"
      "read latency    {:.1f} ns mean\n"
      "rows            {:.2f} % hit, {:.2f} % miss, {:.2f} % conflict; {} activates, {} refreshes\n",
      setup.part_id, json["fidelity"].get<std::string>(), setup.queue, setup.mapping,
      json["requests"].get<std::int64_t>(), json["reads"].get<std::int64_t>(),
      json["writes"].get<std::int64_t>(), human(simulated), value("bandwidth_gbs"),
      value("mean_read_latency_ns"), 100 * value("row_hit"), 100 * value("row_miss"),
      100 * value("row_conflict"), json["activates"].get<std::int64_t>(),
      json["refreshes"].get<std::int64_t>());
  text += "data bus        ";
  for (const auto& [name, part] : json["bus"].items()) {
    text += fmt::format("{}{} {:.2f} %", name == "data" ? "" : ", ", name, 100 * part.get<double>());
  }
  text += energy_text(json["energy"]);
  if (json.contains("read_latency")) {
    const ordered_json& latency = json["read_latency"];
    text += fmt::format(
        "\nread latency    p50 {:.0f} ns, p95 {:.0f} ns, p99 {:.0f} ns, max {:.0f} ns; of the mean:",
        latency["p50_ns"].get<double>(), latency["p95_ns"].get<double>(), latency["p99_ns"].get<double>(),
        latency["max_ns"].get<double>());
    for (const auto& [name, part] : latency["mean_components_ns"].items()) {
      text += fmt::format(" {} {:.1f}", name, part.get<double>());
    }
  }
  return text + fmt::format("\ncost            {:.3f} s CPU, {:.2f} M requests per CPU second\n",
                            value("cpu_seconds"), value("requests_per_cpu_second") / 1e6);
}

/// What is written besides the result.
struct Outputs {
  std::optional<std::string> commands;
  std::optional<std::string> power;
  Picoseconds power_interval{10'000'000};
};

DramRun play_psram(const DramSetup& setup, model::RequestSource& source) {
  model::PsramPlayer player(setup.part, setup.controller);
  const double begin = cpu_seconds();
  while (player.take_batch(source)) {
    if (interrupt_flag()) {
      throw Interrupted();
    }
  }
  return {.result = player.result(),
          .cpu = cpu_seconds() - begin,
          .clock_ns = 1e9 / command_clock(setup.part).as_double()};
}

DramRun play(const DramSetup& setup, model::RequestSource& source, const Outputs& outputs) {
  static_cast<void>(interrupt_flag());  // before there are files that a signal would leave behind
  if (setup.part.psram) {
    return play_psram(setup, source);
  }
  model::RequestPlayer player(setup.part, setup.controller, setup.decisions);
  std::optional<CommandRecorder> recorder;
  std::optional<PowerRecorder> power;
  if (outputs.commands) {
    recorder.emplace(setup, *outputs.commands, player);
  }
  if (outputs.power) {
    power.emplace(setup, *outputs.power, outputs.power_interval, player);
  }
  const double begin = cpu_seconds();
  while (player.take_batch(source)) {
    if (recorder) {
      recorder->flush();
    }
    if (power) {
      power->flush();
    }
    if (interrupt_flag()) {
      throw Interrupted();
    }
  }
  DramRun run{.result = player.result(),
              .cpu = cpu_seconds() - begin,
              .clock_ns = 1e9 / command_clock(setup.part).as_double()};
  if (recorder) {
    recorder->flush();
    recorder->finish();
  }
  if (power) {
    power->finish(run.result);
  }
  return run;
}

}  // namespace

int run_dram(const Command& self, const std::vector<std::string>& arguments) {
  std::vector<std::string_view> names;
  std::string help = fmt::format("usage: kvsim {} {}\n\n{}\n\n", self.name, self.arguments, self.summary);
  for (const Command& command : kDramCommands) {
    names.push_back(command.name.substr(self.name.size() + 1));
    help += fmt::format("  {:<6} {}\n", names.back(), command.summary);
  }
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h") {
    write_stdout(help);
    return arguments.empty() ? 2 : 0;
  }
  const auto found = std::find(names.begin(), names.end(), arguments[0]);
  if (found == names.end()) {
    const auto meant = did_you_mean(arguments[0], names);
    throw UserError(fmt::format("unknown command 'dram {}'{}; see 'kvsim dram --help'", arguments[0],
                                meant ? fmt::format(", did you mean '{}'?", *meant) : ""));
  }
  const Command& command = kDramCommands.at(static_cast<std::size_t>(found - names.begin()));
  return command.run(command, {arguments.begin() + 1, arguments.end()});
}

namespace {

/// What the options ask for, none of it in the way of an input or of another.
Outputs outputs_of(const Options& options, const DramSetup& setup) {
  Outputs outputs;
  std::vector<OutputPath> paths;
  if (options.has("commands")) {
    paths.push_back({"--commands", outputs.commands.emplace(options.text("commands"))});
  }
  if (options.has("power-over-time")) {
    paths.push_back({"--power-over-time", outputs.power.emplace(options.text("power-over-time"))});
  }
  if (options.has("power-interval")) {
    outputs.power_interval = time_option(options, "power-interval", Picoseconds());
    if (!outputs.power) {
      throw UserError("--power-interval: is that of --power-over-time, which is not given");
    }
    if (outputs.power_interval < kShortestPowerInterval) {
      throw UserError(fmt::format("--power-interval: '{}' is too short; give {} or more",
                                  options.text("power-interval"), to_text(kShortestPowerInterval)));
    }
  }
  std::vector<std::string> inputs = setup.inputs;
  inputs.push_back(options.text("trace"));
  check_outputs(paths, inputs);
  return outputs;
}

}  // namespace

int dram_run(const Command& self, const std::vector<std::string>& arguments) {
  Options options(self);
  add_dram_options(options);
  options.add()("trace", po::value<std::string>(), "the requests; required")(
      "commands", po::value<std::string>(), "write every DRAM command to this file (CSV); exact only")(
      "power-over-time", po::value<std::string>(),
      "write the power of each interval to this file (CSV): mW by command, of the background and by rail")(
      "power-interval", po::value<std::string>(), "interval of --power-over-time (10us), 10ns at least");
  options.positional("arguments");
  if (!options.parse(arguments)) {
    return 0;
  }
  if (!options.list("arguments").empty()) {
    throw UserError(
        fmt::format("'{}': the trace is given with --trace; see --help", options.list("arguments")[0]));
  }
  if (!options.has("trace")) {
    throw UserError("give the requests with --trace FILE; see --help");
  }
  const DramSetup setup = dram_setup(options);
  const Outputs outputs = outputs_of(options, setup);
  if (outputs.commands && setup.decisions != model::Decisions::bursts) {
    throw UserError("--commands: the bursts of a train have no commands of their own; use --fidelity exact");
  }
  if (setup.part.psram && (outputs.commands || outputs.power)) {
    throw UserError(fmt::format("{}: {} is a serial PSRAM, which has no DRAM commands",
                                outputs.commands ? "--commands" : "--power-over-time", setup.part_id));
  }
  const std::unique_ptr<model::RequestSource> source = model::open_requests(options.text("trace"));
  const DramRun played = play(setup, *source, outputs);
  if (played.result.requests == 0) {
    write_notes({fmt::format("{}: has no requests", options.text("trace"))});
  }
  const ordered_json json = to_json(setup, played);
  write_stdout(setup.json ? json.dump(2) + "\n" : to_text(setup, played.result.elapsed, json));
  return 0;
}

}  // namespace kvsim::sim
