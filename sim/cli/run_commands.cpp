// SPDX-License-Identifier: Apache-2.0
// `kvsim run` and `kvsim replay`.
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "configs/error/error.h"
#include "configs/spec/explain.h"
#include "configs/spec/resolve.h"
#include "sim/cli/capture_command.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"
#include "sim/cli/output.h"
#include "sim/cli/output_paths.h"
#include "sim/report/report.h"
#include "sim/report/soak_report.h"
#include "sim/run/runner.h"
#include "sim/version.h"
#include "traces/codec/output_file.h"
#include "traces/codec/reader.h"
#include "traces/codec/writer.h"
#include "traces/record/sinks.h"
#include "traces/workload/workload.h"

namespace kvsim::sim {

namespace po = boost::program_options;

namespace {

using Texts = std::vector<std::string>;
using Writer = std::string (*)(const Report&);

Writer writer_of(const std::string& format) {
  if (format == "text") {
    return text_report;
  }
  if (format == "json") {
    return json_report;
  }
  if (format == "csv") {
    return csv_report;
  }
  throw UserError(fmt::format("--format: '{}' is unknown; text, json or csv", format));
}

std::string only_argument(const Options& options, const char* what) {
  const Texts arguments = options.list("arguments");
  if (arguments.size() != 1) {
    throw UserError(fmt::format("give one {} ({} given); see --help", what, arguments.size()));
  }
  if (arguments[0].empty()) {
    throw UserError(fmt::format("the name of the {} is empty; see --help", what));
  }
  return arguments[0];
}

/// Overrides of the configuration that the options ask for.
config::Overrides overrides_of(const Options& options) {
  config::Overrides overrides;
  for (const std::string& change : options.list("set")) {
    overrides.emplace_back(change);
  }
  if (options.has("fidelity")) {
    const std::string fidelity = options.text("fidelity");
    overrides.emplace_back("run.fidelity=" + fidelity, "--fidelity " + fidelity);
  }
  return overrides;
}

/// A replay takes accesses as they were recorded: what shaped them cannot be changed any more.
void refuse_recorded(const std::string& change) {
  const std::string key = change.substr(0, change.find('='));
  const std::string top = key.substr(0, key.find('.'));
  const bool malformed = key.empty() || key.size() == change.size();  // told when it is applied
  if (malformed || top == "device" || top == "run" || key == "engine.barrier") {
    return;
  }
  static_cast<void>(config::explain(key));  // a misspelt key has its own message
  throw UserError(fmt::format("{} is fixed by the recording; record again with it", key));
}

config::Overrides replay_overrides(const Options& options) {
  config::Overrides overrides;
  if (options.has("device")) {
    const std::string device = options.text("device");
    overrides.emplace_back("device=" + device, "--device " + device);
  }
  for (const std::string& change : options.list("set")) {
    refuse_recorded(change);
    if (options.has("device") && change.starts_with("device=")) {
      throw UserError("--set device: --device names the device already; give one of them");
    }
  }
  for (config::Override& change : overrides_of(options)) {
    overrides.push_back(std::move(change));
  }
  return overrides;
}

void add_common(Options& options) {
  options.add()("set", po::value<Texts>()->composing(),
                "PATH=VALUE: change a key of the scenario; may be repeated")(
      "fidelity", po::value<std::string>(), "exact, train or auto: how much is simulated (run.fidelity)")(
      "format", po::value<std::string>()->default_value("text"), "text, json or csv");
  options.positional("arguments");
}

/// Files that a run writes beside its report.
struct RunOutputs {
  std::optional<std::string> record;    ///< the access stream,
  std::optional<std::string> timeline;  ///< and the rows of a long run
};

void check_run_outputs(const RunOutputs& outputs, const config::Scenario& scenario) {
  std::vector<std::string> inputs;
  for (const config::InputFile& input : scenario.inputs) {
    inputs.push_back(input.path);
  }
  std::vector<OutputPath> paths;
  if (outputs.record) {
    paths.push_back({"--record", *outputs.record});
  }
  if (outputs.timeline) {
    if (!scenario.spec.soak) {
      throw UserError(
          "--timeline: only a long run has one; give the scenario a soak, as in --set soak.duration='10 "
          "min'");
    }
    paths.push_back({"--timeline", *outputs.timeline});
  }
  check_outputs(paths, inputs);
}

/// The long run, if the scenario asks for one. Before the run itself, after which no process can measure
/// another.
std::optional<SoakRecord> soak_of(const config::RunSpec& spec, const std::optional<std::string>& timeline) {
  if (!spec.soak) {
    return std::nullopt;
  }
  SoakRecord soak;
  {
    ProgressBar bar;
    soak = run_soak(
        spec, [&bar](double done) { bar.show(done); }, &interrupt_flag());
  }
  if (timeline) {
    trace::OutputFile file(*timeline);
    file.write(timeline_csv(soak));
    file.commit();
  }
  return soak;
}

/// Simulates `source` and prints the report.
int simulate(config::Scenario scenario, trace::AccessSource& source, Writer writer,
             const RunOutputs& outputs) {
  write_notes(part_notes(scenario.spec.device.dram));
  check_run_outputs(outputs, scenario);
  const std::optional<std::string>& record = outputs.record;
  std::optional<SoakRecord> soak = soak_of(scenario.spec, outputs.timeline);
  const std::atomic<bool>& stop = interrupt_flag();
  std::optional<trace::TraceWriter> trace_writer;
  std::optional<trace::Tee> tee;
  if (record) {
    trace_writer.emplace(*record, trace::TraceHeader{.kvsim_version = kVersion,
                                                     .configuration = config::to_json(scenario.spec).dump(),
                                                     .seed = scenario.spec.run.seed,
                                                     .inputs = scenario.inputs});
    tee.emplace(source, *trace_writer);
  }
  Report report{.spec = std::move(scenario.spec),
                .inputs = std::move(scenario.inputs),
                .record = {},
                .summary = {},
                .soak = std::move(soak)};
  {
    ProgressBar bar;
    report.record = run_stream(report.spec, tee ? static_cast<trace::AccessSource&>(*tee) : source,
                               {.progress = [&bar](double done) { bar.show(done); }, .stop = &stop});
  }
  report.summary = summarise(report.spec, report.record);
  if (stop.load()) {
    throw Interrupted();
  }
  if (trace_writer) {
    trace_writer->finish();
  }
  write_stdout(writer(report));
  return 0;
}

}  // namespace

int run_run(const Command& self, const std::vector<std::string>& arguments) {
  Options options(self);
  add_common(options);
  options.add()("record", po::value<std::string>(), "write the access stream to this file (.kvt)")(
      "timeline", po::value<std::string>(), "write the timeline of a long run (soak) to this file (CSV)");
  if (!options.parse(arguments)) {
    return 0;
  }
  const Writer writer = writer_of(options.text("format"));
  config::Scenario scenario =
      config::load_scenario(only_argument(options, "scenario file"), overrides_of(options));
  trace::LlmWorkload workload(trace::llm_run(scenario.spec));
  const auto output = [&](const char* name) {
    return options.has(name) ? std::optional(options.text(name)) : std::nullopt;
  };
  return simulate(std::move(scenario), workload, writer,
                  {.record = output("record"), .timeline = output("timeline")});
}

int run_replay(const Command& self, const std::vector<std::string>& arguments) {
  Options options(self);
  add_common(options);
  options.add()("device", po::value<std::string>(),
                "replace the recorded device by this one (id or file); of a capture: the device");
  add_capture_options(options);
  if (!options.parse(arguments)) {
    return 0;
  }
  const std::string path = only_argument(options, "trace file");
  if (is_capture(options, path)) {
    return replay_capture(options, path);
  }
  const Writer writer = writer_of(options.text("format"));
  trace::TraceReader reader(path);
  config::Scenario scenario =
      config::restore_scenario(reader.header().configuration, replay_overrides(options), path);
  scenario.inputs = reader.header().inputs;
  return simulate(std::move(scenario), reader, writer, {});
}

}  // namespace kvsim::sim
